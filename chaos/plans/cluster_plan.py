"""A scenario's cluster as a plan without actions, for the simulator to explore what may happen on it."""

from chaos.scenario.scenario import Scenario
from emulator.plan.plan import PROPERTIES, Plan


def cluster_plan(scenario: Scenario) -> Plan:
    """Returns a scenario's brokers, topics and properties.

    Times that simulated clusters have of their own (``PROPERTIES``) stay as they are: moves wait for those.
    """
    return Plan(
        brokers=scenario.brokers,
        properties=tuple((name, value) for name, value in scenario.properties if name not in PROPERTIES),
        topics=scenario.topics,
    )
