"""The registry of functions that perform actions on real processes."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar, cast

from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.plan import actions

ActionT = TypeVar("ActionT")

Executor: TypeAlias = Callable[[ProcessTarget, ActionT], Awaitable[actions.Outcome]]
"""Performs an action; returns when it is done, and says how that was seen."""

_entered: Final[dict[type, Executor[actions.Action]]] = {}

EXECUTORS: Final[Mapping[type, Executor[actions.Action]]] = MappingProxyType(_entered)
"""The executors by the action's class."""


class NotPlayableError(EmulatorError):
    """Processes do not have an action; a plan with it is refused before it starts."""


def executes(kind: type) -> Callable[[Executor[ActionT]], Executor[ActionT]]:
    """Returns a decorator that makes a function the executor of an action."""

    def enter(executor: Executor[ActionT]) -> Executor[ActionT]:
        _entered[kind] = cast(Executor[actions.Action], executor)
        return executor

    return enter


async def execute(target: ProcessTarget, action: actions.Action) -> actions.Outcome:
    """Performs an action.

    Raises:
        NotPlayableError: the action has no executor.
        EmulatorError: the action could not be completed.
    """
    executor = EXECUTORS.get(type(action))
    if executor is None:
        raise NotPlayableError(f"{actions.spec_of(action).verb} cannot be played on processes")
    if isinstance(action, actions.OnNodes) and not isinstance(action, actions.Start):
        awaited = [node_id for node_id in action.nodes if target.cluster.is_awaited(node_id)]
        if awaited:
            return actions.no_op(f"controller {awaited[0]} was not started yet")
    return await executor(target, action)
