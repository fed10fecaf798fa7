"""Faults of disks on real processes."""

import asyncio
from functools import partial
from pathlib import Path
from random import Random

import pytest

from laststand.chaos.play.topics import create_topics
from laststand.chaos.process.controller_requests import ask
from laststand.chaos.process.faults import execute
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.disk import DiskOperation
from laststand.emulator.core.types import BrokerId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.plan.topics import PlannedTopic
from laststand.emulator.rpc.channel import keepalive_for
from tests.cluster.fault_targets import ONE, ZERO, fault_target

pytestmark = pytest.mark.cluster


async def test_a_slow_disk_bites_once_outlives_the_process_and_is_mended(tmp_path: Path) -> None:
    slow = actions.SlowDisk(nodes=(ONE,), delay_ms=60)
    repair = slow.repair()
    assert repair is not None
    async with fault_target(tmp_path) as target:
        assert not (await execute(target, repair)).took_effect, "nothing is broken yet"
        assert (await execute(target, slow)).affected
        assert not (await execute(target, slow)).took_effect, "it is as slow already"
        await execute(target, actions.Kill(nodes=(ONE,)))
        assert (await execute(target, actions.Start(nodes=(ONE,)))).affected
        assert (await execute(target, actions.SlowDisk(nodes=(ONE,), delay_ms=90))).affected
        assert (await execute(target, repair)).affected
        assert not (await execute(target, repair)).took_effect, "it is mended already"


async def test_the_disk_of_a_node_that_is_down_is_not_felt(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        await execute(target, actions.Kill(nodes=(ONE,)))
        faults: list[actions.Action] = [actions.SlowDisk(nodes=(ONE,), delay_ms=60), actions.DiskFull(nodes=(ONE,))]
        faults += [actions.DiskError(nodes=(ONE,), operation=operation) for operation in DiskOperation]
        for fault in faults:
            assert not (await execute(target, fault)).affected


async def create_topic(target: ProcessTarget, name: str) -> None:
    """Has both brokers write and sync."""
    topic = PlannedTopic(name=name, replicas=((BrokerId(ZERO), BrokerId(ONE)),))
    await create_topics(
        partial(
            ask,
            target.cluster.direct_addresses()[CONTROLLER],
            keepalive=keepalive_for(session_timeout_ms=2000),
            token=target.cluster.token,
        ),
        (topic,),
        chance=Random(name),
    )


async def test_a_disk_that_fails_ends_its_process_and_one_that_lies_does_not(tmp_path: Path) -> None:
    write_fails = actions.DiskError(nodes=(ONE,), operation=DiskOperation.WRITE)
    lies = actions.LoseSyncs(nodes=(ONE,))
    repair = lies.repair()
    assert repair is not None
    async with fault_target(tmp_path) as target:
        outcome, _ = await asyncio.gather(execute(target, write_fails), create_topic(target, "orders"))
        assert outcome.affected
        assert "Input/output error" in outcome.seen
        assert not (await execute(target, write_fails)).took_effect, "nothing runs"
        assert (await execute(target, actions.Start(nodes=(ONE,)))).affected
        outcome, _ = await asyncio.gather(execute(target, lies), create_topic(target, "refunds"))
        assert outcome.affected
        assert not (await execute(target, lies)).took_effect, "it lies already"
        assert (await execute(target, repair)).affected
        flip = actions.FlipBit(nodes=(ONE,), partition=TopicPartition("refunds", 0))
        assert not (await execute(target, flip)).took_effect, "the log is empty"
        outcome, _ = await asyncio.gather(
            execute(target, actions.DiskFull(nodes=(CONTROLLER,))), execute(target, actions.Kill(nodes=(ZERO,)))
        )
        assert outcome.affected
        assert "No space left on device" in outcome.seen
        assert (await execute(target, actions.DiskFull(nodes=(CONTROLLER,), state=actions.Switched.OFF))).affected
        assert (await execute(target, actions.Start(nodes=(CONTROLLER,)))).affected


async def test_a_disk_that_is_full_ends_its_process_after_each_start_until_there_is_room(tmp_path: Path) -> None:
    full = actions.DiskFull(nodes=(ONE,))
    repair = full.repair()
    assert repair is not None
    async with fault_target(tmp_path) as target:
        assert not (await execute(target, repair)).took_effect, "there is room"
        outcome, _ = await asyncio.gather(execute(target, full), create_topic(target, "orders"))
        assert outcome.affected
        for _ in range(2):
            outcome = await execute(target, actions.Start(nodes=(ONE,)))
            assert outcome.affected
            assert "ended again: No space left on device" in outcome.seen
            assert not target.cluster.is_running(ONE)
        assert (await execute(target, repair)).affected
        outcome = await execute(target, actions.Start(nodes=(ONE,)))
        assert "listens" in outcome.seen


async def test_a_controller_without_room_ends_the_broker_in_its_process_after_each_start(tmp_path: Path) -> None:
    async with fault_target(tmp_path, combined=True) as target:
        full = actions.DiskFull(nodes=(CONTROLLER,))
        outcome, _ = await asyncio.gather(execute(target, full), execute(target, actions.Kill(nodes=(ONE,))))
        assert outcome.affected
        outcome = await execute(target, actions.Start(nodes=(ZERO,)))
        assert "ended again: No space left on device" in outcome.seen
        assert not target.cluster.is_running(ZERO)
        assert (await execute(target, actions.DiskFull(nodes=(CONTROLLER,), state=actions.Switched.OFF))).affected
        assert "listens" in (await execute(target, actions.Start(nodes=(ZERO,)))).seen


async def test_a_new_disk_has_room(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        await asyncio.gather(execute(target, actions.DiskFull(nodes=(ONE,))), create_topic(target, "orders"))
        assert (await execute(target, actions.ReplaceDisk(nodes=(ONE,)))).affected
        assert "listens" in (await execute(target, actions.Start(nodes=(ONE,)))).seen
