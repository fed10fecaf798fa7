"""What a scenario asks for that a driver has not: found before anything starts.

Processes can do whatever a scenario may say. The simulator's disk does not know ``flush.ms``: it syncs when a number of
records asks for it, or in order, but at no time of its own; a scenario that turns on that would come to something else.
"""

from collections.abc import Iterator

from chaos.administration import AlterConfig, CreateTopic
from chaos.run_order import DriverName
from chaos.scenario import Scenario, Step
from emulator.simulator.unsupported_properties import NO_TIMED_FLUSH, NODE_FLUSH_TIME, TOPIC_FLUSH_TIME


def not_expressible(scenario: Scenario, properties: tuple[tuple[str, str], ...], driver: DriverName) -> tuple[str, ...]:
    """Returns, in words that name step and line where there is one, what the driver cannot do.

    Args:
        scenario: what it shall play.
        properties: of every node: the scenario's with what was asked for on top.
        driver: which.
    """
    if driver is DriverName.PROCESS:
        return ()
    return tuple(_unknown_to_simulator(scenario, properties))


def _unknown_to_simulator(scenario: Scenario, properties: tuple[tuple[str, str], ...]) -> Iterator[str]:
    if NODE_FLUSH_TIME in dict(properties):
        yield f"{NODE_FLUSH_TIME}: {NO_TIMED_FLUSH}"
    for topic in scenario.topics:
        if TOPIC_FLUSH_TIME in dict(topic.properties):
            yield f"topic {topic.name}, {TOPIC_FLUSH_TIME}: {NO_TIMED_FLUSH}"
    for number, step in enumerate(scenario.steps, start=1):
        if _sets_flush_time(step):
            yield f"step {number} {step.text} (line {step.line}), {TOPIC_FLUSH_TIME}: {NO_TIMED_FLUSH}"


def _sets_flush_time(step: Step) -> bool:
    match step.action:
        case AlterConfig(changes=changes):
            return any(key in (NODE_FLUSH_TIME, TOPIC_FLUSH_TIME) and value is not None for key, value in changes)
        case CreateTopic(topic=topic):
            return TOPIC_FLUSH_TIME in dict(topic.properties)
        case _:
            return False
