"""Faults on real processes: each is shown to bite, and to report a no-op where there is nothing to break."""

import importlib
from pathlib import Path

import pytest

from laststand.chaos.process.faults import EXECUTORS, execute
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.types import NodeId, Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.nodes import CLIENT, CONTROLLER
from laststand.emulator.plan.power import DiskLoss
from tests.cluster.fault_targets import ONE, ZERO, fault_target

pytestmark = pytest.mark.cluster


def link(source: NodeId, target: NodeId) -> Link[NodeId]:
    return Link(source, target)


FAULTS: list[tuple[str, actions.Action, actions.Action]] = [
    ("isolate", actions.Isolate(nodes=(ONE,)), actions.HealAll()),
    (
        "isolate from nodes only",
        actions.Isolate(nodes=(ONE,), clients=actions.Clients.CONNECTED),
        actions.HealNodes(nodes=(ONE,)),
    ),
    ("cut from the controller", actions.Cut(link=link(ONE, CONTROLLER)), actions.HealAll()),
    ("cut from the client", actions.Cut(link=link(CLIENT, ONE)), actions.HealLink(link=link(CLIENT, ONE))),
    ("lose", actions.LoseResponses(link=link(ONE, CONTROLLER)), actions.HealAll()),
    ("pause", actions.Pause(nodes=(ONE,)), actions.Resume(nodes=(ONE,))),
    ("kill", actions.Kill(nodes=(ONE,)), actions.Start(nodes=(ONE,))),
    ("power_loss", actions.PowerLoss(nodes=(ONE,), loss=DiskLoss(keep=Keep.NONE, seed=1)), actions.Start(nodes=(ONE,))),
    ("stop", actions.Stop(nodes=(ONE,)), actions.Start(nodes=(ONE,))),
]


async def test_each_fault_bites_once_and_is_mended_once(tmp_path: Path) -> None:
    # What mends one leaves the cluster as the next one needs it: they share it, because its start is what takes time.
    async with fault_target(tmp_path) as target:
        for name, fault, repair in FAULTS:
            assert not (await execute(target, repair)).took_effect, f"{name}: nothing is broken yet"
            assert (await execute(target, fault)).affected, name
            assert not (await execute(target, fault)).affected, f"{name}: it is broken already"
            assert (await execute(target, repair)).affected, name
            assert not (await execute(target, repair)).took_effect, f"{name}: it is mended already"


async def test_expiry_ends_when_the_controller_has_fenced_the_broker(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        assert (await execute(target, actions.Expire(nodes=(ONE,)))).affected
        assert target.cluster.toxiproxy is not None
        assert target.cluster.toxiproxy.broken == ()


async def test_a_cut_that_the_dialler_does_not_notice_is_a_no_op(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        await target.cluster.pause_node(ONE)  # it cannot report anything
        assert not (await execute(target, actions.Cut(link=link(ONE, CONTROLLER)))).affected
        await target.cluster.resume_node(ONE)


async def test_a_link_to_a_node_that_is_down_cannot_be_shown_to_be_cut(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        await execute(target, actions.Kill(nodes=(ONE,)))
        assert not (await execute(target, actions.Cut(link=link(CLIENT, ONE)))).affected
        assert not (await execute(target, actions.Cut(link=link(ZERO, ONE)))).affected


async def test_responses_that_are_lost_leave_the_link_back_open(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        assert (await execute(target, actions.LoseResponses(link=link(ZERO, ONE)))).affected
        assert (await execute(target, actions.Cut(link=link(ONE, ZERO)))).affected


RARE = Channel(ONE, CONTROLLER, "AlterPartition", Way.REQUEST)
"""No such message comes by where no partition is led."""


async def test_a_fault_of_messages_that_met_none_is_a_no_op(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        for fault in (
            actions.Hold(channel=RARE),
            actions.LoseNext(channel=RARE, count=1),
            actions.DuplicateNext(channel=RARE, count=1),
            actions.DelayMessages(channel=RARE, delay_ms=50),
        ):
            assert (await execute(target, fault)).took_effect, fault
            outcome = await execute(target, actions.Release(channel=RARE))
            seen = "no effect was seen: none came by, so nothing was done to any"
            assert (outcome.affected, outcome.seen) == (False, seen), fault


async def test_where_no_message_is_held_none_is_lost_duplicated_or_released(tmp_path: Path) -> None:
    async with fault_target(tmp_path) as target:
        await execute(target, actions.Hold(channel=RARE))
        for kind in (actions.LoseHeld, actions.Duplicate, actions.ReleaseNewest):
            outcome = await execute(target, kind(channel=RARE))
            assert (outcome.took_effect, outcome.seen) == (False, "no-op: none is held"), kind


def test_every_action_that_processes_have_has_an_executor() -> None:
    played_elsewhere = {
        actions.Produce,
        actions.Transact,
        actions.Consume,
        actions.Member,
        *(kind for kind in actions.ACTION_SPECS if issubclass(kind, actions.AdminAction)),
    }
    offered = {kind for kind, row in actions.ACTION_SPECS.items() if row.is_on_processes}
    importlib.import_module("laststand.chaos.zookeeper.driver")  # enters what only its clusters have
    assert set(EXECUTORS) == offered - played_elsewhere
