"""Faults of single messages, at the node that was dialled: it holds, loses, duplicates or delays them.

Its answer proves that it does so from now on; that it did so to a message is an event of its own, without which
verification says that the fault did not bite.
"""

from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.actions import (
    DelayMessages,
    Duplicate,
    DuplicateNext,
    Hold,
    LoseHeld,
    LoseNext,
    Outcome,
    Release,
    ReleaseNewest,
    effective,
    no_op,
    unproved,
)
from laststand.emulator.plan.channels import Channel
from laststand.emulator.rpc.interception import Intervention


@executes(Hold)
async def hold(target: ProcessTarget, action: Hold[NodeId]) -> Outcome:
    """Holds messages from now on."""
    return await _arm(target, action.channel, Intervention.HOLD)


@executes(LoseNext)
async def lose_next(target: ProcessTarget, action: LoseNext[NodeId]) -> Outcome:
    """Loses the next messages."""
    return await _arm(target, action.channel, Intervention.LOSE_NEXT, count=action.count)


@executes(DuplicateNext)
async def duplicate_next(target: ProcessTarget, action: DuplicateNext[NodeId]) -> Outcome:
    """Delivers the next requests twice."""
    return await _arm(target, action.channel, Intervention.DUPLICATE_NEXT, count=action.count)


@executes(DelayMessages)
async def delay(target: ProcessTarget, action: DelayMessages[NodeId]) -> Outcome:
    """Delivers messages later."""
    return await _arm(target, action.channel, Intervention.DELAY, delay_ms=action.delay_ms)


async def _arm(
    target: ProcessTarget,
    channel: Channel[NodeId],
    intervention: Intervention,
    *,
    count: int | None = None,
    delay_ms: int = 0,
) -> Outcome:
    report = await target.messages.order(channel, intervention, count=count, delay_ms=delay_ms)
    if report is None:
        return unproved(f"node {channel.target} does not answer")
    return effective(f"node {channel.target} does so from now on") if report.is_changed else no_op("it does so already")


@executes(Release)
async def release(target: ProcessTarget, action: Release[NodeId]) -> Outcome:
    """Delivers what is held."""
    report = await target.messages.order(action.channel, Intervention.RELEASE, count=action.count)
    if report is None or not report.is_changed:
        return no_op("none is held")
    if action.count is None and not target.messages.touched(action.channel):
        return unproved("none came by, so nothing was done to any")
    return effective(f"{report.messages} released")


@executes(ReleaseNewest)
async def release_newest(target: ProcessTarget, action: ReleaseNewest[NodeId]) -> Outcome:
    """Delivers the newest message that is held."""
    return await _on_held(target, action.channel, Intervention.RELEASE_NEWEST, "1 released")


@executes(LoseHeld)
async def lose_held(target: ProcessTarget, action: LoseHeld[NodeId]) -> Outcome:
    """Loses the oldest message that is held."""
    return await _on_held(target, action.channel, Intervention.LOSE_HELD, "1 lost")


@executes(Duplicate)
async def duplicate(target: ProcessTarget, action: Duplicate[NodeId]) -> Outcome:
    """Delivers the oldest request that is held, and keeps it."""
    return await _on_held(target, action.channel, Intervention.DUPLICATE_HELD, "1 duplicated")


async def _on_held(target: ProcessTarget, channel: Channel[NodeId], intervention: Intervention, seen: str) -> Outcome:
    report = await target.messages.order(channel, intervention)
    return effective(seen) if report is not None and report.is_changed else no_op("none is held")
