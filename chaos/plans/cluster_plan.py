"""A scenario's cluster as a plan without actions, as a start for the simulator's exploration."""

from laststand.chaos.scenario.scenario import Scenario
from laststand.emulator.plan.plan import PROPERTIES, Plan


def cluster_plan(scenario: Scenario) -> Plan:
    """Returns a scenario's brokers, topics and properties.

    The timeouts of simulated clusters (``PROPERTIES``) stay as they are, since moves depend on them.
    """
    return Plan(
        brokers=scenario.brokers,
        controllers=scenario.controllers,
        standby_controllers=scenario.standby_controllers,
        combined=scenario.combined,
        properties=tuple((name, value) for name, value in scenario.properties if name not in PROPERTIES),
        topics=scenario.topics,
    )
