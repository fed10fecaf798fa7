"""Finds the parts of a scenario that a driver cannot play, before anything starts."""

from collections.abc import Iterator
from functools import partial

from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.requirements import rules_of, unmet
from laststand.chaos.scenario.scenario import Scenario, Step
from laststand.chaos.scenario.scenario_file import KAFKA_CLIENTS
from laststand.emulator.cluster.zookeeper_program import property_refusals
from laststand.emulator.core.eras import era_kind
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.types import ClusterKind
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import ZOOKEEPER_WORD
from laststand.emulator.plan.plan_lint import refusal
from laststand.emulator.plan.unsupported_properties import (
    NO_TIMED_FLUSH,
    NO_UNCLEAN_RECOVERY,
    NODE_FLUSH_TIME,
    RECOVERY_MANAGER,
    RECOVERY_STRATEGY,
    TOPIC_FLUSH_TIME,
    tls_refusal,
    voters_refusal,
)
from laststand.emulator.plan.yaml_cursor import ScenarioError
from laststand.emulator.plan.zookeeper_refusals import NO_ZOOKEEPER, era_refusal, server_refusal


def not_in_era(
    scenario: Scenario, properties: tuple[tuple[str, str], ...], era: str, driver: DriverName
) -> tuple[str, ...]:
    """Describes the parts that a driver cannot play in an era, because it has ZooKeeper or has none.

    Args:
        scenario: the scenario.
        properties: of every node: the scenario's and the user's.
        era: era whose rules hold.
        driver: the driver.
    """
    kind = era_kind(era)
    refusal_of = partial(server_refusal, driver=driver) if driver.has_processes else era_refusal
    refused = [
        f"step {number} {step.text} (line {step.line}): {reason}"
        for number, step in enumerate(scenario.steps, start=1)
        if not isinstance(step.action, conditions.Until) and (reason := refusal_of(step.action, kind=kind)) is not None
    ]
    if kind is ClusterKind.KRAFT and scenario.zookeeper_at is not None:
        refused.append(f"{ZOOKEEPER_WORD} (line {scenario.zookeeper_at}): {NO_ZOOKEEPER}")
    if kind is ClusterKind.KRAFT and scenario.protocol is not None:
        refused.append(f"{PROPERTY} (line {scenario.protocol.line}): {NO_ZOOKEEPER}")
    if kind is ClusterKind.ZOOKEEPER and driver.has_processes:
        refused += property_refusals(node_properties(dict(properties)))
    return tuple(refused)


def check_expected_eras(scenario: Scenario) -> None:
    """Checks that some driver can play each era for which a scenario has an expectation.

    Raises:
        ScenarioError: none can; it names the expectation's line.
    """
    for era, expectation in scenario.expect:
        found = [
            (
                *not_expressible(scenario, scenario.properties, driver),
                *not_in_era(scenario, scenario.properties, era, driver),
                *unmet(scenario, era, rules_of(scenario, era)),
            )
            for driver in (DriverName.PROCESS, DriverName.DOCKER, DriverName.SIMULATOR)
            if driver.plays(era_kind(era))
        ]
        if all(found):
            reason = f"nothing can play this era: {'; '.join(found[0])}"
            raise ScenarioError(path=scenario.path, line=expectation.line, key=era, reason=reason)


def not_expressible(scenario: Scenario, properties: tuple[tuple[str, str], ...], driver: DriverName) -> tuple[str, ...]:
    """Describes the parts that the driver cannot play, with step and line if there is one.

    Args:
        scenario: the scenario.
        properties: of every node: the scenario's and the user's.
        driver: the driver.
    """
    refused = [
        f"step {number} {step.text} (line {step.line}): {reason}"
        for number, step in enumerate(scenario.steps, start=1)
        if not isinstance(step.action, conditions.Until) and (reason := refusal(step.action, driver)) is not None
    ]
    if driver is DriverName.EXTERNAL:
        refused += _unseen_from_outside(scenario)
    if driver is DriverName.SIMULATOR:
        refused += _timed_flushes(scenario, properties)
    if driver is DriverName.KAFKA:
        refused += _unclean_recoveries(scenario, properties)
    if (no_tls := tls_refusal(dict(properties), driver)) is not None:
        refused.append(f"security.inter.broker.protocol: {no_tls}")
    if scenario.controllers > 1 and driver is DriverName.EXTERNAL:
        refused.append(f"controllers: {scenario.controllers} of them do not play on a cluster that somebody else runs")
    if scenario.standby_controllers and driver is DriverName.KAFKA:
        refused.append("standby_controllers: nobody adds voters to Apache Kafka here")
    if scenario.combined and driver not in (DriverName.PROCESS, DriverName.SIMULATOR):
        refused.append("combined: controllers share processes with brokers only with --driver process or simulator")
    if (no_voters := voters_refusal(dict(properties), len(scenario.controller_ids))) is not None:
        refused.append(f"controllers: {no_voters}")
    if scenario.kafka_clients and driver not in (DriverName.PROCESS, DriverName.DOCKER):
        refused.append(f"{KAFKA_CLIENTS}: brokers serve clients of Kafka only with --driver process or docker")
    return tuple(refused)


def _unseen_from_outside(scenario: Scenario) -> Iterator[str]:
    """Yields barriers about state that no client can see."""
    for number, step in enumerate(scenario.steps, start=1):
        if isinstance(step.action, conditions.Until) and (what := _unseen(step.action.condition)) is not None:
            yield f"step {number} {step.text} (line {step.line}): no client can see {what}"


def _unseen(condition: conditions.Condition) -> str | None:
    match condition:
        case conditions.LogIs() | conditions.LogEnds():
            return "what a node's log holds"
        case conditions.Intercepted():
            return "what became of single messages"
        case conditions.RegistrationIs():
            return "which brokers are registered"
        case conditions.PartitionIs(last_known_leader=None, leader_recovery_state=None):
            return None
        case conditions.PartitionIs():
            return "of last known leaders and recovery states"
        case conditions.AnyOf(conditions=several):
            return next((what for each in several if (what := _unseen(each)) is not None), None)
        case _:
            return None


def _timed_flushes(scenario: Scenario, properties: tuple[tuple[str, str], ...]) -> Iterator[str]:
    if NODE_FLUSH_TIME in dict(properties):
        yield f"{NODE_FLUSH_TIME}: {NO_TIMED_FLUSH}"
    for place in _places(scenario, TOPIC_FLUSH_TIME, also=NODE_FLUSH_TIME):
        yield f"{place}, {TOPIC_FLUSH_TIME}: {NO_TIMED_FLUSH}"


def _unclean_recoveries(scenario: Scenario, properties: tuple[tuple[str, str], ...]) -> Iterator[str]:
    given = node_properties(dict(properties))
    if given.unclean_recovery_manager_enabled:
        yield f"{RECOVERY_MANAGER}: {NO_UNCLEAN_RECOVERY}"
    if given.unclean_recovery_strategy is not None:
        yield f"{RECOVERY_STRATEGY}: {NO_UNCLEAN_RECOVERY}"
    for place in _places(scenario, RECOVERY_STRATEGY, also=RECOVERY_MANAGER):
        yield f"{place}, {RECOVERY_STRATEGY}: {NO_UNCLEAN_RECOVERY}"


def _places(scenario: Scenario, name: str, *, also: str) -> Iterator[str]:
    """Yields the topics and steps that set a topic property, and the steps that set the node property ``also``."""
    for topic in scenario.topics:
        if name in dict(topic.properties):
            yield f"topic {topic.name}"
    for number, step in enumerate(scenario.steps, start=1):
        if _sets(step, name, also):
            yield f"step {number} {step.text} (line {step.line})"


def _sets(step: Step, name: str, also: str) -> bool:
    match step.action:
        case actions.AlterConfig(config=config):
            return any(key in (name, also) and value is not None for key, value in config.changes)
        case actions.CreateTopic(topic=topic):
            return name in dict(topic.properties)
        case _:
            return False
