"""The fault events of an action: which faults it begins, and which it ends.

Verification explains a fencing only by a fault that can cause it and that lasted at the time, so the ends of faults are
recorded as well as their beginnings. The target is a node's id, a link such as ``0->100``, or messages such as ``0->100
AlterPartition request``.
"""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, MetadataOffset, NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.nodes import CONTROLLER


class Fault(NamedTuple):
    """A fault by name, and its target: a node, a link, messages, or everything (``None``)."""

    name: str
    on: NodeId | Link[NodeId] | Channel[NodeId] | None

    @property
    def target(self) -> str:
        """The target of the fault, in words."""
        return "all" if self.on is None else str(self.on)

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """The node that the fault affects."""
        return (self.on,) if isinstance(self.on, int) else ()

    @property
    def links(self) -> tuple[events.FaultLink, ...]:
        """The link that the fault affects, itself or by its messages."""
        return (events.FaultLink(self.on.source, self.on.target),) if isinstance(self.on, Link | Channel) else ()


EVERYTHING: Final = Fault("all", None)
"""Stands for all faults where they end together."""

_ANY_LINK_FAULT: Final = "heal"
"""Stands for every fault of a link, or of messages of one kind."""

EVERY_LINK: Final = Fault(_ANY_LINK_FAULT, None)
"""Stands for the faults of all links."""


def faults_of(action: actions.Action) -> tuple[Fault, ...]:
    """Returns the faults that an action begins, also those that end with the action itself."""
    name = actions.spec_of(action).fault
    match action:
        case _ if name is None or action.is_repair:
            return ()
        case actions.DeposeController():
            return (Fault(name, CONTROLLER),)
        case actions.Expire(nodes=nodes):
            return tuple(Fault(name, Link(node, CONTROLLER)) for node in nodes)
        case actions.OnNodes(nodes=nodes) | actions.OnBrokers(nodes=nodes):
            return tuple(Fault(name, node) for node in nodes)
        case actions.OnLink(link=link) | actions.LoseResponses(link=link):
            return (Fault(name, link),)
        case actions.OnChannel(channel=channel):
            return (Fault(name, channel),)
        case _:
            raise AssertionError(f"nobody knows the target of {action}")


def ended_by(action: actions.Action, *, broken: Collection[Link[NodeId]]) -> tuple[Fault, ...]:
    """Returns the faults that an action ends.

    Args:
        action: the action.
        broken: links that had any fault before.
    """
    match action:
        case actions.HealAll():
            return (EVERY_LINK,)
        case actions.HealNodes(nodes=nodes):
            links = tuple(Fault(_ANY_LINK_FAULT, link) for link in sorted(broken) if set(link) & set(nodes))
            return (*(Fault(_ANY_LINK_FAULT, node) for node in nodes), *links)
        case actions.HealLink(link=link):
            return (Fault(_ANY_LINK_FAULT, link),)
        case actions.Release(channel=channel, count=None):
            return (Fault(_ANY_LINK_FAULT, channel),)
        case (
            actions.Reset()
            | actions.Expire()
            | actions.ExpireSession()
            | actions.DeposeController()
            | actions.Flap()
            | actions.ClockJump()
            | actions.FlipBit()
        ):
            return faults_of(action)
        case actions.OnNodes(nodes=nodes) | actions.OnBrokers(nodes=nodes):
            return tuple(Fault(name, node) for name in _ended_on_nodes(action) for node in nodes)
        case _:
            return ()


def _ended_on_nodes(action: actions.Action) -> list[str]:
    row = actions.spec_of(action)
    return [row.fault] if action.is_repair and row.fault is not None else sorted(row.heals)


def fault_events(
    action: actions.Action,
    *,
    effect: str | None,
    cause_id: CauseId,
    before: MetadataOffset,
    after: MetadataOffset,
    broken: Collection[Link[NodeId]],
    begun_ns: int,
    proved_ns: int,
    kafka_links: Collection[Link[NodeId]] = (),
) -> Iterator[events.Event]:
    """Yields the events that record an action.

    Args:
        action: the performed action.
        effect: the observed effect of the action; ``None`` if there was none.
        cause_id: of the plan's step.
        before: metadata offset that was committed before it was done.
        after: end of the committed metadata when the action was done.
        broken: links that had any fault before.
        begun_ns: when it was done, by the clock of the events.
        proved_ns: when the effect was looked for, by the same clock.
        kafka_links: the links of Kafka clients.
    """
    proved = None if effect is None else proved_ns
    for fault in faults_of(action):
        yield events.FaultInjected(
            cause_id=cause_id,
            fault=fault.name,
            target=fault.target,
            nodes=fault.nodes,
            links=fault.links,
            effect=effect,
            metadata_offset=before,
            begun_ns=begun_ns,
            proved_ns=proved,
            silenced=tuple(events.FaultLink(*link) for link in kafka_links if _is_silenced(link, action, fault)),
        )
    for fault in ended_by(action, broken=broken):
        yield events.FaultHealed(
            cause_id=cause_id,
            fault=fault.name,
            target=fault.target,
            nodes=fault.nodes,
            links=fault.links or _all_links(fault, broken),
            seen=effect,
            metadata_offset=after,
            begun_ns=begun_ns,
            proved_ns=proved,
        )


def _is_silenced(link: Link[NodeId], action: actions.Action, fault: Fault) -> bool:
    """Returns whether answers on a link may be swallowed while a fault lasts."""
    match action:
        case actions.Isolate(clients=actions.Clients.CUT):
            return link.target == fault.on
        case actions.Cut() | actions.LoseResponses() | actions.Flap() | actions.Reset():
            return link == fault.on
        case _:
            return False


def _all_links(fault: Fault, broken: Collection[Link[NodeId]]) -> tuple[events.FaultLink, ...]:
    return tuple(events.FaultLink(*link) for link in sorted(broken)) if fault == EVERY_LINK else ()
