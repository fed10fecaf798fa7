"""The content of the tables except event tables: one struct per table, one value per row.

Each row begins with the columns of ``Identity`` and ``Moment``, which the structs below leave out. Within a
version of the tables, columns and tables are only added; renaming or removing one begins a new version.
"""

from enum import Enum
from typing import Any, Final, TypeVar

import msgspec

from laststand.emulator.analysis.schema import Milliseconds, Nanoseconds, Records, Seconds
from laststand.emulator.core import events
from laststand.emulator.core.history import Attempt, PolledBatch
from laststand.emulator.core.types import (
    BrokerId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
)

TABLES_VERSION: Final = 1
"""The version of names and meanings of tables and columns."""

RowT = TypeVar("RowT", bound=msgspec.Struct)


def row_of(kind: type[RowT], source: object, /, **own: Any) -> RowT:
    """Returns a row whose columns are the attributes of their names in ``source``, but for those in ``own``.

    Enums are columns by their values.
    """
    shared = {
        name: getattr(source, name) for name in kind.__struct_fields__ if name not in own and hasattr(source, name)
    }
    columns = {name: value.value if isinstance(value, Enum) else value for name, value in shared.items()}
    return kind(**columns, **own)


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The run that a row belongs to.

    Attributes:
        run: the run's directory: an absolute path.
        scenario: name of the scenario; ``simulated/<seed>`` for a schedule of the simulator.
        era: the era whose rules the run followed; null if the run does not record it.
        changed: the run's changes of the era's rules and the scenario's properties (``elr=off``), separated by commas;
            empty for the era as it is.
        seed: seed of the run's random choices; null if the run does not record it.
    """

    run: str
    scenario: str
    era: str | None
    changed: str
    seed: int | None


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a row.

    Attributes:
        time_ns: the machine's monotonic clock, virtual in the simulator: comparable within a run.
        time_s: since the run's first event.
    """

    time_ns: Nanoseconds
    time_s: Seconds


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The place of an event in the run's files.

    Attributes:
        type: name of the event's type.
    """

    node: NodeId
    incarnation: int
    sequence: int
    type: str


class EventRow(events.Event, frozen=True, kw_only=True):
    """Every event of every type, with the columns that all types share; a type's own columns are in its table."""

    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row per run; its time is that of the first event.

    Attributes:
        end_s: when the last event was written.
        workload_begin_s: when the first record was sent; null if none was.
        workload_end_s: when the last send was answered or given up; null if none was sent.
        started: when the run began by the calendar (ISO 8601, UTC); null in the simulator.
        brokers: number of brokers that were started.
        switches: the rules of the controller.
        problem: why the plan did not reach its end; null if it did.
        tables_version: version of these tables.
    """

    end_s: Seconds
    workload_begin_s: Seconds | None
    workload_end_s: Seconds | None
    started: str | None
    brokers: int
    switches: dict[str, str]
    problem: str | None
    tables_version: int = TABLES_VERSION


class HistoryRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row per operation of a client: a send of a batch, a fetch, or the final read; its time is when it began.

    Attributes:
        kind: send, poll or final_read.
        process: name of the client.
        operation_id: the cause id of everything that followed from the operation.
        outcome: ok, fail (certainly not done) or info (nobody knows).
        end_s: when the outcome was known.
        latency_ms: from begin to end of a send.
        error: Kafka's name of the error.
        acks: of a send: -1 (all), 0 or 1.
        first_record_id: of a send: records of a producer are numbered from 0.
        record_count: records that were sent or received.
        base_offset: of a send: the acknowledged base offset.
        attempts: of a send: all tries in order.
        phase: of a poll: live, or final for the consumer that reads everything at the end.
        node: of a poll: the node that was asked; of a send: the node that answered last.
        position: of a poll: the requested offset.
        seek: of a poll: whether the consumer jumped to that offset.
        high_watermark: of a poll: high watermark in the response.
        log_start_offset: of a poll: log start offset in the response.
        batches: of a poll: the received batches.
        start_offset: of a final read: where it began.
        end_offset: of a final read: where it ended, exclusive.
    """

    kind: str
    process: str
    operation_id: str
    topic: str
    partition: int
    topic_id: str | None
    outcome: str
    end_s: Seconds
    latency_ms: Milliseconds | None = None
    error: str | None = None
    acks: int | None = None
    first_record_id: int | None = None
    record_count: Records | None = None
    base_offset: Offset | None = None
    attempts: tuple[Attempt, ...] = ()
    phase: str | None = None
    node: NodeId | None = None
    position: Offset | None = None
    seek: bool | None = None
    high_watermark: Offset | None = None
    log_start_offset: Offset | None = None
    batches: tuple[PolledBatch, ...] = ()
    start_offset: Offset | None = None
    end_offset: Offset | None = None


class ReplicaBatchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row per batch in the final log of a replica, as recovery would keep it; its time is the end of the run.

    Attributes:
        node: the node that has the log.
        leader_epoch: stamped on the batch.
        is_control: whether it is a control batch.
    """

    node: NodeId
    topic: str
    partition: int
    topic_id: str | None
    base_offset: Offset
    last_offset: Offset
    leader_epoch: LeaderEpoch
    crc: int
    record_count: Records
    producer_id: int | None
    producer_epoch: ProducerEpoch
    base_sequence: int
    is_control: bool


class FaultRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row per fault of the plan; its time is when it began.

    Attributes:
        fault: its name.
        targets: nodes and links that the fault was injected into, as plans write them: 2, 0->100.
        nodes: the nodes among the targets, and at the ends of links among them.
        effect_s: when the fault was seen to take effect; null if it had no effect.
        end_s: when the last of its targets was seen to be healed; null if that never happened.
        duration_s: from begin to end; null if the fault never ended.
        had_effect: whether it was seen to take effect.
        effect: how the effect was seen.
        metadata_offset: end of the metadata that was committed before the fault, exclusive.
        healed_metadata_offset: end of the metadata that was committed when the fault had ended, exclusive.
    """

    fault: str
    targets: tuple[str, ...]
    nodes: tuple[NodeId, ...]
    effect_s: Seconds | None
    end_s: Seconds | None
    duration_s: Seconds | None
    had_effect: bool
    effect: str | None
    metadata_offset: MetadataOffset | None
    healed_metadata_offset: MetadataOffset | None


class PartitionChangeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row per committed state of a partition, in the controller's order; its time is when that was committed.

    Attributes:
        end_s: end of the state: the next change, the deletion of the topic or the end of the run.
        reason: the cause of the change.
        previous_leader: the leader before the change; null if there was none, or the partition is new.
        previous_isr: the ISR before.
        previous_elr: the eligible leader replicas before.
    """

    topic: str
    partition: int
    topic_id: str
    metadata_offset: MetadataOffset
    end_s: Seconds
    reason: str
    election: str
    broker_id: BrokerId | None
    effective_min_isr: int
    leader: BrokerId | None
    previous_leader: BrokerId | None
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    previous_isr: tuple[BrokerId, ...]
    elr: tuple[BrokerId, ...]
    previous_elr: tuple[BrokerId, ...]
    last_known_elr: tuple[BrokerId, ...]
    last_known_leader: BrokerId | None
    leader_recovery_state: int
    adding_replicas: tuple[BrokerId, ...]
    removing_replicas: tuple[BrokerId, ...]


class HighWatermarkRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row per change of a replica's high watermark.

    Attributes:
        node: the replica's node.
        role: leader or follower.
    """

    node: NodeId
    topic: str
    partition: int
    topic_id: str
    role: str
    old: Offset
    new: Offset
    log_end_offset: Offset
    leader_epoch: LeaderEpoch


class CheckOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    check_id: str
    status: str
    count: int


class AcksCount(msgspec.Struct, frozen=True, kw_only=True):
    """Records sent with one kind of acks."""

    acks: int
    sent: Records
    acked: Records
    lost: Records
    never_acked: Records


class VerdictRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row per run, as ``laststand verify`` judges it; its time is the end of the run.

    Attributes:
        verdict: valid, violation or unknown.
        guarantee: broken if any lost record is within the guarantee, exceeded if records were lost outside it.
        lost_records: records acknowledged with acks=all that are not where they must be.
        violated: ids of the checks that fired.
        unknown_reasons: reasons why the run proves nothing.
        checks: every check: id, result, and number of findings.
        counts: records by acks: sent, acked, lost, never_acked. Losses of acks=0 are not tracked.
    """

    verdict: str
    guarantee: str | None
    lost_records: Records
    violated: tuple[str, ...]
    unknown_reasons: tuple[str, ...]
    checks: tuple[CheckOutcome, ...]
    counts: tuple[AcksCount, ...]


class LostRecordRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row per batch that was acknowledged and is not where it must be; its time is when it was acknowledged.

    Attributes:
        base_offset: offset of the batch's first record; null if the producer received none.
        last_offset: offset of its last record, inclusive.
        acks: of the send: -1 (all) or 1.
        operation_id: of the send.
        acknowledged_by: the node that acknowledged it.
        leader_epoch: leader epoch in which it was appended.
        acked_epoch: the leader epoch in which it was acknowledged; later than the append's if the producer had tried
            again.
        loss_class: kind of the loss: which logs still have the batch.
        holders: nodes whose final logs have the batch.
        lacking_leader: the first leader whose log lacked the batch.
        lacking_epoch: the leader epoch of that leader.
    """

    topic: str
    partition: int
    topic_id: str | None
    base_offset: Offset | None
    last_offset: Offset | None
    record_count: Records
    acks: int
    operation_id: str
    acknowledged_by: NodeId | None
    leader_epoch: LeaderEpoch | None
    acked_epoch: LeaderEpoch | None
    loss_class: str
    holders: tuple[NodeId, ...]
    lacking_leader: NodeId | None
    lacking_epoch: LeaderEpoch | None


class AvailabilityRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row per period of equal availability of a partition to producers; its time is the begin of the period.

    Attributes:
        state: writable; below_min_isr: there is a leader, which refuses acks=all; leaderless.
        end_s: when the period ended.
        duration_s: how long it lasted.
        leaders: the leaders in the period, in order.
        acked_records: records that were acknowledged in the period, with any acks but 0.
        acked_all_records: records that were acknowledged in the period with acks=all.
    """

    topic: str
    partition: int
    topic_id: str
    state: str
    end_s: Seconds
    duration_s: Seconds
    leaders: tuple[BrokerId, ...]
    acked_records: Records
    acked_all_records: Records
