"""Faults of single messages on real processes: they bite, report a no-op where there is nothing to do, and end."""

from pathlib import Path

import pytest

from chaos.play.barriers import Observation
from chaos.process.fault_target import FaultTarget
from chaos.process.faults import execute
from emulator.core.types import NodeId, Way
from emulator.plan.actions import (
    DelayMessages,
    Duplicate,
    DuplicateNext,
    HealAll,
    Hold,
    Kill,
    LoseHeld,
    LoseNext,
    Release,
    ReleaseNewest,
    Start,
)
from emulator.plan.channels import STREAM, Channel
from emulator.plan.nodes import CONTROLLER
from tests.cluster.fault_targets import ONE, ZERO, fault_target

pytestmark = pytest.mark.cluster

HEARTBEATS = Channel(ONE, CONTROLLER, "BrokerHeartbeat", Way.REQUEST)
ANSWERS = Channel(ONE, CONTROLLER, "BrokerHeartbeat", Way.RESPONSE)
METADATA = Channel(ONE, CONTROLLER, STREAM, Way.RESPONSE)


async def touched(target: FaultTarget, channel: Channel[NodeId], count: int) -> None:
    def see() -> Observation:
        found = target.messages.intercepted(channel)
        return Observation(reached=found >= count, text=f"{found} touched")

    await target.wait(see, timeout_s=20)


async def test_messages_are_held_lost_duplicated_and_delayed(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        for nothing in (Release(channel=HEARTBEATS), LoseHeld(channel=HEARTBEATS), Duplicate(channel=HEARTBEATS)):
            assert not (await execute(target, nothing)).took_effect, "nothing is held yet"

        assert (await execute(target, Hold(channel=HEARTBEATS))).bit
        assert not (await execute(target, Hold(channel=HEARTBEATS))).took_effect, "they are held already"
        await touched(target, HEARTBEATS, 1)
        assert (await execute(target, Duplicate(channel=HEARTBEATS))).bit
        assert (await execute(target, Release(channel=HEARTBEATS, count=1))).bit
        assert not (await execute(target, ReleaseNewest(channel=HEARTBEATS))).took_effect, "none is left"

        assert (await execute(target, Release(channel=HEARTBEATS))).bit

        for fault in (LoseNext(channel=ANSWERS, count=1), DuplicateNext(channel=HEARTBEATS, count=1)):
            before = target.messages.intercepted(fault.channel)
            assert (await execute(target, fault)).bit
            await touched(target, fault.channel, before + 1)

        late = DelayMessages(channel=METADATA, delay_ms=5)
        assert (await execute(target, late)).bit
        assert not (await execute(target, late)).took_effect, "they are late already"
        await execute(target, Kill(nodes=(ZERO,)))
        await touched(target, METADATA, 1)  # broker 0 is fenced
        assert (await execute(target, HealAll())).bit
        assert target.messages.channels == {}
        assert not (await execute(target, HealAll())).took_effect


async def test_holding_goes_on_in_the_next_process_and_what_was_held_is_gone(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        assert (await execute(target, Hold(channel=METADATA))).bit
        await execute(target, Kill(nodes=(CONTROLLER,)))
        assert not (await execute(target, LoseHeld(channel=METADATA))).took_effect, "nobody is there to lose anything"
        assert not (await execute(target, Hold(channel=HEARTBEATS))).bit, "nobody is there to hold anything"
        await execute(target, Start(nodes=(CONTROLLER,)))
        await touched(target, METADATA, 1)
        await touched(target, HEARTBEATS, 1)
        assert (await execute(target, ReleaseNewest(channel=METADATA))).bit
        assert (await execute(target, HealAll())).bit
