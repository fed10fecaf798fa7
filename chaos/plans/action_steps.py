"""What each action of a plan is as steps of a scenario; or why it is none.

Actions happen in virtual time, at a moment of the plan's choice. Steps happen when the step before has taken effect,
and barriers between them keep the order (``rehearsal``). So whatever concerns a whole node, a whole disk or a whole
link is expressible; whatever concerns one message, or the rate at which a clock runs, is not.
"""

from typing import Final, assert_never

from emulator.core.metadata_version import ELR_VERSION
from emulator.core.types import Acks, FeatureUpgradeType, NodeId
from emulator.simulator.actions import (
    Action,
    ClockRate,
    CrashWithin,
    Draw,
    ElrFeature,
    Heal,
    LinkVerb,
    MinIsr,
    NodeVerb,
    OnChannel,
    OnLink,
    OnNode,
    PowerLoss,
    Produce,
    Reassign,
    Recreate,
    Slow,
    Wait,
)
from emulator.simulator.disk import Keep
from emulator.simulator.nodes import CLIENT, CONTROLLER

PRODUCER: Final = {Acks.ALL: "producer-all", Acks.LEADER: "producer-leader"}
"""Names of the producers, as in the simulator."""


class NotExpressible(Exception):
    """An action that processes cannot be made to do; the text says why."""


def steps_of(action: Action) -> tuple[str, ...]:
    """Returns an action's steps, each as a scenario file writes it.

    Raises:
        NotExpressible: there are none that do the same.
    """
    match action:
        case Wait():
            return ()  # what happens meanwhile is waited for by the barriers that follow
        case Produce(partition=partition, acks=acks, records=records):
            return (f"produce: {{producer: {PRODUCER[acks]}, partition: {partition}, records: {records}}}",)
        case OnNode(verb=verb, nodes=nodes):
            return tuple(step for node in nodes for step in _on_node(verb, node))
        case PowerLoss():
            return (_power_loss(action),)
        case OnLink(verb=verb, source=source, destination=target):
            return (_on_link(verb, source, target),)
        case Heal():
            return ("heal: all",)
        case CrashWithin():
            raise NotExpressible("nobody can end a process between two of the files that it writes in one turn")
        case ClockRate():
            raise NotExpressible("the clock of a process runs at the machine's rate")
        case Slow():
            raise NotExpressible("a delay of some milliseconds drowns in those that a machine makes by itself")
        case Draw():
            raise NotExpressible("a controller's process draws by itself")
        case MinIsr(topic=topic, value=value):
            return (f"alter_config: {{topic: {topic}, set: {{min.insync.replicas: {value}}}}}",)
        case Reassign(partition=partition, replicas=replicas) if replicas:
            return (f"reassign: {{partition: {partition}, replicas: [{', '.join(map(str, replicas))}]}}",)
        case Reassign(partition=partition):
            return (f"cancel_reassignment: {{partition: {partition}}}",)
        case ElrFeature(level=level):
            direction = (FeatureUpgradeType.UPGRADE if level > 0 else FeatureUpgradeType.SAFE_DOWNGRADE).value
            return (f"update_feature: {{feature: {ELR_VERSION}, level: {level}, upgrade_type: {direction}}}",)
        case Recreate():
            raise NotExpressible("a topic is made once in a scenario that is rehearsed")
        case OnChannel():
            raise NotExpressible("single messages cannot be held back between processes")
        case _:
            assert_never(action)


def _on_node(verb: NodeVerb, node: NodeId) -> tuple[str, ...]:
    name = _name(node)
    match verb:
        case NodeVerb.KILL | NodeVerb.START | NodeVerb.STOP | NodeVerb.PAUSE | NodeVerb.RESUME:
            return (f"{verb.value}: {{node: {name}}}",)
        case NodeVerb.REPLACE_DISK:
            return (f"replace_disk: {{node: {name}}}",)
        case NodeVerb.ISOLATE:
            return (f"isolate: {{node: {name}, clients: connected}}",)
        case NodeVerb.REJOIN:
            return (f"heal: {{node: {name}}}",)
        case NodeVerb.EXPIRE:
            # Its metadata waits with its heartbeats, as both take the same link.
            return (
                f"cut: {{from: {name}, to: controller}}",
                f"until: {{node: {name}, fenced: true}}",
                f"heal: {{from: {name}, to: controller}}",
            )
        case NodeVerb.SYNC:
            raise NotExpressible("nobody can ask the kernel for a node's pages alone, without the node's knowledge")
        case _:
            assert_never(verb)


def _power_loss(action: PowerLoss) -> str:
    nodes = ", ".join(_name(node) for node in action.nodes)
    kept = f", kept: {action.kept}" if action.keep in (Keep.PREFIX, Keep.PAGES) else ""
    fates = f"truncation: {action.truncation.value}, names: {action.names.value}"
    return f"power_loss: {{nodes: [{nodes}], keep: {action.keep.value}{kept}, {fates}}}"


def _on_link(verb: LinkVerb, source: NodeId, target: NodeId) -> str:
    match verb:
        case LinkVerb.CUT:
            return f"cut: {{from: {_name(source)}, to: {_name(target)}}}"
        case LinkVerb.LOSE_RESPONSES:
            return f"lose: {{responses: {_name(source)} -> {_name(target)}}}"
        case LinkVerb.MEND:
            return f"heal: {{from: {_name(source)}, to: {_name(target)}}}"
        case LinkVerb.RESET:
            raise NotExpressible("a connection that is reset is made again before anybody can look")
        case _:
            assert_never(verb)


def _name(node: NodeId) -> str:
    return {CLIENT: "client", CONTROLLER: "controller"}.get(node, str(node))
