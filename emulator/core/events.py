"""The events that nodes and the harness record, and that the oracle reads.

One struct per event, named in the past tense. A line of ``events/<node>-<incarnation>.jsonl`` is the event's fields
plus the envelope that the writer adds (``laststand.emulator.core.packed`` has the other form of the same)::

    {"run": "...", "node": 1, "incarnation": 2, "sequence": 7, "time_ns": 81, "type": "BatchAppended", "cause_id": ...}

``sequence`` starts at 0 in each file and has no gaps. ``time_ns`` is the machine's monotonic clock (virtual in the
simulator) at the start of the turn that led to the event; it orders the lines of one machine for human readers, but no
check uses it. Adding a field is compatible; renaming one
is a breaking change with a changelog line.
"""

from enum import Enum
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    BrokerState,
    CauseId,
    ChangeReason,
    ConfigResource,
    FenceReason,
    IncarnationId,
    IsrAnswer,
    LeaderEpoch,
    LeaderRecoveryState,
    LogDeletedReason,
    MessageFate,
    MetadataOffset,
    NodeId,
    NodeRole,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
    RecoveryDropReason,
    RecoveryOrigin,
    RecoveryStrategy,
    RequestFailure,
    StrayCleanup,
    StrayReason,
    TopicId,
    TruncationReason,
    Way,
    Witness,
    ZnodeWrite,
)


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=True):
    """Base of all events."""

    cause_id: CauseId

    def describe(self) -> str:
        """Returns the one text form used by logs, expected test output and reports."""
        partition = f" {self.topic}-{self.partition}" if isinstance(self, PartitionEvent) else ""
        words = [
            f"{name}={_text(getattr(self, name))}"
            for name in self.__struct_fields__
            if name not in ("cause_id", "topic", "partition", "topic_id")
        ]
        return " ".join([f"{type(self).__name__}{partition}", *words])


def _text(value: object) -> str:
    match value:
        case None:
            return "none"
        case Enum():
            return str(value.value) if isinstance(value.value, str) else value.name
        case ReplicaProgress():
            return f"{value.broker_id}:{_text(value.log_end_offset)}@{_text(value.leader_epoch)}"
        case ReplicaAnswer():
            return f"{value.broker_id}:{value.log_end_offset}@{_text(value.last_written_leader_epoch)}"
        case tuple():
            return "(" + ",".join(_text(item) for item in value) + ")"
        case _:
            return str(value)


class PartitionEvent(Event, frozen=True, kw_only=True):
    """Base of events about one partition of one topic incarnation."""

    topic: str
    partition: int
    topic_id: TopicId


# --- Any node -----------------------------------------------------------------------------------------------------


class NodeStarted(Event, frozen=True, kw_only=True):
    """First line of every file. ``wall_time_ns`` anchors the monotonic clock to the calendar.

    Attributes:
        driver: of a harness: the driver of the run, as in ``cluster.yaml``; else ``None``.
        ending: of the harness of a scenario: ``restore`` if it heals all faults at the end, else ``as_is``.
        evidence_format: of a harness: ``EVIDENCE_FORMAT`` of its version; ``None`` before there was one.
        kafka_clients: of a harness: ids of Kafka clients with links of their own, by client name.
        standby_controllers: of a harness: the controllers that were not voters when the cluster was formatted.
    """

    role: NodeRole
    incarnation_id: IncarnationId
    switches: dict[str, str]
    properties: dict[str, str]
    wall_time_ns: int
    witness: Witness = Witness.PROCESS
    driver: str | None = None
    ending: str | None = None
    evidence_format: int | None = None
    kafka_clients: dict[str, NodeId] = {}
    standby_controllers: tuple[NodeId, ...] = ()


EVIDENCE_FORMAT: Final = 2
"""1: the harness vouches for events and histories. 2: also for logs and descriptions, and it notes its orders."""


class NodeStopped(Event, frozen=True, kw_only=True):
    """Last event of a node that ended in order."""


class FileSealed(Event, frozen=True, kw_only=True):
    """Last line of a file that its writer closed.

    Attributes:
        lines: number of lines before it.
        digest: of those lines, line ends included: SHA-256, in hexadecimal digits, over the SHA-256 of each MiB.
    """

    lines: int
    digest: str


# --- Broker -------------------------------------------------------------------------------------------------------


class BrokerStateChanged(Event, frozen=True, kw_only=True):
    """A broker went from one state of its life cycle to another."""

    old: BrokerState
    new: BrokerState
    broker_epoch: BrokerEpoch | None


class MetadataApplied(Event, frozen=True, kw_only=True):
    """A broker has applied metadata up to ``end_offset`` (exclusive), perhaps in several steps."""

    start_offset: MetadataOffset
    end_offset: MetadataOffset


class LogOpened(PartitionEvent, frozen=True, kw_only=True):
    """A log was created, or found at start and made ready; values after clamping and trimming."""

    is_clean: bool
    log_start_offset: Offset
    log_end_offset: Offset
    high_watermark: Offset
    recovery_point: Offset
    epochs: tuple[tuple[LeaderEpoch, Offset], ...]


class LogFlushed(PartitionEvent, frozen=True, kw_only=True):
    """The recovery point of a log rose: all records below it are on disk, and survive a power loss.

    A broker process records this within a quarter of a second. With Kafka's defaults this is rare: acknowledged
    records are only in page caches.
    """

    recovery_point: Offset


class LogDeleted(PartitionEvent, frozen=True, kw_only=True):
    """A log is no longer served."""

    reason: LogDeletedReason
    log_end_offset: Offset


class StrayDetected(PartitionEvent, frozen=True, kw_only=True):
    """A log found at start does not belong here (KIP-550). ``topic_id`` is its own, empty where it has none."""

    reason: StrayReason
    action: StrayCleanup
    log_end_offset: Offset


class StrayDeleted(PartitionEvent, frozen=True, kw_only=True):
    """The files of a stray are gone: its grace is over."""


class RecoveryStarted(PartitionEvent, frozen=True, kw_only=True):
    """A leader that was elected uncleanly recovers the partition; until then it serves no requests (KIP-704).

    ``partition_epoch`` is that of the metadata with state RECOVERING.
    """

    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    log_start_offset: Offset
    log_end_offset: Offset


class RecoveryFinished(PartitionEvent, frozen=True, kw_only=True):
    """A leader has finished its recovery step and proposes RECOVERED; with the results of the step.

    Attributes:
        leader_epoch: leader epoch of the recovery.
        scanned_from: start of the scan: the base of the segment that holds the recovery point.
        batch_count: valid batches from there on.
        producer_count: idempotent producers whose state was rebuilt.
        old_end_offset: log end offset before.
        log_end_offset: log end offset now; lower if the scan found a bad batch.
        duration_ms: time since ``RecoveryStarted``.
    """

    leader_epoch: LeaderEpoch
    scanned_from: Offset
    batch_count: int
    producer_count: int
    old_end_offset: Offset
    log_end_offset: Offset
    duration_ms: int


class AppendRole(Enum):
    """The role of a broker that appended a batch."""

    LEADER = "leader"
    FOLLOWER = "follower"


class BatchAppended(PartitionEvent, frozen=True, kw_only=True):
    """A batch is in this node's log (its page cache, that is). ``producer_id`` is ``None`` without idempotence."""

    role: AppendRole
    base_offset: Offset
    last_offset: Offset
    leader_epoch: LeaderEpoch
    current_leader_epoch: LeaderEpoch
    crc: int
    record_count: int
    producer_id: ProducerId | None
    producer_epoch: ProducerEpoch
    base_sequence: int

    @property
    def ends_transaction(self) -> bool:
        """The batch is a transaction marker: it has a producer id, but no sequence number."""
        return self.producer_id is not None and self.base_sequence < 0


class LogTruncated(PartitionEvent, frozen=True, kw_only=True):
    """A log was truncated."""

    reason: TruncationReason
    old_end_offset: Offset
    new_end_offset: Offset
    high_watermark: Offset
    leader: BrokerId | None
    leader_epoch: LeaderEpoch


class ReplicaProgress(msgspec.Struct, frozen=True):
    """A leader's knowledge of a replica: its log end offset and the leader epoch in which that was learned."""

    broker_id: BrokerId
    log_end_offset: Offset | None
    leader_epoch: LeaderEpoch | None


class HighWatermarkAdvanced(PartitionEvent, frozen=True, kw_only=True):
    """A leader's high watermark rose; with all inputs of the high watermark rule."""

    old: Offset
    new: Offset
    leader_epoch: LeaderEpoch
    log_end_offset: Offset
    committed_isr: tuple[BrokerId, ...]
    maximal_isr: tuple[BrokerId, ...]
    joiners: tuple[BrokerId, ...]
    effective_min_isr: int
    replicas: tuple[ReplicaProgress, ...]


class FollowerHighWatermarkUpdated(PartitionEvent, frozen=True, kw_only=True):
    """A follower took over its leader's high watermark; may go back after an election."""

    old: Offset
    new: Offset
    log_end_offset: Offset
    leader_epoch: LeaderEpoch


class LogStartOffsetRaised(PartitionEvent, frozen=True, kw_only=True):
    """The log start rose to ``new``: the records below were deleted deliberately."""

    old: Offset
    new: Offset


class BecameLeader(PartitionEvent, frozen=True, kw_only=True):
    """A broker became leader, or stays leader in a newer epoch."""

    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    epoch_start_offset: Offset
    high_watermark: Offset
    isr: tuple[BrokerId, ...]


class BecameFollower(PartitionEvent, frozen=True, kw_only=True):
    """A broker became follower; ``leader`` is ``None`` if the partition has no leader."""

    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    log_end_offset: Offset
    high_watermark: Offset


class AlterPartitionProposed(PartitionEvent, frozen=True, kw_only=True):
    """A leader proposes an ISR change. ``broker_epochs`` are the members' epochs in the request."""

    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    committed_isr: tuple[BrokerId, ...]
    proposed_isr: tuple[BrokerId, ...]
    maximal_isr: tuple[BrokerId, ...]
    broker_epochs: tuple[BrokerEpoch | None, ...]


class AlterPartitionAnswered(PartitionEvent, frozen=True, kw_only=True):
    """A leader got the answer to its AlterPartition."""

    error: str
    outcome: IsrAnswer
    committed_isr: tuple[BrokerId, ...]
    partition_epoch: PartitionEpoch


class ProduceAnswered(PartitionEvent, frozen=True, kw_only=True):
    """A broker answered a produce request; ``base_offset`` is ``None`` if nothing was appended.

    ``leader_epoch`` is the broker's own when it answered; ``None`` where it has no such partition.
    """

    acks: int
    error: str
    base_offset: Offset | None
    record_count: int
    high_watermark: Offset
    committed_isr: tuple[BrokerId, ...]
    leader_epoch: LeaderEpoch | None = None


class PeerUnreachable(Event, frozen=True, kw_only=True):
    """A request to ``peer`` failed, for the first time since one succeeded."""

    peer: NodeId
    failure: RequestFailure


class PeerReachable(Event, frozen=True, kw_only=True):
    """A request to ``peer`` succeeded again."""

    peer: NodeId


class AuthorizationDenied(Event, frozen=True, kw_only=True):
    """A request was not authorized; recorded the first time since the node's access control lists changed.

    Attributes:
        api: Kafka's name of the request; ``Stream`` is the metadata stream.
        principal: of the sender, such as ``User:broker-1``.
        host: of the sender.
        operation: the operation that is not allowed.
        resource: the resource of the operation, such as ``CLUSTER:kafka-cluster``.
    """

    api: str
    principal: str
    host: str
    operation: str
    resource: str


class AuthenticationFailed(Event, frozen=True, kw_only=True):
    """A Kafka client or gRPC caller failed to authenticate; the answer that it gets has fewer details.

    Recorded once per host, mechanism and reason; metrics count every failure.

    Attributes:
        address: of the client or of its proxy; empty where gRPC does not say.
        mechanism: of SASL, as the client named it, ``SSL``, or ``token`` for the cluster's token.
        reason: the reason, in words.
    """

    address: str
    mechanism: str
    reason: str


class OperationFailed(Event, frozen=True, kw_only=True):
    """An operation of a node ended with an exception that nobody foresaw, which is a bug; the node goes on.

    Attributes:
        operation: the kind of the request, or of whatever else started it.
        error: the exception, with its type.
    """

    operation: str
    error: str


class MessageIntercepted(Event, frozen=True, kw_only=True):
    """A fault affected a single message; ``cause_id`` is the message's.

    Attributes:
        source: the node that opened the connection.
        target: the node that the connection was opened to.
        api: Kafka's name; ``Stream`` is the metadata stream.
        way: whether the message went from ``source`` to ``target`` or back.
        fate: the effect of the fault.
    """

    source: NodeId
    target: NodeId
    api: str
    way: Way
    fate: MessageFate

    @property
    def channel(self) -> str:
        """The name, as in plans, of all messages of this kind."""
        return f"{self.source}->{self.target} {self.api} {self.way}"


class ClientConnected(Event, frozen=True, kw_only=True):
    """A Kafka client sent the first request on a new connection; ApiVersions alone does not count.

    Attributes:
        process: the connection as a process of the history (``ForeignProcess``).
        address: of the client or of its proxy.
        software: name and version that the client gave; empty if it gave none.
    """

    process: str
    address: str
    software: str


class ClientDisconnected(Event, frozen=True, kw_only=True):
    """The connection of a Kafka client was closed."""

    process: str


class OrderReceived(Event, frozen=True, kw_only=True):
    """A node received an order; recorded before it performs the order. Read-only requests are not orders.

    Attributes:
        api: Kafka's name of an administrator's request; ``Intercept`` and ``Change`` are about messages and the clock.
        order: the full order, as JSON.
        giver: peer address of the connection that the order came over.
    """

    api: str
    order: str
    giver: str


# --- Coordinators of transactions and groups ----------------------------------------------------------------------


class TransitionBegun(PartitionEvent, frozen=True, kw_only=True):
    """A coordinator began a transactional id's transition to another state: it appends the record of it.

    Attributes:
        leader_epoch: of the partition, which is the coordinator's epoch.
        transactional_id: of the producer.
        producer_id: the producer's id after the transition.
        producer_epoch: the producer's epoch after the transition; for a decided transaction, that of its markers.
        old: the state before, by Kafka's name (``Ongoing``).
        new: the state that is written, likewise (``PrepareCommit``).
        partitions: the partitions of the transaction.
        offset: of the record, if the log accepts the record.
    """

    leader_epoch: LeaderEpoch
    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    old: str
    new: str
    partitions: tuple[str, ...]
    offset: Offset


class TransitionEnded(PartitionEvent, frozen=True, kw_only=True):
    """A transactional id's transition took effect, as its record was committed, or failed.

    Attributes:
        leader_epoch: of the partition, which is the coordinator's epoch.
        transactional_id: of the producer.
        error: the error; NONE if it took effect.
    """

    leader_epoch: LeaderEpoch
    transactional_id: str
    error: str


class MarkersSent(PartitionEvent, frozen=True, kw_only=True):
    """A coordinator starts to send the markers of a decided transaction.

    Attributes:
        leader_epoch: of the partition, which is the coordinator's epoch.
        transactional_id: of the producer.
        producer_id: in the markers.
        producer_epoch: in the markers.
        result: ``commit`` or ``abort``.
        partitions: the partitions that need a marker.
        decided_at: offset of the record with the decision.
    """

    leader_epoch: LeaderEpoch
    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    result: str
    partitions: tuple[str, ...]
    decided_at: Offset


class PositionReturned(PartitionEvent, frozen=True, kw_only=True):
    """A coordinator answered an OffsetFetch with a group's position.

    Attributes:
        leader_epoch: of the partition, which is the coordinator's epoch.
        group_id: of the group.
        source: the partition that the group reads.
        position: the offset of the next record to read.
        counts_from: offset of the record that put the position into effect: its own record, or its transaction's
            marker.
    """

    leader_epoch: LeaderEpoch
    group_id: str
    source: str
    position: Offset
    counts_from: Offset


# --- Controller, once committed -----------------------------------------------------------------------------------


class BrokerRegistered(Event, frozen=True, kw_only=True):
    """A registration was committed. ``is_clean``: the controller considers the previous shutdown clean."""

    metadata_offset: MetadataOffset
    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    incarnation_id: IncarnationId
    previous_broker_epoch: BrokerEpoch | None
    stored_broker_epoch: BrokerEpoch | None
    is_clean: bool


class BrokerFenced(Event, frozen=True, kw_only=True):
    """A broker lost its session, or is fenced for another reason."""

    metadata_offset: MetadataOffset
    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    reason: FenceReason


class BrokerUnfenced(Event, frozen=True, kw_only=True):
    """A broker was unfenced, and may become leader."""

    metadata_offset: MetadataOffset
    broker_id: BrokerId
    broker_epoch: BrokerEpoch


class ControlledShutdownStarted(Event, frozen=True, kw_only=True):
    """A broker begins a controlled shutdown."""

    metadata_offset: MetadataOffset
    broker_id: BrokerId
    broker_epoch: BrokerEpoch


class TopicCreated(Event, frozen=True, kw_only=True):
    """A topic exists."""

    metadata_offset: MetadataOffset
    topic: str
    topic_id: TopicId


class TopicDeleted(Event, frozen=True, kw_only=True):
    """A topic does not exist any more."""

    metadata_offset: MetadataOffset
    topic: str
    topic_id: TopicId


class ConfigChanged(Event, frozen=True, kw_only=True):
    """A configuration entry was set, or deleted where ``value`` is ``None``."""

    metadata_offset: MetadataOffset
    resource: ConfigResource
    resource_name: str
    name: str
    value: str | None


class FeatureChanged(Event, frozen=True, kw_only=True):
    """A feature was finalized."""

    metadata_offset: MetadataOffset
    name: str
    feature_level: int


class LogDirectoriesChanged(Event, frozen=True, kw_only=True):
    """A broker process registered again, with other log directories."""

    metadata_offset: MetadataOffset
    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    log_dirs: tuple[str, ...]


class ElrCleared(Event, frozen=True, kw_only=True):
    """ELR and last known ELR were cleared, for one topic or (``None``) for all.

    Each partition that this changed has a ``PartitionChanged`` with the same offset.
    """

    metadata_offset: MetadataOffset
    topic_id: TopicId | None


class ProducerIdsAllocated(Event, frozen=True, kw_only=True):
    """A broker got a block of producer ids; ``next_producer_id`` is the first unallocated id."""

    metadata_offset: MetadataOffset
    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    next_producer_id: ProducerId


class ZnodeWritten(Event, frozen=True, kw_only=True):
    """A ZooKeeper write changed a node; the events after it describe its meaning for Kafka.

    Attributes:
        metadata_offset: the zxid; the changes of one transaction share it.
        path: of the node.
        write: the kind of change.
        session_id: session of the client that wrote, or whose end removed the node.
    """

    metadata_offset: MetadataOffset
    path: str
    write: ZnodeWrite
    session_id: int


class OtherRecordCommitted(Event, frozen=True, kw_only=True):
    """A metadata record that no check depends on was committed; ``record`` is its name."""

    metadata_offset: MetadataOffset
    record: str


class ControllerActivated(Event, frozen=True, kw_only=True):
    """One of several controllers became the active one.

    Attributes:
        controller_epoch: of its claim.
        metadata_end_offset: end of the committed metadata that it begins with, exclusive.
    """

    controller_epoch: LeaderEpoch
    metadata_end_offset: MetadataOffset


class ControllerDeposed(Event, frozen=True, kw_only=True):
    """A controller is no longer active; its uncommitted records may or may not be committed.

    Attributes:
        controller_epoch: of its claim.
    """

    controller_epoch: LeaderEpoch


class QuorumVoteGranted(Event, frozen=True, kw_only=True):
    """One of several controllers granted its vote; pre-votes are not recorded.

    Attributes:
        directory_id: of its disk.
        quorum_epoch: of the election.
        candidate: the controller voted for, maybe itself.
        candidate_directory_id: of the candidate's disk; ``None`` where voters have none.
    """

    directory_id: str | None
    quorum_epoch: LeaderEpoch
    candidate: NodeId
    candidate_directory_id: str | None


class QuorumLeaderElected(Event, frozen=True, kw_only=True):
    """One of several controllers was elected leader of the metadata quorum.

    Attributes:
        directory_id: of its disk.
        quorum_epoch: the epoch that it leads.
        log_end_offset: end of its metadata log, exclusive, where its own epoch begins.
    """

    directory_id: str | None
    quorum_epoch: LeaderEpoch
    log_end_offset: MetadataOffset


class QuorumLeaderFollowed(Event, frozen=True, kw_only=True):
    """One of several controllers follows a leader of the metadata quorum.

    Attributes:
        directory_id: of its disk.
        quorum_epoch: of the leader.
        leader: the leader that it follows.
    """

    directory_id: str | None
    quorum_epoch: LeaderEpoch
    leader: NodeId


class MetadataCommittedUpTo(Event, frozen=True, kw_only=True):
    """The high watermark of one of several controllers moved: it knows the records below to be committed.

    Attributes:
        directory_id: of its disk.
        quorum_epoch: the controller's epoch at that time.
        high_watermark: end of the committed records, exclusive.
        is_leader: whether it is the quorum leader, which counts the replicas that have each record.
    """

    directory_id: str | None
    quorum_epoch: LeaderEpoch
    high_watermark: MetadataOffset
    is_leader: bool


class MetadataTruncated(Event, frozen=True, kw_only=True):
    """One of several controllers truncated records of its metadata log that its leader does not have.

    Attributes:
        directory_id: of its disk.
        quorum_epoch: of the leader.
        old_end_offset: its log end offset before.
        new_end_offset: its log end offset afterwards.
    """

    directory_id: str | None
    quorum_epoch: LeaderEpoch
    old_end_offset: MetadataOffset
    new_end_offset: MetadataOffset


class Election(Enum):
    """The way in which a committed partition change got its leader."""

    NONE = "none"
    """The leader did not change."""

    ISR = "isr"
    ELR = "elr"
    LAST_KNOWN_LEADER = "last_known_leader"
    UNCLEAN = "unclean"
    NO_CANDIDATE = "no_candidate"
    """The partition became leaderless."""


class PartitionChanged(PartitionEvent, frozen=True, kw_only=True):
    """A partition record or change was committed; with the partition's whole new state, and the reason.

    Attributes:
        metadata_offset: of the record.
        reason: the trigger of the change.
        election: how a leader was elected, if one was.
        broker_id: the broker that the reason is about, or the sender of the AlterPartition.
        effective_min_isr: the min ISR that the controller used for the decision.
    """

    metadata_offset: MetadataOffset
    reason: ChangeReason
    election: Election
    broker_id: BrokerId | None
    effective_min_isr: int
    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    elr: tuple[BrokerId, ...]
    last_known_elr: tuple[BrokerId, ...]
    last_known_leader: BrokerId | None
    leader_recovery_state: LeaderRecoveryState
    adding_replicas: tuple[BrokerId, ...] = ()
    removing_replicas: tuple[BrokerId, ...] = ()


class UncleanMethod(Enum):
    """The method by which an unclean election found its leader."""

    FIRST = "first"
    """The first replica of the assignment that may lead."""

    RANDOM = "random"
    """Drawn among the replicas that may lead."""

    LAST_KNOWN_LEADER = "last_known_leader"
    """The leader at the time when the partition went offline."""

    DESIGNATED = "designated"
    """The administrator named it."""

    LONGEST_LOG = "longest_log"
    """Unclean recovery compared what the replicas hold (KIP-966)."""


class ReplicaAnswer(msgspec.Struct, frozen=True):
    """A replica's report of its log; the leader epoch is that of its last record, ``None`` if it has none."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    last_written_leader_epoch: LeaderEpoch | None
    log_end_offset: Offset


class UncleanLeaderElected(PartitionEvent, frozen=True, kw_only=True):
    """An unclean election was committed; with all inputs of the decision. Follows its ``PartitionChanged``.

    Attributes:
        metadata_offset: of the record.
        leader: the elected leader.
        leader_epoch: the new leader epoch.
        method: how the leader was chosen.
        strategy: the strategy in effect for the topic, or requested.
        candidates: the replicas that the method could have chosen, in assignment order.
        draw: the random number that chose among them, if any.
        must_hear_from: the replicas whose answers a recovery had to wait for.
        answers: the replicas' answers that were used, in assignment order.
        discarded: replicas with a discarded answer: from an earlier incarnation, or for an older leader epoch.
        why: the reason of the choice, in words.
    """

    metadata_offset: MetadataOffset
    leader: BrokerId
    leader_epoch: LeaderEpoch
    method: UncleanMethod
    strategy: RecoveryStrategy
    candidates: tuple[BrokerId, ...]
    draw: int | None
    must_hear_from: tuple[BrokerId, ...]
    answers: tuple[ReplicaAnswer, ...]
    discarded: tuple[BrokerId, ...]
    why: str


class UncleanRecoveryStarted(PartitionEvent, frozen=True, kw_only=True):
    """The controller starts to ask the replicas of a leaderless partition for their log ends (KIP-966).

    The state of a recovery is not durable: another controller process starts again.
    """

    leader_epoch: LeaderEpoch
    strategy: RecoveryStrategy
    origin: RecoveryOrigin
    must_hear_from: tuple[BrokerId, ...]


class UncleanRecoveryDropped(PartitionEvent, frozen=True, kw_only=True):
    """An unclean recovery ended without choosing a leader."""

    leader_epoch: LeaderEpoch
    reason: RecoveryDropReason


class DrawReceived(Event, frozen=True, kw_only=True):
    """The driver drew the random number that chooses the leaders of later unclean elections."""

    number: int


class RegistrationRefused(Event, frozen=True, kw_only=True):
    """A broker's registration was refused; the controller and the broker write the first of several refusals alike.

    That a session of the broker's last process has not ended yet is no refusal: it passes.

    Attributes:
        broker_id: the broker that asked.
        error: the answer.
        reason: the rule in words; empty where the broker writes it, whose answer has only the error.
    """

    broker_id: BrokerId
    error: str
    reason: str = ""


class AlterPartitionDecided(PartitionEvent, frozen=True, kw_only=True):
    """The controller accepted or refused a proposed ISR; recorded when it answers."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    proposed_isr: tuple[BrokerId, ...]
    broker_epochs: tuple[BrokerEpoch | None, ...]
    error: str


# --- Harness ------------------------------------------------------------------------------------------------------


class IncarnationStarted(Event, frozen=True, kw_only=True):
    """The harness started a process; its event file must exist.

    Attributes:
        switches: the rules that it was started with, if they differ from the run's (``cluster.yaml``); else empty.
    """

    started_node: NodeId
    started_incarnation: int
    event_file: str
    switches: dict[str, str] = {}


class ClientStarted(Event, frozen=True, kw_only=True):
    """A client that the harness did not start was accepted; its history file must exist.

    Attributes:
        process: its name in the history.
        history_file: relative to the run's directory.
    """

    process: str
    history_file: str


class IncarnationEnd(Enum):
    """The end of an incarnation."""

    STOPPED = "stopped"
    """The process stopped cleanly: its file must end with ``NodeStopped``."""

    KILLED = "killed"
    """The plan ended it, by SIGKILL or by a fault of its disk; the page cache survived."""

    POWER_LOST = "power_lost"
    """SIGKILL by the plan, and unsynced data was then lost."""

    UNEXPECTED = "unexpected"
    """It ended by itself: the verdict cannot be valid."""


class IncarnationEnded(Event, frozen=True, kw_only=True):
    """A process ended. ``metadata_offset`` is the end (exclusive) of the metadata committed by then."""

    ended_node: NodeId
    ended_incarnation: int
    end: IncarnationEnd
    exit_code: int | None
    metadata_offset: MetadataOffset | None


class PowerLost(PartitionEvent, frozen=True, kw_only=True):
    """Records that a power loss removed from one log, found by scans of its files before and after."""

    lost_node: NodeId
    lost_incarnation: int
    keep: str
    old_end_offset: Offset
    new_end_offset: Offset


class BitFlipped(PartitionEvent, frozen=True, kw_only=True):
    """A bit of a stored batch was flipped on a node's disk, whether or not its process was running.

    Attributes:
        crc: CRC in the header, which matched before.
        damaged_crc: CRC of the damaged content; a reader that computes it has received damaged bytes.
    """

    flipped_node: NodeId
    base_offset: Offset
    last_offset: Offset
    leader_epoch: LeaderEpoch
    crc: int
    damaged_crc: int


class FaultLink(msgspec.Struct, frozen=True):
    """Connections that ``source`` opens to ``target``; 1000 stands for the clients, 1001 and up for Kafka clients."""

    source: NodeId
    target: NodeId


class FaultInjected(Event, frozen=True, kw_only=True):
    """The plan injected a fault, and the fault was observed to take effect.

    Attributes:
        fault: name of the fault.
        target: a node, or a link such as ``0->100``, in words.
        nodes: the target, if it is a node.
        links: the target, if it is a link.
        effect: the observed effect; ``None`` if no process was affected.
        metadata_offset: end (exclusive) of the metadata committed before, if the harness knows it.
        begun_ns: when the fault was injected, by the clock of ``time_ns``.
        proved_ns: when the effect was observed, by the same clock; ``None`` without an effect.
        silenced: links of Kafka clients on which responses may be dropped while the fault lasts.
    """

    fault: str
    target: str
    nodes: tuple[NodeId, ...] = ()
    links: tuple[FaultLink, ...] = ()
    effect: str | None
    metadata_offset: MetadataOffset | None = None
    begun_ns: int | None = None
    proved_ns: int | None = None
    silenced: tuple[FaultLink, ...] = ()

    @property
    def is_of_links(self) -> bool:
        """The fault concerns links; an isolation does, too, although it names only its node."""
        return bool(self.links) or self.fault == "isolate"


class FaultHealed(Event, frozen=True, kw_only=True):
    """The plan healed a fault.

    Attributes:
        fault: name of the fault; ``heal`` is every fault of a link, ``all`` every fault there is.
        target: a node, a link such as ``0->100``, or ``all``, in words.
        nodes: the target, if it is a node.
        links: the target, if it is a link; for ``all``, the links that had a fault.
        seen: the observed sign of the healing; ``None`` if there was none.
        metadata_offset: end (exclusive) of the metadata committed at that observation, if the harness knows it.
        begun_ns: when the fault was healed, by the clock of ``time_ns``.
        proved_ns: when the healing was observed, by the same clock; ``None`` if it was not.
    """

    fault: str
    target: str
    nodes: tuple[NodeId, ...] = ()
    links: tuple[FaultLink, ...] = ()
    seen: str | None
    metadata_offset: MetadataOffset | None = None
    begun_ns: int | None = None
    proved_ns: int | None = None

    def mends(self, injected: FaultInjected) -> bool:
        """Returns whether this ends a fault. ``heal`` does not end faults of a node itself, such as of its clock."""
        is_among = self.fault in ("all", injected.fault) or (self.fault == "heal" and injected.is_of_links)
        return is_among and self.target in ("all", injected.target)


class RequestedDeletion(msgspec.Struct, frozen=True):
    """An administrator asked for the records of a partition (``orders-0``) below an offset to be deleted.

    Without an offset, the high watermark is meant.
    """

    partition: str
    offset: Offset | None


class StepReached(Event, frozen=True, kw_only=True):
    """A step of the plan is done: its position, its text, and its observations.

    Attributes:
        unclean_elections: partitions (``orders-0``) for which the step requested a leader election, unclean if need be.
        deletions: deletions of records that the step requested from leaders.
    """

    step: int
    text: str
    seen: str
    unclean_elections: tuple[str, ...] = ()
    deletions: tuple[RequestedDeletion, ...] = ()


class ClusterSettled(Event, frozen=True, kw_only=True):
    """All faults were healed, and then every partition got a leader and its full ISR, or has a known reason not to.

    ``metadata_offset`` is the end (exclusive) of the metadata committed by then.
    """

    metadata_offset: MetadataOffset


class OrderGiven(Event, frozen=True, kw_only=True):
    """The harness, or a requester known to it, gives a node an order; recorded before it is sent.

    Attributes:
        given_to: the node.
        api: as in ``OrderReceived``.
        order: as in ``OrderReceived``.
    """

    given_to: NodeId
    api: str
    order: str


class OrderRelayed(Event, frozen=True, kw_only=True):
    """A broker relays, or itself performs, an order of a Kafka client; recorded before.

    Attributes:
        client: its name in the history.
        given_to: the node.
        api: as in ``OrderReceived``.
        order: as in ``OrderReceived``.
        metadata_offset: end of the metadata that the broker had applied; the order's effects were committed later.
        unclean_elections: as in ``StepReached``.
        deletions: as in ``StepReached``.
    """

    client: str
    given_to: NodeId
    api: str
    order: str
    metadata_offset: MetadataOffset
    unclean_elections: tuple[str, ...] = ()
    deletions: tuple[RequestedDeletion, ...] = ()


class FileVouched(Event, frozen=True, kw_only=True):
    """The state of an evidence file, which the harness read after the file's writer had ended.

    Attributes:
        file: relative to the run's directory.
        lines: number of complete lines in an event or history file, without the seal; ``None`` for other files.
        digest: of those lines, or of all bytes, as in ``FileSealed``.
    """

    file: str
    lines: int | None
    digest: str


class ShutdownBegan(Event, frozen=True, kw_only=True):
    """The plan and the final reads are over, and the nodes are being stopped, which is not part of the recorded run."""


class RunEnded(Event, frozen=True, kw_only=True):
    """Last but one event of the harness. ``problem`` says why the plan did not reach its end, if it did not."""

    problem: str | None


BrokerEvent: TypeAlias = (
    NodeStarted
    | NodeStopped
    | FileSealed
    | BrokerStateChanged
    | RegistrationRefused
    | MetadataApplied
    | LogOpened
    | LogFlushed
    | LogDeleted
    | StrayDetected
    | StrayDeleted
    | RecoveryStarted
    | RecoveryFinished
    | BatchAppended
    | LogTruncated
    | HighWatermarkAdvanced
    | FollowerHighWatermarkUpdated
    | LogStartOffsetRaised
    | BecameLeader
    | BecameFollower
    | AlterPartitionProposed
    | AlterPartitionAnswered
    | ProduceAnswered
    | TransitionBegun
    | TransitionEnded
    | MarkersSent
    | PositionReturned
    | PeerUnreachable
    | PeerReachable
    | ClientConnected
    | ClientDisconnected
    | MessageIntercepted
    | OrderReceived
    | OrderRelayed
    | AuthorizationDenied
    | AuthenticationFailed
    | OperationFailed
)

ControllerEvent: TypeAlias = (
    NodeStarted
    | NodeStopped
    | FileSealed
    | BrokerRegistered
    | BrokerFenced
    | BrokerUnfenced
    | ControlledShutdownStarted
    | TopicCreated
    | TopicDeleted
    | ConfigChanged
    | FeatureChanged
    | LogDirectoriesChanged
    | ElrCleared
    | OtherRecordCommitted
    | ControllerActivated
    | ControllerDeposed
    | QuorumVoteGranted
    | QuorumLeaderElected
    | QuorumLeaderFollowed
    | MetadataCommittedUpTo
    | MetadataTruncated
    | ProducerIdsAllocated
    | ZnodeWritten
    | PartitionChanged
    | UncleanLeaderElected
    | UncleanRecoveryStarted
    | UncleanRecoveryDropped
    | DrawReceived
    | RegistrationRefused
    | AlterPartitionDecided
    | MessageIntercepted
    | OrderReceived
    | AuthorizationDenied
    | AuthenticationFailed
    | OperationFailed
)

HarnessEvent: TypeAlias = (
    NodeStarted
    | NodeStopped
    | FileSealed
    | IncarnationStarted
    | ClientStarted
    | IncarnationEnded
    | PowerLost
    | BitFlipped
    | FaultInjected
    | FaultHealed
    | MessageIntercepted
    | OrderGiven
    | StepReached
    | ClusterSettled
    | ShutdownBegan
    | FileVouched
    | RunEnded
)

AnyEvent: TypeAlias = BrokerEvent | ControllerEvent | HarnessEvent
"""Every event: what a reader of the log decodes."""
