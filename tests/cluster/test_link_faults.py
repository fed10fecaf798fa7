"""Faults of links that let bytes through: each takes effect, and reports a no-op where there is nothing to hurt."""

from functools import partial
from pathlib import Path
from random import Random

import pytest

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.topics import create_topics
from laststand.chaos.process.controller_requests import ask
from laststand.chaos.process.faults import execute
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Direction, Link
from laststand.emulator.plan.nodes import CLIENT, CONTROLLER
from laststand.emulator.plan.topics import PlannedTopic
from laststand.emulator.rpc.channel import keepalive_for
from tests.cluster.fault_targets import ONE, ZERO, fault_target

pytestmark = pytest.mark.cluster

DEADLINE_S = 30.0
LINK = Link(ZERO, ONE)
HEARTBEATS = Link(ONE, CONTROLLER)
FAULTS = {
    "slow": actions.Slow(link=LINK, latency_ms=150),
    "slow with jitter": actions.Slow(link=LINK, latency_ms=150, jitter_ms=50),
    "slow requests": actions.Slow(link=LINK, latency_ms=150, direction=Direction.REQUESTS),
    "throttle": actions.Throttle(link=LINK, rate_kb=20),
    "slice": actions.Slice(link=LINK, size=100, pause_ms=4),
    "slow responses": actions.Slow(link=LINK, latency_ms=150, direction=Direction.RESPONSES),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_fault_bites_once_and_is_healed(fault: actions.Action, tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        assert (await execute(target, fault)).affected
        assert not (await execute(target, fault)).took_effect, "it is broken already"
        assert (await execute(target, actions.HealLink(link=LINK))).affected
        assert target.cluster.toxiproxy is not None
        assert target.cluster.toxiproxy.broken == ()
        # One of several, as a busy machine may be late by itself.
        taken_s = [await target.cluster.toxiproxy.round_trip(LINK, timeout_s=DEADLINE_S) for _ in range(10)]
        assert min(taken_s) < 0.1


async def test_a_link_is_cut_that_brings_bytes_late_as_on_a_busy_machine(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        assert (await execute(target, actions.Slow(link=LINK, latency_ms=800, direction=Direction.RESPONSES))).affected
        assert (await execute(target, actions.Cut(link=LINK))).affected


async def test_a_reset_ends_connections_and_leaves_the_link_usable(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        assert target.cluster.toxiproxy is not None
        async with target.cluster.toxiproxy.open_probe(LINK) as connection:
            await connection.round_trip()
            assert (await execute(target, actions.Reset(link=LINK))).affected
            await connection.await_end(timeout_s=DEADLINE_S)
        assert target.cluster.toxiproxy.broken == ()
        assert (await execute(target, actions.Reset(link=LINK))).affected, "it can be reset again"


def on(link: Link[NodeId]) -> list[actions.Action]:
    return [
        actions.Slow(link=link, latency_ms=50),
        actions.Throttle(link=link, rate_kb=20),
        actions.Slice(link=link, size=100, pause_ms=1),
        actions.HalfOpen(link=link),
        actions.Flap(link=link, down_ms=200, up_ms=100, times=1),
        actions.Reset(link=link),
    ]


async def test_a_link_that_is_half_open_or_flaps_is_whole_afterwards(tmp_path: Path) -> None:
    half_open, flap = actions.HalfOpen(link=HEARTBEATS), actions.Flap(link=HEARTBEATS, down_ms=400, up_ms=200, times=2)
    async with fault_target(tmp_path) as target:
        assert target.cluster.toxiproxy is not None
        assert (await execute(target, flap)).affected
        assert target.cluster.toxiproxy.broken == ()
        assert (await execute(target, half_open)).affected
        assert not (await execute(target, half_open)).took_effect, "it is half open already"
        assert not (await execute(target, flap)).took_effect, "nothing passes there"
        assert (await execute(target, actions.HealLink(link=HEARTBEATS))).affected
        assert target.cluster.toxiproxy.broken == ()


async def test_a_broker_that_is_not_registered_yet_is_isolated(tmp_path: Path) -> None:
    topic = PlannedTopic(name="orders", replicas=((BrokerId(ZERO), BrokerId(ONE)),))
    orders = topic.partitions[0]
    async with fault_target(tmp_path) as target:
        controller = target.cluster.direct_addresses()[CONTROLLER]
        keepalive = keepalive_for(session_timeout_ms=target.session_timeout_ms)
        await create_topics(
            partial(ask, controller, keepalive=keepalive, token=target.cluster.token), (topic,), chance=Random(0)
        )

        def created() -> Observation:
            return Observation(reached=orders in target.image.partitions, text="no partition")

        await target.wait(created, timeout_s=30)
        await execute(target, actions.Kill(nodes=(ONE,)))
        await execute(target, actions.Start(nodes=(ONE,)))
        assert ONE in target.image.partitions[orders].isr, "as its session from before has not ended"
        assert (await execute(target, actions.Isolate(nodes=(ONE,)))).affected
        assert (await execute(target, actions.HealAll())).affected


async def test_a_link_to_a_node_that_is_down_cannot_be_hurt(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        await execute(target, actions.Kill(nodes=(ONE,)))
        for fault in (*on(LINK), *on(Link(CLIENT, ONE))):
            assert not (await execute(target, fault)).affected
