"""A small cluster of real processes for tests of faults: controllers and two brokers behind proxies."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.process.annotations import Annotations
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.faults import execute
from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.message_faults import MessageFaults
from laststand.chaos.process.metadata_observer import MetadataObserver
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.node_host import NodeHost
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import controller_ids
from laststand.emulator.rpc.channel import keepalive_for

SESSION_TIMEOUT_MS = 2000
ZERO, ONE = NodeId(0), NodeId(1)


@asynccontextmanager
async def fault_target(
    directory: Path,
    *,
    controllers: int = 1,
    standby_controllers: int = 0,
    combined: bool = False,
    host: NodeHost | None = None,
    toxiproxy: Path | None = None,
) -> AsyncIterator[ProcessTarget]:
    (directory / "events").mkdir()
    layout = ClusterLayout(
        run="test",
        directory=directory,
        controller_ids=controller_ids(controllers + standby_controllers),
        standby_ids=controller_ids(controllers + standby_controllers)[controllers:],
        combined=combined,
        broker_ids=(BrokerId(ZERO), BrokerId(ONE)),
        switches=Switches(),
        properties=(
            ("broker.session.timeout.ms", str(SESSION_TIMEOUT_MS)),
            ("broker.heartbeat.interval.ms", "250"),
        ),
        toxiproxy=toxiproxy or find_toxiproxy(),
    )
    log = HarnessLog(
        directory / "events", run="test", wall_time_ns=time.time_ns(), driver=DriverName.PROCESS, ending=None
    )
    changes = ChangeSignal()
    unexpected: list[str] = []
    async with (
        ProcessCluster(
            layout, on_start=log.started, on_unexpected_end=lambda name, _end: unexpected.append(name), host=host
        ) as cluster,
        asyncio.TaskGroup() as tasks,
    ):
        await cluster.start()
        metadata = MetadataObserver(
            {node_id: cluster.direct_addresses()[node_id] for node_id in layout.controller_ids},
            keepalive=keepalive_for(session_timeout_ms=SESSION_TIMEOUT_MS),
            token=cluster.token,
            on_change=changes.change,
        )
        following = tasks.create_task(metadata.run())

        def unfenced() -> Observation:
            active = [broker for broker in metadata.image.brokers.values() if broker.is_active]
            return Observation(reached=len(active) == len(layout.broker_ids), text=f"{len(active)} active brokers")

        await changes.wait(unfenced, timeout_s=30)
        yield ProcessTarget(
            cluster=cluster,
            metadata=metadata,
            log=log,
            changes=changes,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            messages=MessageFaults(cluster, note=log.note),
            client=ClientLink(on_counts=changes.change),
            annotations=Annotations(None),
            execute=execute,
        )
        following.cancel()
    log.close(problem=None)
    assert unexpected == []
