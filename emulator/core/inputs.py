"""Inputs: everything that can happen to a node.

A driver turns each occurrence (a message, a file read, a timer) into an input and passes it to ``step``. Each input has
a ``cause_id``, which the resulting effects and events copy.
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core import messages, records
from laststand.emulator.core.batch import BatchDescriptor, EpochEntry
from laststand.emulator.core.coordinator_records import LoadedRecord
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import (
    CauseId,
    CorrelationId,
    LeaderEpoch,
    MetadataOffset,
    Offset,
    ProducerEpoch,
    ProducerId,
    RequestFailure,
    RequestId,
    TopicId,
    TopicPartition,
)


class NodeInput(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all inputs."""

    cause_id: CauseId


class Started(NodeInput, frozen=True, kw_only=True):
    """The process has started; the first input of every incarnation."""


class TimerFired(NodeInput, frozen=True, kw_only=True):
    """The time that ``next_deadline_ms`` named has come."""


class RequestReceived(NodeInput, frozen=True, kw_only=True):
    """A request arrived; it is answered by ``SendResponse`` with the same ``request_id``, at once or later.

    ``requester`` is ``None`` for requests that need no permission: of the harness, and of a broker's own listener,
    which has checked the permission.
    """

    request_id: RequestId
    request: messages.Request
    requester: Requester | None = None


class ResponseReceived(NodeInput, frozen=True, kw_only=True):
    """The answer to a ``SendRequest``."""

    correlation_id: CorrelationId
    response: messages.Response


class RequestFailed(NodeInput, frozen=True, kw_only=True):
    """A ``SendRequest`` will not be answered."""

    correlation_id: CorrelationId
    failure: RequestFailure


class ShutdownRequested(NodeInput, frozen=True, kw_only=True):
    """The process was asked to end in order (SIGTERM)."""


# --- Controller ---------------------------------------------------------------------------------------------------


class MetadataCommitted(NodeInput, frozen=True, kw_only=True):
    """All metadata records below ``end_offset`` are committed: completes ``AppendMetadata``."""

    end_offset: MetadataOffset


class NumberDrawn(NodeInput, frozen=True, kw_only=True):
    """A random number, at least 0, of any size: completes ``DrawNumber``."""

    number: int


# --- Broker -------------------------------------------------------------------------------------------------------


class MetadataStreamOpened(NodeInput, frozen=True, kw_only=True):
    """The controller accepted the stream; committed records end at ``end_offset`` now.

    ``controller_epoch`` is that of the controller that serves it; 0 where there is only one.
    """

    end_offset: MetadataOffset
    controller_epoch: LeaderEpoch = LeaderEpoch(0)


class MetadataReceived(NodeInput, frozen=True, kw_only=True):
    """Committed batches in order; several may have been waiting."""

    batches: tuple[records.MetadataBatch, ...]


class MetadataStreamLost(NodeInput, frozen=True, kw_only=True):
    """The stream ended or could not be opened."""


class ProducerSnapshotEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of one producer in a producer snapshot file: its last batch only.

    ``last_sequence`` and ``last_offset`` are -1 if only a marker is known of the producer's epoch; the last two fields
    are as in ``producer_state.ProducerEntry``.
    """

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int = -1
    transaction_first_offset: Offset | None = None


class LoadedLog(msgspec.Struct, frozen=True, kw_only=True):
    """One partition's log as found on disk and, where unclean, recovered (Kafka's ``LogLoader``).

    Attributes:
        partition: by the name of its directory.
        topic_id: from ``partition.metadata``; ``None`` where the file is missing.
        is_clean: whether the directory's clean-shutdown file existed, so that nothing was scanned.
        batches: every batch from ``log_start_offset``'s segment on, in offset order.
        log_start_offset: max of its checkpoint and the first segment's base.
        log_end_offset: next offset.
        epochs: ``leader-epoch-checkpoint`` with the entries that recovery added, not yet trimmed.
        log_start_checkpoint: as read, 0 if absent.
        high_watermark_checkpoint: as read, 0 if absent; not yet clamped.
        recovery_point: all records below are known to be synced.
        producers: newest usable producer snapshot.
        producers_offset: offset that the snapshot covers up to (exclusive).
    """

    partition: TopicPartition
    topic_id: TopicId | None
    is_clean: bool
    batches: tuple[BatchDescriptor, ...]
    log_start_offset: Offset
    log_end_offset: Offset
    epochs: tuple[EpochEntry, ...]
    log_start_checkpoint: Offset
    high_watermark_checkpoint: Offset
    recovery_point: Offset
    producers: tuple[ProducerSnapshotEntry, ...] = ()
    producers_offset: Offset = Offset(0)


class StrayLog(msgspec.Struct, frozen=True, kw_only=True):
    """A directory that was put aside as a stray: its partition, and the topic id if it has one."""

    partition: TopicPartition
    topic_id: TopicId | None


class LogsLoaded(NodeInput, frozen=True, kw_only=True):
    """All logs of all directories, and strays of earlier processes: completes ``LoadLogs``.

    ``failed_log_dirs`` are the ids of directories that could not be loaded; their logs are out of reach.
    """

    logs: tuple[LoadedLog, ...]
    strays: tuple[StrayLog, ...] = ()
    failed_log_dirs: tuple[str, ...] = ()


class LogRecovered(NodeInput, frozen=True, kw_only=True):
    """A leader's log was read through: completes ``RecoverLog``.

    Attributes:
        partition: the partition of the log.
        leader_epoch: as in the effect.
        scanned_from: start offset of the scan.
        batch_count: intact batches from there on.
        bad_offset: offset of the first bad batch; ``None`` if there is none.
    """

    partition: TopicPartition
    leader_epoch: LeaderEpoch
    scanned_from: Offset
    batch_count: int
    bad_offset: Offset | None


class RecordsRead(NodeInput, frozen=True, kw_only=True):
    """The records of a coordinator's partition in order: completes ``ReadRecords``."""

    partition: TopicPartition
    leader_epoch: LeaderEpoch
    records: tuple[LoadedRecord, ...]


class SegmentsDeleted(NodeInput, frozen=True, kw_only=True):
    """Storage dropped segments (retention): the log now starts at ``log_start_offset``."""

    partition: TopicPartition
    log_start_offset: Offset


ControllerInput: TypeAlias = (
    Started
    | TimerFired
    | RequestReceived
    | ResponseReceived
    | RequestFailed
    | MetadataCommitted
    | NumberDrawn
    | ShutdownRequested
)

BrokerInput: TypeAlias = (
    Started
    | TimerFired
    | RequestReceived
    | ResponseReceived
    | RequestFailed
    | ShutdownRequested
    | MetadataStreamOpened
    | MetadataReceived
    | MetadataStreamLost
    | LogsLoaded
    | LogRecovered
    | RecordsRead
    | SegmentsDeleted
)
