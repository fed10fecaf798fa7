"""Faults on real processes: each is shown to bite, and to report a no-op where there is nothing to break."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from chaos.process.faults.injury import Injury, Recovery

from chaos.play.barriers import Observation
from chaos.play.waiting import ChangeSignal
from chaos.process.fault_target import FaultTarget
from chaos.process.faults.cut import cut
from chaos.process.faults.heal import heal_all, heal_link
from chaos.process.faults.isolate import isolate
from chaos.process.faults.kill import kill
from chaos.process.faults.lose_responses import lose_responses
from chaos.process.faults.pause import pause, resume
from chaos.process.faults.power_cycle import start, stop
from chaos.process.faults.power_loss import power_loss
from chaos.process.harness_log import HarnessLog
from chaos.process.metadata_observer import MetadataObserver
from emulator.cluster.process_cluster import ClusterLayout, ProcessCluster
from emulator.cluster.toxiproxy_build import find_toxiproxy
from emulator.core.switches import Switches
from emulator.core.types import BrokerId, NodeId
from emulator.plan.actions import Clients
from emulator.plan.nodes import CLIENT, CONTROLLER
from emulator.rpc.channel import keepalive_for
from emulator.storage.power_loss_plan import Keep

pytestmark = pytest.mark.cluster

SESSION_TIMEOUT_MS = 2000
ZERO, ONE = NodeId(0), NodeId(1)


@asynccontextmanager
async def a_stage(directory: Path) -> AsyncIterator[Stage]:
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
    log = HarnessLog(directory / "events" / "harness-0.jsonl", run="test", wall_time_ns=time.time_ns())
    lookout = ChangeSignal()
    unexpected: list[str] = []
    async with (
        ProcessCluster(
            layout, on_start=log.started, on_unexpected_end=lambda name, _end: unexpected.append(name)
        ) as cluster,
        asyncio.TaskGroup() as tasks,
    ):
        await cluster.start()
        watch = MetadataObserver(
            cluster.direct_addresses()[CONTROLLER],
            keepalive=keepalive_for(session_timeout_ms=SESSION_TIMEOUT_MS),
            on_change=lookout.change,
        )
        following = tasks.create_task(watch.run())

        def unfenced() -> Observation:
            active = [broker for broker in watch.image.brokers.values() if broker.is_active]
            return Observation(reached=len(active) == len(layout.broker_ids), text=f"{len(active)} active brokers")

        await lookout.wait(unfenced, timeout_s=30)
        yield Stage(cluster=cluster, watch=watch, log=log, session_timeout_ms=SESSION_TIMEOUT_MS)
        following.cancel()
    log.close(problem=None)
    assert unexpected == []


Inject = Callable[[Stage], Awaitable[Injury]]
Mend = Callable[[Stage], Awaitable[Recovery]]


async def lose_power(stage: Stage) -> Injury:
    return await power_loss(stage, {ONE: 1}, Keep.NONE)


FAULTS: list[tuple[str, Inject, Mend]] = [
    ("isolate", lambda stage: isolate(stage, ONE, Clients.CUT), heal_all),
    ("isolate from nodes only", lambda stage: isolate(stage, ONE, Clients.CONNECTED), heal_all),
    ("cut from the controller", lambda stage: cut(stage, ONE, CONTROLLER), heal_all),
    ("cut from the client", lambda stage: cut(stage, CLIENT, ONE), lambda stage: heal_link(stage, CLIENT, ONE)),
    ("lose", lambda stage: lose_responses(stage, ONE, CONTROLLER), heal_all),
    ("pause", lambda stage: pause(stage, ONE), lambda stage: resume(stage, ONE)),
    ("kill", lambda stage: kill(stage, ONE), lambda stage: start(stage, ONE)),
    ("power_loss", lose_power, lambda stage: start(stage, ONE)),
    ("stop", lambda stage: stop(stage, ONE), lambda stage: start(stage, ONE)),
]


@pytest.mark.parametrize(
    ("inject", "mend"), [(inject, mend) for _, inject, mend in FAULTS], ids=[n for n, *_ in FAULTS]
)
async def test_a_fault_bites_once_and_is_mended_once(inject: Inject, mend: Mend, tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        assert (await mend(stage)).seen is None, "nothing is broken yet"
        first = await inject(stage)
        assert first.bit is not None
        assert (await inject(stage)).bit is None, "it is broken already"
        assert (await mend(stage)).seen is not None
        assert (await mend(stage)).seen is None, "it is mended already"


async def test_a_cut_that_the_dialler_does_not_notice_is_a_no_op(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await stage.cluster.pause_node(ONE)  # it cannot report anything
        assert (await cut(stage, ONE, CONTROLLER)).bit is None
        await stage.cluster.resume_node(ONE)


async def test_a_link_to_a_node_that_is_down_cannot_be_shown_to_be_cut(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await kill(stage, ONE)
        assert (await cut(stage, CLIENT, ONE)).bit is None
        assert (await cut(stage, ZERO, ONE)).bit is None


async def test_responses_that_are_lost_leave_the_link_back_open(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        assert (await lose_responses(stage, ZERO, ONE)).bit is not None
        assert (await cut(stage, ONE, ZERO)).bit is not None
