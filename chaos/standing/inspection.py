"""A partition's replicas side by side: their contents by the brokers' responses, or else by their files."""

import asyncio
from pathlib import Path
from typing import Final, Literal

import msgspec

from laststand.chaos.standing.link import replica_of
from laststand.chaos.standing.status import NodeStatus, PartitionStatus, StatusReport
from laststand.emulator.client.admin import AdminClient
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.core import messages
from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, LeaderEpoch, Offset, TopicPartition
from laststand.emulator.storage.replica_view import ReplicaView

ANSWER_TIMEOUT_S: Final = 2.0
"""A broker that says nothing for so long is judged by its files."""


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """One replica.

    Attributes:
        broker_id: of its broker.
        state: of its process.
        fenced: whether it is fenced; a fenced replica cannot be elected.
        roles: ``leader``, ``isr``, ``elr``, ``last-known-elr``.
        source: of the offsets: the ``broker``, or its ``files``; ``None`` without a log.
        log_start_offset: of the first record that may be read.
        log_end_offset: the log end offset, exclusive.
        high_watermark: from the broker, or the last checkpoint.
        last_written_leader_epoch: of the last record.
        epochs: where each leader epoch begins.
        flushed_end_offset: exclusive; records from here on are lost with the power.
        unflushed_bytes: of the log; they are lost with the power.
    """

    broker_id: BrokerId
    state: str
    fenced: bool
    roles: tuple[str, ...]
    source: Literal["broker", "files"] | None
    log_start_offset: Offset | None = None
    log_end_offset: Offset | None = None
    high_watermark: Offset | None = None
    last_written_leader_epoch: LeaderEpoch | None = None
    epochs: tuple[EpochEntry, ...] = ()
    flushed_end_offset: Offset | None = None
    unflushed_bytes: int | None = None

    @property
    def is_live(self) -> bool:
        """True if the broker's process runs, so that it could lead, fenced now or not."""
        return self.state == "running"


class InspectedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition and its replicas, in the order of the assignment."""

    partition: PartitionStatus
    replicas: tuple[Replica, ...]


async def inspect_partition(admin: AdminClient, report: StatusReport, status: PartitionStatus) -> InspectedPartition:
    """Looks at every replica of a partition.

    Args:
        admin: asks brokers past all proxies.
        report: the present status of the cluster.
        status: the partition, out of ``report``.

    Raises:
        NoClusterError: the supervisor is gone, or a replica's files cannot be read.
    """
    nodes = {node.node_id: node for node in report.nodes}
    replicas = await asyncio.gather(
        *(_replica(admin, Path(report.directory), nodes[broker], broker, status) for broker in status.replicas)
    )
    return InspectedPartition(partition=status, replicas=tuple(replicas))


async def _replica(
    admin: AdminClient, run: Path, node: NodeStatus, broker_id: BrokerId, status: PartitionStatus
) -> Replica:
    partition = TopicPartition(status.topic, status.partition)
    info = await _ask(admin, broker_id, status) if node.state == "running" else None
    # After the broker's answer: what it recorded is on disk by now, or at least in the page cache.
    view = await asyncio.to_thread(replica_of, run, broker_id, partition)
    replica = Replica(
        broker_id=broker_id,
        state=node.state,
        fenced=node.fenced is not False,
        roles=_roles(broker_id, status),
        source=None,
    )
    if view is not None:
        replica = _by_files(replica, view)
    if info is not None:
        replica = _by_broker(replica, info)
    return replica


def _roles(broker_id: BrokerId, status: PartitionStatus) -> tuple[str, ...]:
    roles = ["leader"] if broker_id == status.leader else []
    for name, members in (("isr", status.isr), ("elr", status.elr), ("last-known-elr", status.last_known_elr)):
        if broker_id in members:
            roles.append(name)
    return tuple(roles)


async def _ask(admin: AdminClient, broker_id: BrokerId, status: PartitionStatus) -> messages.ReplicaLogInfo | None:
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            [info] = await admin.replica_log_info(broker_id, [(status.topic_id, status.partition)])
    except (AdminError, TimeoutError):
        return None
    return info if info.error is ErrorCode.NONE else None


def _by_files(replica: Replica, view: ReplicaView) -> Replica:
    return msgspec.structs.replace(
        replica,
        source="files",
        log_start_offset=view.log_start_offset,
        log_end_offset=view.log_end_offset,
        high_watermark=view.high_watermark,
        last_written_leader_epoch=view.last_written_leader_epoch,
        epochs=view.epochs,
        flushed_end_offset=view.flushed_end_offset,
        unflushed_bytes=view.unflushed_bytes,
    )


def _by_broker(replica: Replica, info: messages.ReplicaLogInfo) -> Replica:
    return msgspec.structs.replace(
        replica,
        source="broker",
        log_end_offset=info.log_end_offset,
        high_watermark=info.high_watermark,
        last_written_leader_epoch=info.last_written_leader_epoch,
    )
