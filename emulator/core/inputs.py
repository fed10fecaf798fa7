"""Inputs: everything that can happen to a node.

A driver turns what it sees (a message, a file that was read, a timer) into one of these and passes it to ``step``. Each
has a ``cause_id``, which the effects and events that follow copy.
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
    """The process is up; the first input of every incarnation."""


class TimerFired(NodeInput, frozen=True, kw_only=True):
    """The time that ``next_deadline_ms`` named has come."""


class RequestReceived(NodeInput, frozen=True, kw_only=True):
    """Somebody asks; answered by ``SendResponse`` with the same ``request_id``, at once or later.

    ``requester`` is ``None`` for what needs no permission: the harness, and a broker's own listener, which has checked.
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
    """A random number from 0 on, as wide as the driver likes: completes ``DrawNumber``."""

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

    ``last_sequence`` and ``last_offset`` are -1 where only a marker is known of its epoch; the last two fields are as
    of ``producer_state.ProducerEntry``.
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
        recovery_point: everything below is known to be synced.
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
    """A directory that was put aside as a stray: the partition that it was, and its topic's id if it had one."""

    partition: TopicPartition
    topic_id: TopicId | None


class LogsLoaded(NodeInput, frozen=True, kw_only=True):
    """All logs of all directories, and what earlier processes put aside: completes ``LoadLogs``.

    ``failed_log_dirs`` are directories that could not be loaded, by id; what they hold is out of reach.
    """

    logs: tuple[LoadedLog, ...]
    strays: tuple[StrayLog, ...] = ()
    failed_log_dirs: tuple[str, ...] = ()


class LogRecovered(NodeInput, frozen=True, kw_only=True):
    """A leader's log was read through: completes ``RecoverLog``.

    Attributes:
        partition: whose log.
        leader_epoch: that of the effect.
        scanned_from: where reading began.
        batch_count: intact batches from there on.
        bad_offset: where the first bad batch is; ``None`` if there is none.
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
