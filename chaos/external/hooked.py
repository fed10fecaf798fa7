"""Actions on a cluster that another party runs: each runs a hook of the user, and waits for its effect."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.scenario import Ending, Scenario
from laststand.emulator.cluster.hooks import Hook, HookError, Hooks, See, run_check, run_hook
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.external_refusals import HOOKED, hook_name
from laststand.emulator.plan.nodes import CLIENT, CONTROLLER

_ENDS_ANSWERS: Final = (actions.Kill, actions.PowerLoss, actions.Stop, actions.Pause, actions.Disconnect)
_BEGINS_ANSWERS: Final = (actions.Start, actions.ReplaceDisk, actions.Resume, actions.Connect)
"""Actions whose effect on a broker shows in whether it answers in Kafka's protocol."""

_REPAIRS: Final[tuple[tuple[tuple[type, ...], type], ...]] = (
    ((actions.Kill, actions.PowerLoss, actions.Stop), actions.Start),
    ((actions.Pause,), actions.Resume),
    ((actions.Isolate, actions.Cut, actions.LoseResponses, actions.HalfOpen), actions.HealAll),
    ((actions.Disconnect,), actions.Connect),
)
"""Actions, and the one by which they are mended at the end."""

BREAKS: Final = tuple(kind for kinds, _ in _REPAIRS for kind in kinds)
"""Actions that break something."""

_CLIENTS_NAME: Final = "client"


def hook_problems(scenario: Scenario, hooks: Hooks) -> list[str]:
    """Describes the hooks that a scenario needs and the user's file lacks."""
    problems: dict[str, None] = {}
    for number, step in enumerate(scenario.steps, start=1):
        action = step.action
        if isinstance(action, conditions.Until) or not isinstance(action, HOOKED):
            continue
        who = f"step {number} {step.text} (line {step.line})"
        wanted = [type(action)]
        if scenario.end is Ending.RESTORE:
            wanted += [repair for kinds, repair in _REPAIRS if isinstance(action, kinds)]
        for kind in wanted:
            name = hook_name(kind)
            hook = hooks.hooks.get(name)
            if hook is None:
                end = "" if kind is type(action) else ", at the end"
                problems[f"{hooks.path} has no hook {name}, which {who} needs{end}"] = None
            elif hook.effective_when is None and not issubclass(kind, (*_ENDS_ANSWERS, *_BEGINS_ANSWERS)):
                problems[f"{hooks.path}: hook {name} needs effective_when: no client sees that"] = None
            elif hook.effective_when is None and CONTROLLER in actions.nodes_of(action):
                problems[f"{hooks.path}: hook {name} needs effective_when: no client sees the controller"] = None
        for node in actions.nodes_of(action):
            if isinstance(node, int) and node != CLIENT and node not in hooks.names:
                problems[f"{hooks.path} has no name for node {node}, which {who} needs"] = None
    return list(problems)


async def perform_by_hook(
    hooks: Hooks, action: actions.Action, *, answers: Callable[[BrokerId], Awaitable[bool]]
) -> actions.Outcome:
    """Runs the hook of an action, once for each of its nodes, all at once, and waits for the effect.

    Args:
        hooks: of the user's.
        action: an action for which there are hooks.
        answers: returns whether a broker answers in Kafka's protocol.

    Raises:
        HookError: a hook failed, or its effect was not observed.
    """
    hook = hooks.hooks[hook_name(type(action))]
    folder = hooks.path.parent

    async def perform_on(node_id: NodeId | None) -> bool:
        """Runs the hook for one node; returns whether anything changed."""
        values = _values(hooks, action, node_id)
        is_checked = hook.effective_when is not None
        see = _check(hook, values, folder) if is_checked else _see_answers(action, node_id, answers)
        is_due = isinstance(action, actions.ReplaceDisk) and not is_checked
        return await run_hook(hook, values, folder=folder, see=see, is_due=is_due)

    try:
        async with asyncio.TaskGroup() as hooks_of_nodes:
            running = [hooks_of_nodes.create_task(perform_on(node_id)) for node_id in _nodes_of(action) or (None,)]
    except* HookError as errors:
        raise errors.exceptions[0] from None
    changed = [task.result() for task in running]
    if not any(changed):
        return actions.no_op("it is so already")
    seen = f"hook {hook.name} took effect"
    return actions.effective(seen) if all(changed) else actions.Outcome(took_effect=True, affected=True, seen=seen)


def _check(hook: Hook, values: Mapping[str, str], folder: Path) -> See:
    assert hook.effective_when is not None
    return partial(run_check, hook.effective_when, values, folder=folder)


def _see_answers(
    action: actions.Action, node_id: NodeId | None, answers: Callable[[BrokerId], Awaitable[bool]]
) -> See | None:
    if node_id is None:
        return None
    wanted = isinstance(action, _BEGINS_ANSWERS)

    async def see() -> str | None:
        if await answers(BrokerId(node_id)) == wanted:
            return None
        return f"broker {node_id} {'does not answer' if wanted else 'still answers'}"

    return see


def _nodes_of(action: actions.Action) -> Sequence[NodeId]:
    match action:
        case actions.OnNodes(nodes=nodes) | actions.OnBrokers(nodes=nodes):
            return nodes
        case _:
            return ()


def _values(hooks: Hooks, action: actions.Action, node_id: NodeId | None) -> Mapping[str, str]:
    """Returns the values of a command's placeholders."""
    values = {} if node_id is None else {"node": str(node_id), "name": hooks.names[node_id]}
    match action:
        case actions.OnLink(link=link) | actions.LoseResponses(link=link):
            values |= _ends(hooks, link)
        case actions.PowerLoss(loss=loss):
            values |= {"keep": loss.keep.value, "disk": loss.disk.value}
        case actions.Isolate(clients=clients):
            values |= {"clients": clients.value}
        case _:
            pass
    return values


def _ends(hooks: Hooks, link: Link[NodeId]) -> dict[str, str]:
    source, target = (_CLIENTS_NAME if node == CLIENT else hooks.names[node] for node in link)
    return {"source": source, "target": target}
