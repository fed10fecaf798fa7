"""Faults of messages and clocks on real processes: they bite, report a no-op where there is nothing to do, and end."""

from pathlib import Path

import pytest

from laststand.chaos.play.barriers import Observation
from laststand.chaos.process.faults import execute
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.types import BrokerId, NodeId, Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import STREAM, Channel
from laststand.emulator.plan.nodes import CONTROLLER
from tests.cluster.fault_targets import ONE, ZERO, fault_target

pytestmark = pytest.mark.cluster

HEARTBEATS = Channel(ONE, CONTROLLER, "BrokerHeartbeat", Way.REQUEST)
ANSWERS = Channel(ONE, CONTROLLER, "BrokerHeartbeat", Way.RESPONSE)
METADATA = Channel(ONE, CONTROLLER, STREAM, Way.RESPONSE)


async def touched(target: ProcessTarget, channel: Channel[NodeId], count: int) -> None:
    def see() -> Observation:
        found = target.messages.intercepted(channel)
        return Observation(reached=found >= count, text=f"{found} touched")

    await target.wait(see, timeout_s=20)


async def test_messages_are_held_lost_duplicated_and_delayed(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        for nothing in (
            actions.Release(channel=HEARTBEATS),
            actions.LoseHeld(channel=HEARTBEATS),
            actions.Duplicate(channel=HEARTBEATS),
        ):
            assert not (await execute(target, nothing)).took_effect, "nothing is held yet"

        proposals = Channel(ONE, CONTROLLER, "AlterPartition", Way.REQUEST)
        assert (await execute(target, actions.Hold(channel=proposals))).took_effect
        assert not (await execute(target, actions.Release(channel=proposals))).affected, (
            "there is no partition, so none came by"
        )

        assert (await execute(target, actions.Hold(channel=HEARTBEATS))).affected
        assert not (await execute(target, actions.Hold(channel=HEARTBEATS))).took_effect, "they are held already"
        await touched(target, HEARTBEATS, 1)
        assert (await execute(target, actions.Duplicate(channel=HEARTBEATS))).affected
        assert (await execute(target, actions.Release(channel=HEARTBEATS, count=1))).affected
        # Of heartbeats the next one may be held by now.
        assert not (await execute(target, actions.ReleaseNewest(channel=proposals))).took_effect, "none is held"

        assert (await execute(target, actions.Release(channel=HEARTBEATS))).affected

        for fault in (actions.LoseNext(channel=ANSWERS, count=1), actions.DuplicateNext(channel=HEARTBEATS, count=1)):
            before = target.messages.intercepted(fault.channel)
            assert (await execute(target, fault)).affected
            await touched(target, fault.channel, before + 1)

        late = actions.DelayMessages(channel=METADATA, delay_ms=5)
        assert (await execute(target, late)).affected
        assert not (await execute(target, late)).took_effect, "they are late already"
        await execute(target, actions.Kill(nodes=(ZERO,)))
        await touched(target, METADATA, 1)  # broker 0 is fenced
        assert (await execute(target, actions.HealAll())).affected
        assert target.messages.channels == {}
        assert not (await execute(target, actions.HealAll())).took_effect


async def test_holding_goes_on_in_the_next_process_and_what_was_held_is_gone(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        assert (await execute(target, actions.Hold(channel=METADATA))).affected
        await execute(target, actions.Kill(nodes=(CONTROLLER,)))
        assert not (await execute(target, actions.LoseHeld(channel=METADATA))).took_effect, (
            "nobody is there to lose anything"
        )
        assert (await execute(target, actions.Hold(channel=HEARTBEATS))).affected, "it is in force from the start on"
        await execute(target, actions.Start(nodes=(CONTROLLER,)))
        await touched(target, METADATA, 1)
        await touched(target, HEARTBEATS, 1)
        assert (await execute(target, actions.ReleaseNewest(channel=METADATA))).affected
        assert (await execute(target, actions.HealAll())).affected


async def test_clocks_run_wrong_and_jump(tmp_path: Path) -> None:
    slow, right = actions.ClockRate(nodes=(ONE,), rate_ppm=100_000), actions.ClockRate(nodes=(ONE,), rate_ppm=1_000_000)
    async with fault_target(tmp_path) as target:
        assert not (await execute(target, right)).took_effect, "it runs right"
        assert (await execute(target, slow)).affected
        assert not (await execute(target, slow)).took_effect, "it runs so already"
        await target.wait(lambda: fenced(target, ONE), timeout_s=20)
        assert (await execute(target, right)).affected
        assert (await execute(target, actions.ClockJump(nodes=(ZERO,), by_ms=3000))).affected
        await execute(target, actions.Kill(nodes=(ZERO,)))
        assert not (await execute(target, actions.ClockJump(nodes=(ZERO,), by_ms=3000))).took_effect, "it does not run"
        assert not (await execute(target, actions.ClockRate(nodes=(ZERO,), rate_ppm=500_000))).affected, (
            "nor is it felt"
        )
        assert (await execute(target, actions.Start(nodes=(ZERO,)))).affected
        assert not (await execute(target, actions.ClockRate(nodes=(ZERO,), rate_ppm=500_000))).took_effect, (
            "it starts so"
        )


async def test_the_controllers_clock_jumps_and_every_session_is_over(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        assert (await execute(target, actions.ClockRate(nodes=(CONTROLLER,), rate_ppm=2_000_000))).affected
        assert (await execute(target, actions.ClockRate(nodes=(CONTROLLER,), rate_ppm=1_000_000))).affected
        before = fencings(target)  # sessions were half as long meanwhile, which a busy machine may miss
        assert (await execute(target, actions.ClockJump(nodes=(CONTROLLER,), by_ms=60_000))).affected

        def both_were_fenced() -> Observation:
            return Observation(reached=fencings(target) >= before + 2, text=f"{fencings(target)} fencings")

        await target.wait(both_were_fenced, timeout_s=20)


def fencings(target: ProcessTarget) -> int:
    """Returns how often the controller fenced a broker; one that is unfenced at once is not seen otherwise."""
    events = target.cluster.layout.event_file(CONTROLLER, target.cluster.incarnation(CONTROLLER))
    return events.read_bytes().count(b'"BrokerFenced"')


def fenced(target: ProcessTarget, broker: NodeId) -> Observation:
    is_fenced = target.image.brokers[BrokerId(broker)].fenced
    return Observation(reached=is_fenced, text=f"broker {broker} is {'fenced' if is_fenced else 'not fenced'}")
