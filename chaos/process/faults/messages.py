"""Faults of single messages, at the node that was dialled: it holds, loses, duplicates or delays them.

Its answer proves that it does so from now on; a node that is down does so from its start on, if the fault lasts until
then. The node writes an event when it affects a message; without one, verification reports that the fault had no
effect.
"""

from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.message_faults import LASTING
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel
from laststand.emulator.rpc.interception import Intervention


@executes(actions.Hold)
async def hold(target: ProcessTarget, action: actions.Hold[NodeId]) -> actions.Outcome:
    """Holds messages from now on."""
    return await _arm(target, action.channel, Intervention.HOLD)


@executes(actions.LoseNext)
async def lose_next(target: ProcessTarget, action: actions.LoseNext[NodeId]) -> actions.Outcome:
    """Loses the next messages."""
    return await _arm(target, action.channel, Intervention.LOSE_NEXT, count=action.count)


@executes(actions.DuplicateNext)
async def duplicate_next(target: ProcessTarget, action: actions.DuplicateNext[NodeId]) -> actions.Outcome:
    """Delivers the next requests twice."""
    return await _arm(target, action.channel, Intervention.DUPLICATE_NEXT, count=action.count)


@executes(actions.DelayMessages)
async def delay(target: ProcessTarget, action: actions.DelayMessages[NodeId]) -> actions.Outcome:
    """Delivers messages later."""
    return await _arm(target, action.channel, Intervention.DELAY, delay_ms=action.delay_ms)


async def _arm(
    target: ProcessTarget,
    channel: Channel[NodeId],
    intervention: Intervention,
    *,
    count: int | None = None,
    delay_ms: int = 0,
) -> actions.Outcome:
    is_running = target.cluster.is_running(channel.target)
    report = await target.messages.order(channel, intervention, count=count, delay_ms=delay_ms)
    if report is None and not is_running and intervention in LASTING:
        return actions.effective(f"node {channel.target} is down, and does so from its start on")
    if report is None:
        return actions.unproved(f"node {channel.target} does not answer")
    return (
        actions.effective(f"node {channel.target} does so from now on")
        if report.is_changed
        else actions.no_op("it does so already")
    )


@executes(actions.Release)
async def release(target: ProcessTarget, action: actions.Release[NodeId]) -> actions.Outcome:
    """Delivers held messages."""
    report = await target.messages.order(action.channel, Intervention.RELEASE, count=action.count)
    if report is None or not report.is_changed:
        return actions.no_op("none is held")
    if action.count is None and not target.messages.touched(action.channel):
        return actions.unproved("none came by, so nothing was done to any")
    return actions.effective(f"{report.messages} released")


@executes(actions.ReleaseNewest)
async def release_newest(target: ProcessTarget, action: actions.ReleaseNewest[NodeId]) -> actions.Outcome:
    """Delivers the newest message that is held."""
    return await _on_held(target, action.channel, Intervention.RELEASE_NEWEST, "1 released")


@executes(actions.LoseHeld)
async def lose_held(target: ProcessTarget, action: actions.LoseHeld[NodeId]) -> actions.Outcome:
    """Loses the oldest message that is held."""
    return await _on_held(target, action.channel, Intervention.LOSE_HELD, "1 lost")


@executes(actions.Duplicate)
async def duplicate(target: ProcessTarget, action: actions.Duplicate[NodeId]) -> actions.Outcome:
    """Delivers the oldest held request, and keeps holding it."""
    return await _on_held(target, action.channel, Intervention.DUPLICATE_HELD, "1 duplicated")


async def _on_held(
    target: ProcessTarget, channel: Channel[NodeId], intervention: Intervention, seen: str
) -> actions.Outcome:
    report = await target.messages.order(channel, intervention)
    return actions.effective(seen) if report is not None and report.is_changed else actions.no_op("none is held")
