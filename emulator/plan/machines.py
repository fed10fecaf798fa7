"""Combined mode: an action on a process, its machine or that machine's network affects both nodes in it."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

import msgspec

from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.nodes import is_client

MachineOf: TypeAlias = Callable[[NodeId], tuple[NodeId, ...]]
"""Returns all nodes of a node's process."""

_OF_MACHINES: Final = (
    actions.Kill,
    actions.PowerLoss,
    actions.ReplaceDisk,
    actions.Start,
    actions.Stop,
    actions.Pause,
    actions.Resume,
    actions.ClockRate,
    actions.ClockJump,
    actions.HealNodes,
    actions.Isolate,
)


def on_machines(action: actions.Action, machine_of: MachineOf) -> tuple[actions.Action, ...]:
    """Returns an action on whole machines: one action, or one for each link between two machines.

    Args:
        action: any action; one on messages, on a single disk, or on the roles that it names stays unchanged.
        machine_of: of the cluster.
    """
    if getattr(action, "roles", None) is actions.Roles.NAMED:
        return (action,)
    if isinstance(action, _OF_MACHINES):
        nodes = tuple(dict.fromkeys(each for node_id in action.nodes for each in machine_of(node_id)))
        return (cast(actions.Action, msgspec.structs.replace(action, nodes=nodes)),)
    if isinstance(action, actions.OnLink | actions.LoseResponses):
        links = _between_machines(action.link, machine_of)
        return tuple(cast(actions.Action, msgspec.structs.replace(action, link=link)) for link in links)
    return (action,)


def _is_within(link: Link[NodeId], machine_of: MachineOf) -> bool:
    """Returns whether both ends of a link are on one machine."""
    return link.target in machine_of(link.source)


def isolation_cuts(action: actions.Isolate[NodeId], link: Link[NodeId], machine_of: MachineOf) -> bool:
    """Returns whether an isolation cuts a link of one of its nodes."""
    return (action.clients is actions.Clients.CUT or not is_client(link.source)) and (
        action.roles is actions.Roles.NAMED or not _is_within(link, machine_of)
    )


def together(played: Sequence[tuple[actions.Action, actions.Outcome]]) -> actions.Outcome:
    """Returns the outcome of what was done to each link between two machines, or to something else at once."""
    if len(played) == 1:
        return played[0][1]
    done = [each for each in played if each[1].took_effect]
    return actions.Outcome(
        took_effect=bool(done),
        affected=bool(done) and all(outcome.affected for _, outcome in done),
        seen="; ".join(f"{_link_of(action)}: {outcome.seen}" for action, outcome in done or played),
    )


def _link_of(action: actions.Action) -> Link[NodeId]:
    assert isinstance(action, actions.OnLink | actions.LoseResponses), "nothing else is done in parts"
    return action.link


def _between_machines(link: Link[NodeId], machine_of: MachineOf) -> Sequence[Link[NodeId]]:
    if is_client(link.source) or is_client(link.target) or _is_within(link, machine_of):
        return (link,)
    pairs = [Link(source, target) for source in machine_of(link.source) for target in machine_of(link.target)]
    return [link, *(pair for pair in pairs if pair != link)]
