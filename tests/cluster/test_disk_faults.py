"""Faults of disks on real processes."""

from pathlib import Path

import pytest

from chaos.process.faults import execute
from emulator.plan.actions import Kill, SlowDisk, Start
from tests.cluster.fault_targets import ONE, fault_target

pytestmark = pytest.mark.cluster


async def test_a_slow_disk_bites_once_outlives_the_process_and_is_mended(tmp_path: Path) -> None:
    slow = SlowDisk(nodes=(ONE,), delay_ms=60)
    repair = slow.repair()
    assert repair is not None
    async with fault_target(tmp_path) as target:
        assert not (await execute(target, repair)).took_effect, "nothing is broken yet"
        assert (await execute(target, slow)).bit
        assert not (await execute(target, slow)).took_effect, "it is as slow already"
        await execute(target, Kill(nodes=(ONE,)))
        assert (await execute(target, Start(nodes=(ONE,)))).bit
        assert (await execute(target, SlowDisk(nodes=(ONE,), delay_ms=90))).bit
        assert (await execute(target, repair)).bit
        assert not (await execute(target, repair)).took_effect, "it is mended already"


async def test_the_disk_of_a_node_that_is_down_is_not_felt(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        await execute(target, Kill(nodes=(ONE,)))
        assert not (await execute(target, SlowDisk(nodes=(ONE,), delay_ms=60))).bit
