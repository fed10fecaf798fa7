"""Reads single steps that users request, and checks them against the cluster that is to play them."""

from pathlib import Path

from laststand.chaos.play.roles import resolve
from laststand.chaos.process.target import ProcessTarget
from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.scenario import Step
from laststand.chaos.scenario.step_reader import read_step
from laststand.emulator.core.eras import unanswered_protocol
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.types import ClusterKind, NodeId
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.nodes import CONTROLLER, NodeRef
from laststand.emulator.plan.plan_lint import problems, refusal
from laststand.emulator.plan.steps import action_text
from laststand.emulator.plan.yaml_cursor import ScenarioError, open_document
from laststand.emulator.plan.zookeeper_refusals import NO_ZOOKEEPER, server_refusal


class UnplayableStepError(EmulatorError):
    """A step that this cluster cannot play; nothing was done."""


def step_of(wanted: str | actions.ActionTemplate, target: ProcessTarget, *, driver: DriverName) -> Step:
    """Returns a user's request as a step.

    Args:
        wanted: a step in the form of a scenario file, or an action.
        target: the cluster.
        driver: of its nodes.

    Raises:
        UnplayableStepError: the text is not a step, names things that do not exist, or needs what this cluster lacks.
    """
    layout = target.cluster.layout
    names = Names(
        brokers=len(layout.broker_ids),
        controllers=len(layout.controller_ids),
        partitions=sorted(target.image.partitions),
        kafka_clients=layout.kafka_clients,
    )
    step = _read(wanted, names) if isinstance(wanted, str) else _checked(wanted, names)
    action = step.action
    if isinstance(action, actions.OfWorkload):
        raise UnplayableStepError(
            f"{actions.spec_of(action).verb}: a standing cluster has no workload; laststand produce and consume are "
            "clients of it, and with up --kafka every client of Kafka"
        )
    if isinstance(action, conditions.Until):
        if isinstance(action.condition, conditions.Acked):
            raise UnplayableStepError(
                "acked: counts the records of a scenario's workload, and a standing cluster has none"
            )
        return step
    kind = target.cluster.layout.kind
    refused = refusal(action, driver) or server_refusal(action, kind=kind, driver=driver)
    if names.zookeeper_at is not None and kind is ClusterKind.KRAFT:
        refused = NO_ZOOKEEPER
    if isinstance(action, actions.OnChannel) and kind is ClusterKind.ZOOKEEPER and action.channel.target == CONTROLLER:
        refused = "single messages to a ZooKeeper server can be chosen only if a scenario names them beforehand"
    if (
        refused is None
        and isinstance(action, actions.PowerLoss)
        and not all(_has_sync_ledger(target, node) for node in action.nodes)
    ):
        refused = "it is not recorded what the server syncs: there was no C compiler when the cluster was started"
    if refused is None and isinstance(action, actions.Start) and action.inter_broker_protocol_version is not None:
        version = action.inter_broker_protocol_version
        if unanswered_protocol(target.cluster.layout.switches, started_with=(version,)) is not None:
            refused = f"{PROPERTY}={version} is newer than the release of this cluster's era"
    if refused is not None:
        raise UnplayableStepError(f"{actions.spec_of(action).verb}: {refused}")
    row = actions.spec_of(action)
    if target.cluster.toxiproxy is None and (row.breaks_links or row.verb == "heal"):
        raise UnplayableStepError("this cluster was started with --no-proxies, so its links cannot be cut or healed")
    return step


def _has_sync_ledger(target: ProcessTarget, node: NodeRef) -> bool:
    return not isinstance(node, int) or target.cluster.has_sync_ledger(NodeId(node))


def _read(text: str, names: Names) -> Step:
    try:
        cursor = open_document(Path("step"), text)
        return read_step(cursor, names, text=cursor.flow_text())
    except ScenarioError as error:
        raise UnplayableStepError(error.reason if error.key is None else f"{error.key}: {error.reason}") from None


def _checked(action: actions.ActionTemplate, names: Names) -> Step:
    for problem in problems(action, names):
        raise UnplayableStepError(f"{actions.spec_of(action).verb}: {problem}")
    return Step(action=action, text=action_text(action), line=1)


def nothing_to_do(action: conditions.Until | actions.ActionTemplate, target: ProcessTarget) -> str | None:
    """Returns why a step on processes would change nothing, or ``None`` if it would change something.

    A plan proves nothing if one of its faults has no effect. If a user requests a single step, it is enough to report
    that: nothing is done or recorded.
    """
    if not isinstance(action, actions.Kill | actions.Stop | actions.Pause | actions.Resume | actions.Start):
        return None
    found = [resolve(node, target.image, {}) for node in action.nodes]
    reasons = [None if node is None else _idle(action, node, target) for node in found]
    return "; ".join(reason for reason in reasons if reason is not None) if all(reasons) else None


def _idle(action: actions.OnNodes[NodeRef], node_id: NodeId, target: ProcessTarget) -> str | None:
    is_running, is_paused = target.cluster.is_running(node_id), target.cluster.is_paused(node_id)
    match action:
        case actions.Start():
            return f"node {node_id} runs already" if is_running else None
        case actions.Resume():
            return None if is_paused else f"node {node_id} is not paused"
        case actions.Pause() if is_paused:
            return f"node {node_id} is paused already"
        case _:
            return None if is_running else f"node {node_id} is down already"
