"""Opens the target of a started cluster of Laststand's processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.process.annotations import annotated
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.faults import execute
from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.message_faults import MessageFaults
from laststand.chaos.process.metadata_observer import MetadataObserver
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.rpc.channel import keepalive_for


@asynccontextmanager
async def open_target(
    cluster: ProcessCluster, *, client: ClientLink, log: HarnessLog, changes: ChangeSignal, session_timeout_ms: int
) -> AsyncIterator[ProcessTarget]:
    """Follows the commits of a started cluster's controllers, and yields the target that observes them."""
    metadata = MetadataObserver(
        {node_id: cluster.direct_addresses()[node_id] for node_id in cluster.layout.controller_ids},
        keepalive=keepalive_for(session_timeout_ms=session_timeout_ms),
        token=cluster.token,
        on_change=changes.change,
    )
    async with annotated() as annotations, asyncio.TaskGroup() as tasks:
        following = tasks.create_task(metadata.run())
        yield ProcessTarget(
            cluster=cluster,
            metadata=metadata,
            log=log,
            changes=changes,
            session_timeout_ms=session_timeout_ms,
            messages=MessageFaults(cluster, note=log.note),
            client=client,
            annotations=annotations,
            execute=execute,
        )
        following.cancel()
