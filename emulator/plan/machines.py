"""Combined mode: what is done to a process, or to its machine, is done to the broker and to the controller in it."""

from collections.abc import Callable
from typing import Final, cast

import msgspec

from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions

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
)


def on_machines(action: actions.Action, machine_of: Callable[[NodeId], tuple[NodeId, ...]]) -> actions.Action:
    """Returns an action on whole machines; what is done to links, or to one role, stays as it is.

    Args:
        action: any.
        machine_of: returns all nodes of a node's process.
    """
    if not isinstance(action, _OF_MACHINES):
        return action
    nodes = tuple(dict.fromkeys(each for node_id in action.nodes for each in machine_of(node_id)))
    return cast(actions.Action, msgspec.structs.replace(action, nodes=nodes))
