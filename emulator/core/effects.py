"""Effects: everything that a node can ask of its driver.

``step`` returns effects; the driver executes them in list order, and a file effect is complete before the next effect
starts. Within a turn the order is: file effects, then one write of the turn's events, then messages. State machines
always emit effects in this order. A file effect that fails ends the process.
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core import messages, records
from laststand.emulator.core.batch import BatchDescriptor, EpochEntry, LogSpan
from laststand.emulator.core.events import ControllerEvent, Event
from laststand.emulator.core.types import (
    BrokerEpoch,
    CauseId,
    CorrelationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    Offset,
    RequestId,
    TopicId,
    TopicPartition,
)


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all effects."""


class SendRequest(Effect, frozen=True, kw_only=True):
    """Ask ``destination``; ends in ``ResponseReceived`` or ``RequestFailed``, the latter after ``timeout_ms``."""

    destination: NodeId
    correlation_id: CorrelationId
    request: messages.Request
    timeout_ms: int
    cause_id: CauseId


class SendResponse(Effect, frozen=True, kw_only=True):
    """Answer a ``RequestReceived``; each is answered exactly once."""

    request_id: RequestId
    response: messages.Response
    cause_id: CauseId


class CloseConnection(Effect, frozen=True, kw_only=True):
    """Close the connection of an acks=0 produce request that failed, as no error can be answered."""

    request_id: RequestId


class RecordEvent(Effect, frozen=True, kw_only=True):
    """Write a line of the event log."""

    event: Event


# --- Controller ---------------------------------------------------------------------------------------------------


class AppendMetadata(Effect, frozen=True, kw_only=True):
    """Write a batch to the metadata log and commit it; completes as ``MetadataCommitted``. One sync may serve several.

    ``events`` describe it. They follow as ``RecordEvent`` once it is committed. They are stored with the batch, so
    that the next process can record them if this one is killed first.
    """

    batch: records.MetadataBatch
    events: tuple[ControllerEvent, ...]


class PublishMetadata(Effect, frozen=True, kw_only=True):
    """Stream a batch, committed by now, to every subscribed broker."""

    batch: records.MetadataBatch
    cause_id: CauseId


class DrawNumber(Effect, frozen=True, kw_only=True):
    """Draw a random number; completes as ``NumberDrawn``."""


# --- Broker -------------------------------------------------------------------------------------------------------


class OpenMetadataStream(Effect, frozen=True, kw_only=True):
    """Subscribe to the metadata log from an offset on; completes as ``MetadataStreamOpened`` or ``MetadataStreamLost``.

    Replaces the previous stream, which delivers no more inputs. A controller whose epoch is lower than
    ``controller_epoch`` refuses the subscription.
    """

    from_offset: MetadataOffset
    destination: NodeId
    controller_epoch: LeaderEpoch = LeaderEpoch(0)


class LoadLogs(Effect, frozen=True, kw_only=True):
    """Open and where needed recover every log, deleting each directory's clean-shutdown file first."""


class CreateLog(Effect, frozen=True, kw_only=True):
    """Make a partition directory; its name is durable before anything is appended."""

    partition: TopicPartition
    topic_id: TopicId


class DeleteLog(Effect, frozen=True, kw_only=True):
    """Rename the partition directory to ``-delete`` and remove it after the delay."""

    partition: TopicPartition


class RenameStrayLog(Effect, frozen=True, kw_only=True):
    """Rename the partition directory to ``-stray`` (KIP-550)."""

    partition: TopicPartition


class DeleteStrayLog(Effect, frozen=True, kw_only=True):
    """Remove every ``-stray`` directory of that partition with that topic id (``None``: without one)."""

    partition: TopicPartition
    topic_id: TopicId | None


class RecoverLog(Effect, frozen=True, kw_only=True):
    """Read the log from its recovery point on and check CRCs, without changes; completes as ``LogRecovered``.

    Starts at the base of the segment that holds the recovery point, like recovery at start. Other effects continue
    meanwhile; ``leader_epoch`` is returned with the result.
    """

    partition: TopicPartition
    leader_epoch: LeaderEpoch


class ReadRecords(Effect, frozen=True, kw_only=True):
    """Read and decode a coordinator's records in the log; completes as ``RecordsRead`` with the leader epoch.

    ``span`` is ``None`` if the log is empty.
    """

    partition: TopicPartition
    leader_epoch: LeaderEpoch
    span: LogSpan | None


class AppendToLog(Effect, frozen=True, kw_only=True):
    """Append batches of the input being stepped, stamped with the base offset and leader epoch given here.

    The bytes of the n-th batch are those of the n-th batch that the input carried for this partition, or ``contents``
    where the broker made the batches itself. If a transaction was verified first, the batches came with the request
    ``request_id`` in an earlier step; the driver keeps the bytes of such requests until they are answered.
    """

    partition: TopicPartition
    batches: tuple[BatchDescriptor, ...]
    contents: tuple[bytes, ...] | None = None
    request_id: RequestId | None = None


class TruncateLog(Effect, frozen=True, kw_only=True):
    """Drop every batch whose last offset is at or above ``offset``; the log then ends at ``offset``.

    The recovery-point checkpoint is rewritten at once (Kafka's ``AbstractFetcherThread``).
    """

    partition: TopicPartition
    offset: Offset


class RestartLog(Effect, frozen=True, kw_only=True):
    """Drop everything and start again, empty, at ``offset``."""

    partition: TopicPartition
    offset: Offset


class SyncLog(Effect, frozen=True, kw_only=True):
    """Make the log's present state durable, truncations included, so that it survives a power loss."""

    partition: TopicPartition


class WriteEpochCheckpoint(Effect, frozen=True, kw_only=True):
    """Rewrite ``leader-epoch-checkpoint`` with these entries and sync it."""

    partition: TopicPartition
    epochs: tuple[EpochEntry, ...]


class RaiseLogStart(Effect, frozen=True, kw_only=True):
    """Raise the log start: records below ``offset`` are deleted; whole segments below may be removed."""

    partition: TopicPartition
    offset: Offset


class WriteHighWatermarks(Effect, frozen=True, kw_only=True):
    """Rewrite ``replication-offset-checkpoint`` with the high watermark of every log."""

    high_watermarks: tuple[tuple[TopicPartition, Offset], ...]


class WriteLogCheckpoints(Effect, frozen=True, kw_only=True):
    """Rewrite the recovery-point and log-start-offset checkpoints of every directory."""


class CloseLogs(Effect, frozen=True, kw_only=True):
    """Flush and close every log, write the checkpoints and the clean-shutdown file with this epoch, and exit 0.

    The epoch is ``None`` if registration never succeeded; the file then holds -1 (KIP-966).
    """

    broker_epoch: BrokerEpoch | None


class StopNode(Effect, frozen=True, kw_only=True):
    """End the process in order, without touching logs (the controller, or a broker whose logs are not open).

    With ``proven_epoch``, that epoch is first written to the clean-shutdown files that exist, or existed when loading
    began.
    """

    proven_epoch: BrokerEpoch | None = None


ControllerEffect: TypeAlias = (
    SendRequest | SendResponse | RecordEvent | AppendMetadata | PublishMetadata | DrawNumber | StopNode
)

FileEffect: TypeAlias = (
    LoadLogs
    | CreateLog
    | DeleteLog
    | RenameStrayLog
    | DeleteStrayLog
    | RecoverLog
    | ReadRecords
    | AppendToLog
    | TruncateLog
    | RestartLog
    | SyncLog
    | WriteEpochCheckpoint
    | RaiseLogStart
    | WriteHighWatermarks
    | WriteLogCheckpoints
)
MessageEffect: TypeAlias = SendRequest | SendResponse | CloseConnection | OpenMetadataStream
BrokerEffect: TypeAlias = FileEffect | RecordEvent | MessageEffect | CloseLogs | StopNode
