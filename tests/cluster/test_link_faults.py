"""Faults of links that let bytes through: each bites, and reports a no-op where there is nothing to hurt."""

from pathlib import Path

import pytest

from chaos.process.faults import execute
from emulator.core.types import NodeId
from emulator.plan.actions import Action, HealLink, Kill, Reset, Slow, Throttle
from emulator.plan.channels import Direction, Link
from emulator.plan.nodes import CLIENT
from tests.cluster.fault_targets import ONE, ZERO, fault_target

pytestmark = pytest.mark.cluster

LINK = Link(ZERO, ONE)
FAULTS = {
    "slow": Slow(link=LINK, latency_ms=150),
    "slow with jitter": Slow(link=LINK, latency_ms=150, jitter_ms=50),
    "slow requests": Slow(link=LINK, latency_ms=150, direction=Direction.REQUESTS),
    "throttle": Throttle(link=LINK, rate_kb=20),
    "slow responses": Slow(link=LINK, latency_ms=150, direction=Direction.RESPONSES),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_fault_bites_once_and_is_healed(fault: Action, tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        assert (await execute(target, fault)).bit
        assert not (await execute(target, fault)).took_effect, "it is broken already"
        assert (await execute(target, HealLink(link=LINK))).bit
        assert target.cluster.toxiproxy is not None
        assert target.cluster.toxiproxy.broken == ()
        assert await target.cluster.toxiproxy.round_trip(LINK, timeout_s=5) < 0.1


async def test_a_reset_ends_connections_and_leaves_the_link_usable(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        assert target.cluster.toxiproxy is not None
        async with target.cluster.toxiproxy.open_probe(LINK) as connection:
            await connection.round_trip()
            assert (await execute(target, Reset(link=LINK))).bit
            await connection.await_end(timeout_s=5)
        assert target.cluster.toxiproxy.broken == ()
        assert (await execute(target, Reset(link=LINK))).bit, "it can be reset again"


def on(link: Link[NodeId]) -> list[Action]:
    return [Slow(link=link, latency_ms=50), Throttle(link=link, rate_kb=20), Reset(link=link)]


async def test_a_link_to_a_node_that_is_down_cannot_be_hurt(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        await execute(target, Kill(nodes=(ONE,)))
        for fault in (*on(LINK), *on(Link(CLIENT, ONE))):
            assert not (await execute(target, fault)).bit
