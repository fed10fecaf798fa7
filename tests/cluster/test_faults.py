"""Faults on real processes: each is shown to bite, and to report a no-op where there is nothing to break."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chaos.play.barriers import Observation
from chaos.play.waiting import ChangeSignal
from chaos.process.fault_target import FaultTarget
from chaos.process.faults import EXECUTORS, execute
from chaos.process.harness_log import HarnessLog
from chaos.process.metadata_observer import MetadataObserver
from emulator.cluster.process_cluster import ClusterLayout, ProcessCluster
from emulator.cluster.toxiproxy_build import find_toxiproxy
from emulator.core.switches import Switches
from emulator.core.types import BrokerId, NodeId
from emulator.plan.actions import (
    DEEDS,
    Action,
    AdminAction,
    Clients,
    Cut,
    Expire,
    HealAll,
    HealLink,
    HealNodes,
    Isolate,
    Kill,
    LoseResponses,
    Pause,
    PowerLoss,
    Produce,
    Resume,
    Start,
    Stop,
)
from emulator.plan.channels import Link
from emulator.plan.drivers import DriverName
from emulator.plan.nodes import CLIENT, CONTROLLER
from emulator.plan.power import Loss
from emulator.rpc.channel import keepalive_for
from emulator.storage.power_loss_plan import Keep

pytestmark = pytest.mark.cluster

SESSION_TIMEOUT_MS = 2000
ZERO, ONE = NodeId(0), NodeId(1)


@asynccontextmanager
async def a_target(directory: Path) -> AsyncIterator[FaultTarget]:
    (directory / "events").mkdir()
    layout = ClusterLayout(
        run="test",
        directory=directory,
        controller_id=CONTROLLER,
        broker_ids=(BrokerId(ZERO), BrokerId(ONE)),
        switches=Switches(),
        properties=(
            ("broker.session.timeout.ms", str(SESSION_TIMEOUT_MS)),
            ("broker.heartbeat.interval.ms", "250"),
        ),
        toxiproxy=find_toxiproxy(),
    )
    log = HarnessLog(directory / "events", run="test", wall_time_ns=time.time_ns())
    changes = ChangeSignal()
    unexpected: list[str] = []
    async with (
        ProcessCluster(
            layout, on_start=log.started, on_unexpected_end=lambda name, _end: unexpected.append(name)
        ) as cluster,
        asyncio.TaskGroup() as tasks,
    ):
        await cluster.start()
        metadata = MetadataObserver(
            cluster.direct_addresses()[CONTROLLER],
            keepalive=keepalive_for(session_timeout_ms=SESSION_TIMEOUT_MS),
            on_change=changes.change,
        )
        following = tasks.create_task(metadata.run())

        def unfenced() -> Observation:
            active = [broker for broker in metadata.image.brokers.values() if broker.is_active]
            return Observation(reached=len(active) == len(layout.broker_ids), text=f"{len(active)} active brokers")

        await changes.wait(unfenced, timeout_s=30)
        yield FaultTarget(
            cluster=cluster, metadata=metadata, log=log, changes=changes, session_timeout_ms=SESSION_TIMEOUT_MS
        )
        following.cancel()
    log.close(problem=None)
    assert unexpected == []


def link(source: NodeId, target: NodeId) -> Link[NodeId]:
    return Link(source, target)


FAULTS: list[tuple[str, Action, Action]] = [
    ("isolate", Isolate(nodes=(ONE,)), HealAll()),
    ("isolate from nodes only", Isolate(nodes=(ONE,), clients=Clients.CONNECTED), HealNodes(nodes=(ONE,))),
    ("cut from the controller", Cut(link=link(ONE, CONTROLLER)), HealAll()),
    ("cut from the client", Cut(link=link(CLIENT, ONE)), HealLink(link=link(CLIENT, ONE))),
    ("lose", LoseResponses(link=link(ONE, CONTROLLER)), HealAll()),
    ("pause", Pause(nodes=(ONE,)), Resume(nodes=(ONE,))),
    ("kill", Kill(nodes=(ONE,)), Start(nodes=(ONE,))),
    ("power_loss", PowerLoss(nodes=(ONE,), loss=Loss(keep=Keep.NONE, seed=1)), Start(nodes=(ONE,))),
    ("stop", Stop(nodes=(ONE,)), Start(nodes=(ONE,))),
]


@pytest.mark.parametrize(
    ("fault", "repair"), [(fault, repair) for _, fault, repair in FAULTS], ids=[name for name, *_ in FAULTS]
)
async def test_a_fault_bites_once_and_is_mended_once(fault: Action, repair: Action, tmp_path: Path) -> None:
    async with a_target(tmp_path) as target:
        assert not (await execute(target, repair)).took_effect, "nothing is broken yet"
        assert (await execute(target, fault)).bit
        assert not (await execute(target, fault)).bit, "it is broken already"
        assert (await execute(target, repair)).bit
        assert not (await execute(target, repair)).took_effect, "it is mended already"


async def test_expiry_ends_when_the_controller_has_fenced_the_broker(tmp_path: Path) -> None:
    async with a_target(tmp_path) as target:
        assert (await execute(target, Expire(nodes=(ONE,)))).bit
        assert target.cluster.toxiproxy is not None
        assert target.cluster.toxiproxy.broken == ()


async def test_a_cut_that_the_dialler_does_not_notice_is_a_no_op(tmp_path: Path) -> None:
    async with a_target(tmp_path) as target:
        await target.cluster.pause_node(ONE)  # it cannot report anything
        assert not (await execute(target, Cut(link=link(ONE, CONTROLLER)))).bit
        await target.cluster.resume_node(ONE)


async def test_a_link_to_a_node_that_is_down_cannot_be_shown_to_be_cut(tmp_path: Path) -> None:
    async with a_target(tmp_path) as target:
        await execute(target, Kill(nodes=(ONE,)))
        assert not (await execute(target, Cut(link=link(CLIENT, ONE)))).bit
        assert not (await execute(target, Cut(link=link(ZERO, ONE)))).bit


async def test_responses_that_are_lost_leave_the_link_back_open(tmp_path: Path) -> None:
    async with a_target(tmp_path) as target:
        assert (await execute(target, LoseResponses(link=link(ZERO, ONE)))).bit
        assert (await execute(target, Cut(link=link(ONE, ZERO)))).bit


def test_every_action_that_processes_have_has_an_executor() -> None:
    played_elsewhere = {Produce, *(kind for kind in DEEDS if issubclass(kind, AdminAction))}
    offered = {kind for kind, row in DEEDS.items() if DriverName.PROCESS not in row.refused}
    assert set(EXECUTORS) == offered - played_elsewhere
