"""Refuses actions that are impossible on a cluster that another party runs; hooks perform the others."""

from typing import Final

from laststand.emulator.core import admin_messages
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName

HOOKED: Final[tuple[type, ...]] = (
    actions.Kill,
    actions.PowerLoss,
    actions.ReplaceDisk,
    actions.Start,
    actions.Stop,
    actions.Pause,
    actions.Resume,
    actions.Disconnect,
    actions.Connect,
    actions.Isolate,
    actions.Cut,
    actions.LoseResponses,
    actions.HalfOpen,
    actions.HealAll,
    actions.HealNodes,
    actions.HealLink,
)
"""Actions for which ``hooks.yaml`` may have a command."""

_NO_HOOK: Final = "there is no hook for that"
_ELECTION: Final = "Kafka's protocol has no such election"


def hook_name(kind: type) -> str:
    """Returns the key in ``hooks.yaml`` of the command for actions of a class."""
    return str(kind.__struct_config__.tag)  # type: ignore[attr-defined]  # every action is a struct


def refusal_on_external(action: actions.ActionTemplate) -> str | None:
    """Returns why an action is impossible on another party's cluster; ``None`` if a hook may perform it."""
    if isinstance(action, actions.ElectLeaders) and action.election > admin_messages.RequestedElection.UNCLEAN:
        return _ELECTION
    return refused_kind(type(action))


def refused_kind(kind: type) -> str | None:
    """Returns why actions of a class are impossible there, whatever their arguments."""
    if (reason := actions.ACTION_SPECS[kind].refused.get(DriverName.EXTERNAL)) is not None:
        return reason
    return None if issubclass(kind, (*HOOKED, actions.Produce, actions.AdminAction)) else _NO_HOOK
