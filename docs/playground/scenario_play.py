"""Plays a scenario in the playground: its workload and steps, on the simulation of a plan with its cluster and topics.

Steps and clients are those of ``laststand run --driver simulator``; begin, end and verdict are the simulation's, whose
oracle needs nothing that a browser lacks. So the events are not those of a run, but the same as on the command line.
"""

from collections.abc import Coroutine, Iterator
from typing import Any, Final, TypeVar

from laststand.chaos.play.step_player import StepPlayer
from laststand.chaos.play.waiting import StepError
from laststand.chaos.scenario.conditions import Until
from laststand.chaos.scenario.requirements import unmet
from laststand.chaos.scenario.scenario import MissedStep, Scenario, Step
from laststand.chaos.simulated.clients import ClientObserver, SimulatedClients
from laststand.chaos.simulated.target import SimulatedTarget
from laststand.emulator.core.client.steps import ClientRecord
from laststand.emulator.core.eras import era_rules, rule_texts
from laststand.emulator.core.properties import node_properties, property_texts
from laststand.emulator.core.switches import DEFAULT_ERA, Switches
from laststand.emulator.core.types import Acks, CauseId
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.fields import PRODUCER_ALL
from laststand.emulator.plan.plan import PROPERTIES, Plan
from laststand.emulator.plan.plan_lint import refusal
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import PRODUCER, Simulation

_DRAIN_MS: Final = 10_000
_SEED: Final = 1

CLOSING: Final = "closing"
"""The producer that asks, in the end, whether the cluster takes records."""

_Result = TypeVar("_Result")


class CountingJournal(Journal):
    """A journal that counts clients' results, too, as barriers ask for them."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__()
        self.clients = ClientObserver(scenario)

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        """Keeps a line of the history, and counts it."""
        super().recorded(client, record, now_ms=now_ms)
        if client != CLOSING:
            self.clients.recorded(client, record, now_ms=now_ms)


class _JudgedSteps(StepPlayer):
    """Steps of which the simulation's oracle hears beforehand."""

    def __init__(self, simulation: Simulation, target: SimulatedTarget, *, seed: int) -> None:
        super().__init__(target=target, seed=seed)
        self._oracle = simulation.oracle

    async def perform(self, action: actions.Action, *, number: int) -> actions.Outcome:
        self._oracle.asked(action)
        outcome = await super().perform(action, number=number)
        if outcome.took_effect:
            self._oracle.acted()
        return outcome


def era_of(scenario: Scenario) -> str:
    """Returns the era of a scenario: its ``era``, else the default, or the first that it expects something of."""
    expected = [era for era, _ in scenario.expect]
    if scenario.rules is not None:
        return scenario.rules.era
    return DEFAULT_ERA if DEFAULT_ERA in expected or not expected else expected[0]


def rules_in(scenario: Scenario) -> Switches:
    """Returns the rules in force: those of its era, and its ``switches``."""
    return era_rules(era_of(scenario)) if scenario.rules is None else scenario.rules.switches


def refusal_of(scenario: Scenario) -> str | None:
    """Returns why a scenario cannot be played in virtual time by its rules, or ``None``."""
    refused = [
        f"step {number} {step.text} (line {step.line}): {reason}"
        for number, step in enumerate(scenario.steps, start=1)
        if not isinstance(step.action, Until) and (reason := refusal(step.action, DriverName.SIMULATOR)) is not None
    ]
    if scenario.kafka_clients:
        refused.append("clients of Kafka need processes")
    return next(iter((*refused, *unmet(scenario, era_of(scenario), rules_in(scenario)))), None)


def plan_of(scenario: Scenario) -> Plan:
    """Returns a plan with a scenario's rules, cluster and topics, and no action."""
    era = era_of(scenario)
    usual = rule_texts(era_rules(era))
    texts = property_texts(node_properties(dict(scenario.properties)))
    kept = {name: texts[name] for name in PROPERTIES}  # a plan has shorter times otherwise
    return Plan(
        brokers=scenario.brokers,
        era=era,
        switches=tuple(each for each in rule_texts(rules_in(scenario)).items() if each[1] != usual[each[0]]),
        properties=tuple({**kept, **dict(scenario.properties)}.items()),
        topics=scenario.topics,
    )


def play_steps(
    simulation: Simulation, scenario: Scenario, journal: CountingJournal
) -> Iterator[tuple[Step, str, bool]]:
    """Plays the steps of a scenario on a simulation that has begun; yields each after it was played.

    Steps that are to be played at once are played one after the other.

    Yields:
        The step, what was seen of it, and whether it had an effect.

    Raises:
        StepError: a step did not come to its end, and the scenario does not say that it may.
        EmulatorError: an action could not be played.
    """
    _replace_clients(simulation)
    clients = SimulatedClients(simulation.cluster, scenario, journal.clients)
    target = SimulatedTarget(simulation.cluster, clients)
    player = _JudgedSteps(simulation, target, seed=_SEED if scenario.seed is None else scenario.seed)
    clients.start()
    try:
        left_out = 0
        for number, step in enumerate(scenario.steps, start=1):
            left_out = left_out or player.left_out(step)
            if left_out:
                player.leave_out(1)
                left_out -= 1
                continue
            target.cause_id = CauseId(f"step-{number}")
            played = _finished(player.play(number, step))
            target.note(played.reached(number, cause_id=target.cause_id))
            yield step, played.outcome.seen, played.outcome.took_effect
    except StepError:
        if scenario.missed_step is not MissedStep.END:
            raise
    finally:
        clients.stop(timeout_ms=_DRAIN_MS)
        simulation.cluster.clients.consumers.clear()
        for action in player.repairs:
            _finished(target.perform(action))


def _replace_clients(simulation: Simulation) -> None:
    """Ends the simulation's own clients, whose names a scenario's may have, but for one producer."""
    clients = simulation.cluster.clients
    for producer in clients.producers.values():
        clients.abandon(producer)
    for consumer in clients.consumers:
        clients.abandon(consumer)
    clients.consumers.clear()
    topics = tuple(topic.name for topic in simulation.plan.topics)
    clients.producers = {PRODUCER_ALL: clients.launch_producer(CLOSING, Acks.ALL, PRODUCER, topics)}


def _finished(playing: Coroutine[Any, Any, _Result]) -> _Result:
    """Returns what a coroutine returns that waits for nothing: in virtual time nothing does."""
    try:
        playing.send(None)
    except StopIteration as ended:
        result: _Result = ended.value
        return result
    raise AssertionError("a step in virtual time waits for the clock")
