"""The event log's vocabulary: what nodes and the harness write down, and what the oracle shares with them.

One struct per event, named in the past tense. A line of ``events/<node>-<incarnation>.jsonl`` is the event's fields
plus the envelope that the writer adds (``laststand.emulator.core.packed`` has the other form of the same)::

    {"run": "...", "node": 1, "incarnation": 2, "sequence": 7, "time_ns": 81, "type": "BatchAppended", "cause_id": ...}

``sequence`` starts at 0 in each file and has no gaps. ``time_ns`` is the machine's monotonic clock (virtual in the
simulator) when the turn began that decided what the event records; it orders the lines of one machine for people, never
for a check. Adding a field is compatible; renaming one
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
        driver: of a harness: what plays the run, as in ``cluster.yaml``; else ``None``.
        ending: of the harness of a scenario: ``restore`` if it mends everything at the end, ``as_is`` if not.
        evidence_format: of a harness: ``EVIDENCE_FORMAT`` of its version; ``None`` before there was one.
        kafka_clients: of a harness: ids of the clients of Kafka that have links of their own, by their names.
        standby_controllers: of a harness: the controllers that were no voters when the cluster was formatted.
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
        lines: how many stand before it.
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
    """A broker acts on the image up to ``end_offset`` (exclusive); of many partitions, on some already before that."""

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
    """The recovery point of a log rose: everything below it is on the disk, and a power loss leaves it.

    A broker's process records it within a quarter of a second. With Kafka's defaults few do: acknowledged records are
    in page caches.
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

    ``partition_epoch`` is that of the metadata that said RECOVERING.
    """

    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    log_start_offset: Offset
    log_end_offset: Offset


class RecoveryFinished(PartitionEvent, frozen=True, kw_only=True):
    """A leader has finished its recovery step and proposes RECOVERED; what the step found.

    Attributes:
        leader_epoch: under which it recovered.
        scanned_from: where the scan began: the base of the segment that holds the recovery point.
        batch_count: valid batches from there on.
        producer_count: idempotent producers whose state was rebuilt.
        old_end_offset: where the log ended before.
        log_end_offset: where it ends now; lower where the scan met a bad batch.
        duration_ms: since ``RecoveryStarted``.
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
        """It is a control batch: it has a producer id, and no sequence number."""
        return self.producer_id is not None and self.base_sequence < 0


class LogTruncated(PartitionEvent, frozen=True, kw_only=True):
    """A log was cut."""

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
    """A leader's high watermark rose, and everything that the rule looked at."""

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
    """Records below ``new`` are gone on purpose."""

    old: Offset
    new: Offset


class BecameLeader(PartitionEvent, frozen=True, kw_only=True):
    """A broker leads from now on, or leads on under a newer epoch."""

    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    epoch_start_offset: Offset
    high_watermark: Offset
    isr: tuple[BrokerId, ...]


class BecameFollower(PartitionEvent, frozen=True, kw_only=True):
    """A broker is a follower from now on; ``leader`` is ``None`` where the partition has none."""

    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    log_end_offset: Offset
    high_watermark: Offset


class AlterPartitionProposed(PartitionEvent, frozen=True, kw_only=True):
    """A leader asks for another ISR. ``broker_epochs`` are those sent beside the members."""

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
    """A broker answered a produce request; ``base_offset`` is ``None`` where nothing was appended.

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
    """Somebody asked for what it may not do; the first time since the node's access control lists have changed.

    Attributes:
        api: Kafka's name of what was asked; ``Stream`` is the metadata stream.
        principal: of the sender, such as ``User:broker-1``.
        host: of the sender.
        operation: that is not allowed.
        resource: to what, such as ``CLUSTER:kafka-cluster``.
    """

    api: str
    principal: str
    host: str
    operation: str
    resource: str


class AuthenticationFailed(Event, frozen=True, kw_only=True):
    """A client of Kafka did not prove who it says it is, or a caller of gRPC; it is refused, and told less.

    Written the first time that a host fails by a mechanism for a reason; metrics count every time.

    Attributes:
        address: of the client or of its proxy; empty where gRPC does not say.
        mechanism: of SASL, as the client named it, ``SSL``, or ``token`` for the cluster's token.
        reason: why, in words.
    """

    address: str
    mechanism: str
    reason: str


class MessageIntercepted(Event, frozen=True, kw_only=True):
    """A fault did something to a single message; ``cause_id`` is the message's.

    Attributes:
        source: who dialled.
        target: who was dialled.
        api: Kafka's name; ``Stream`` is the metadata stream.
        way: whether it is what ``source`` sent, or what came back.
        fate: what the fault did.
    """

    source: NodeId
    target: NodeId
    api: str
    way: Way
    fate: MessageFate

    @property
    def channel(self) -> str:
        """All messages of its kind, as plans write it."""
        return f"{self.source}->{self.target} {self.api} {self.way}"


class ClientConnected(Event, frozen=True, kw_only=True):
    """A client of Kafka asked for something on a new connection; ApiVersions alone does not count.

    Attributes:
        process: the connection as a process of the history (``ForeignProcess``).
        address: of the client or of its proxy.
        software: name and version that the client gave; empty if it gave none.
    """

    process: str
    address: str
    software: str


class ClientDisconnected(Event, frozen=True, kw_only=True):
    """The connection of such a client is over."""

    process: str


class OrderReceived(Event, frozen=True, kw_only=True):
    """A node was ordered to do something; this is written before it obeys. Questions are no orders.

    Attributes:
        api: Kafka's name of an administrator's request; ``Intercept`` and ``Change`` are about messages and the clock.
        order: all that was asked for, as JSON.
        giver: address of the connection that it came over.
    """

    api: str
    order: str
    giver: str


# --- Coordinators of transactions and groups ----------------------------------------------------------------------


class TransitionBegun(PartitionEvent, frozen=True, kw_only=True):
    """A coordinator decided that a transactional id goes to another state; it appends that, and awaits the commit.

    Attributes:
        leader_epoch: of the partition, which is the coordinator's epoch.
        transactional_id: of the producer.
        producer_id: that the producer has then.
        producer_epoch: of the producer then; with a decided transaction that of its markers.
        old: the state before, by Kafka's name (``Ongoing``).
        new: the state that is written, likewise (``PrepareCommit``).
        partitions: that take part in the transaction.
        offset: of the record, if the log takes it.
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
    """A transition of a transactional id took effect, as its record is committed, or was given up.

    Attributes:
        leader_epoch: of the partition, which is the coordinator's epoch.
        transactional_id: of the producer.
        error: for which it was given up; NONE if it took effect.
    """

    leader_epoch: LeaderEpoch
    transactional_id: str
    error: str


class MarkersSent(PartitionEvent, frozen=True, kw_only=True):
    """A coordinator begins to have the markers of a decided transaction written.

    Attributes:
        leader_epoch: of the partition, which is the coordinator's epoch.
        transactional_id: of the producer.
        producer_id: in the markers.
        producer_epoch: in the markers.
        result: ``commit`` or ``abort``.
        partitions: that are to have one.
        decided_at: offset of the record with the decision.
    """

    leader_epoch: LeaderEpoch
    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    result: str
    partitions: tuple[str, ...]
    decided_at: Offset


class PositionTold(PartitionEvent, frozen=True, kw_only=True):
    """A coordinator answers whoever fetches the position of a group.

    Attributes:
        leader_epoch: of the partition, which is the coordinator's epoch.
        group_id: of the group.
        source: the partition that the group reads.
        position: where it goes on.
        counts_from: offset of the record by which the position counts: its own, or the marker of its transaction.
    """

    leader_epoch: LeaderEpoch
    group_id: str
    source: str
    position: Offset
    counts_from: Offset


# --- Controller, once committed -----------------------------------------------------------------------------------


class BrokerRegistered(Event, frozen=True, kw_only=True):
    """A registration was committed. ``is_clean`` is how the controller judged the incarnation before this one."""

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
    """A broker may lead from now on."""

    metadata_offset: MetadataOffset
    broker_id: BrokerId
    broker_epoch: BrokerEpoch


class ControlledShutdownStarted(Event, frozen=True, kw_only=True):
    """A broker is leaving in order."""

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
    """ELR and what is remembered beside it are empty, of one topic or (``None``) of all.

    Each partition of which that changed something has a ``PartitionChanged`` with the same offset.
    """

    metadata_offset: MetadataOffset
    topic_id: TopicId | None


class ProducerIdsAllocated(Event, frozen=True, kw_only=True):
    """A broker got a block of producer ids; ``next_producer_id`` is the first that nobody has."""

    metadata_offset: MetadataOffset
    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    next_producer_id: ProducerId


class ZnodeWritten(Event, frozen=True, kw_only=True):
    """A write of ZooKeeper changed a node; what it means to Kafka is told by the events after it.

    Attributes:
        metadata_offset: the zxid; the changes of one transaction share it.
        path: of the node.
        write: what was done to it.
        session_id: of the client that wrote, or whose end removed the node.
    """

    metadata_offset: MetadataOffset
    path: str
    write: ZnodeWrite
    session_id: int


class OtherRecordCommitted(Event, frozen=True, kw_only=True):
    """A record of the metadata log that changes nothing which is judged; ``record`` is its name."""

    metadata_offset: MetadataOffset
    record: str


class ControllerActivated(Event, frozen=True, kw_only=True):
    """One of several controllers is the active one from now on.

    Attributes:
        controller_epoch: of its claim.
        metadata_end_offset: end of the committed metadata that it begins with, exclusive.
    """

    controller_epoch: LeaderEpoch
    metadata_end_offset: MetadataOffset


class ControllerDeposed(Event, frozen=True, kw_only=True):
    """A controller is active no longer; what it had appended and not committed is open.

    Attributes:
        controller_epoch: of its claim.
    """

    controller_epoch: LeaderEpoch


class QuorumVoteGranted(Event, frozen=True, kw_only=True):
    """One of several controllers voted; pre-votes are none.

    Attributes:
        directory_id: of its disk.
        quorum_epoch: of the election.
        candidate: for whom, maybe for itself.
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
        quorum_epoch: which it leads.
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
        leader: whom it follows.
    """

    directory_id: str | None
    quorum_epoch: LeaderEpoch
    leader: NodeId


class MetadataCommittedUpTo(Event, frozen=True, kw_only=True):
    """The high watermark of one of several controllers moved: it knows that records below it are committed.

    Attributes:
        directory_id: of its disk.
        quorum_epoch: in which it heard so.
        high_watermark: end of what is committed, exclusive.
        is_leader: whether it leads the quorum, and so counted the copies.
    """

    directory_id: str | None
    quorum_epoch: LeaderEpoch
    high_watermark: MetadataOffset
    is_leader: bool


class MetadataTruncated(Event, frozen=True, kw_only=True):
    """One of several controllers cut the end of its metadata log, which its leader does not have.

    Attributes:
        directory_id: of its disk.
        quorum_epoch: of the leader.
        old_end_offset: end of its log before.
        new_end_offset: end of its log since.
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
    """A partition record or change was committed: the whole state after it, and why.

    Attributes:
        metadata_offset: of the record.
        reason: what set it off.
        election: how the leader was chosen, if it was.
        broker_id: the broker that the reason is about, or the sender of the AlterPartition.
        effective_min_isr: min ISR that the decision was made with.
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
    """An unclean election was committed, with all that it was decided on; follows its ``PartitionChanged``.

    Attributes:
        metadata_offset: of the record.
        leader: who won.
        leader_epoch: that the election began.
        method: how it was found.
        strategy: in effect for the topic, or asked for.
        candidates: whom the method could have chosen, in assignment order.
        draw: the number that picked among them, where one did.
        must_hear_from: replicas without whose answers a recovery would not have chosen.
        answers: what replicas said that counted, in assignment order.
        discarded: replicas an answer of which was dropped: of an earlier incarnation, or an older leader epoch.
        why: in words.
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
    """The controller begins to ask the replicas of a leaderless partition what they hold (KIP-966).

    What is asked of whom is not durable: another controller process starts again.
    """

    leader_epoch: LeaderEpoch
    strategy: RecoveryStrategy
    origin: RecoveryOrigin
    must_hear_from: tuple[BrokerId, ...]


class UncleanRecoveryDropped(PartitionEvent, frozen=True, kw_only=True):
    """A recovery ended without choosing."""

    leader_epoch: LeaderEpoch
    reason: RecoveryDropReason


class DrawReceived(Event, frozen=True, kw_only=True):
    """The driver drew the number that picks the leaders of unclean elections from now on."""

    number: int


class AlterPartitionDecided(PartitionEvent, frozen=True, kw_only=True):
    """The controller judged a proposal; written when it answers, accepted or not."""

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
        switches: the rules that it was given, where they are others than the run's (``cluster.yaml``); else empty.
    """

    started_node: NodeId
    started_incarnation: int
    event_file: str
    switches: dict[str, str] = {}


class ClientStarted(Event, frozen=True, kw_only=True):
    """A client that came by itself was let in; its history file must exist.

    Attributes:
        process: its name in the history.
        history_file: relative to the run's directory.
    """

    process: str
    history_file: str


class IncarnationEnd(Enum):
    """The end of an incarnation."""

    STOPPED = "stopped"
    """In order: its file must end with ``NodeStopped``."""

    KILLED = "killed"
    """By the plan, by SIGKILL or by a fault of its disk; the page cache survived."""

    POWER_LOST = "power_lost"
    """SIGKILL by the plan, and unsynced data was then lost."""

    UNEXPECTED = "unexpected"
    """It ended by itself: the verdict cannot be valid."""


class IncarnationEnded(Event, frozen=True, kw_only=True):
    """A process ended. ``metadata_offset`` is what the controller had committed by then (exclusive)."""

    ended_node: NodeId
    ended_incarnation: int
    end: IncarnationEnd
    exit_code: int | None
    metadata_offset: MetadataOffset | None


class PowerLost(PartitionEvent, frozen=True, kw_only=True):
    """Records that a power loss took from one log, by a scan of its files before and after."""

    lost_node: NodeId
    lost_incarnation: int
    keep: str
    old_end_offset: Offset
    new_end_offset: Offset


class BitFlipped(PartitionEvent, frozen=True, kw_only=True):
    """A bit of a stored batch was flipped on a node's disk, whether a process ran there or not.

    Attributes:
        crc: that its header has, and its content had.
        damaged_crc: that its content comes to now; whoever computes this one was given damaged bytes.
    """

    flipped_node: NodeId
    base_offset: Offset
    last_offset: Offset
    leader_epoch: LeaderEpoch
    crc: int
    damaged_crc: int


class FaultLink(msgspec.Struct, frozen=True):
    """Connections that ``source`` dials to ``target``; 1000 are the clients, 1001 and up clients of Kafka."""

    source: NodeId
    target: NodeId


class FaultInjected(Event, frozen=True, kw_only=True):
    """The plan broke something, and it was seen to take effect.

    Attributes:
        fault: name of the fault.
        target: a node, or a link such as ``0->100``, in words.
        nodes: the same, where it is a node.
        links: the same, where it is a link.
        effect: how it was seen to take effect; ``None`` where nobody was affected.
        metadata_offset: what the controller had committed before (exclusive), where the harness knows it.
        begun_ns: when it was done, by the clock of ``time_ns``.
        proved_ns: when it was seen to take effect, by the same clock; ``None`` where it had none.
        silenced: links of clients of Kafka on which answers may be swallowed while it lasts.
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
        """True for what is done to links, of which an isolation names its node alone."""
        return bool(self.links) or self.fault == "isolate"


class FaultHealed(Event, frozen=True, kw_only=True):
    """The plan mended something.

    Attributes:
        fault: name of the fault; ``heal`` is every fault of a link, ``all`` every fault there is.
        target: a node, a link such as ``0->100``, or ``all``, in words.
        nodes: the same, where it is a node.
        links: the same, where it is a link; for the target ``all`` those that were broken.
        seen: how that showed; ``None`` if it did not.
        metadata_offset: what the controller had committed once it was seen (exclusive), where the harness knows it.
        begun_ns: when it was done, by the clock of ``time_ns``.
        proved_ns: when it was seen, by the same clock; ``None`` if it was not.
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
        """Returns whether a fault is over. ``heal`` leaves what was done to a node itself, such as its clock."""
        is_among = self.fault in ("all", injected.fault) or (self.fault == "heal" and injected.is_of_links)
        return is_among and self.target in ("all", injected.target)


class RequestedDeletion(msgspec.Struct, frozen=True):
    """An administrator asked for the records of a partition (``orders-0``) below an offset to be deleted.

    Without an offset it is the high watermark.
    """

    partition: str
    offset: Offset | None


class StepReached(Event, frozen=True, kw_only=True):
    """A step of the plan is done: its position, its text, and what it saw.

    Attributes:
        unclean_elections: partitions (``orders-0``) for which it asked the controller for a leader, an unclean one if
            need be.
        deletions: what it asked leaders to delete.
    """

    step: int
    text: str
    seen: str
    unclean_elections: tuple[str, ...] = ()
    deletions: tuple[RequestedDeletion, ...] = ()


class ClusterSettled(Event, frozen=True, kw_only=True):
    """Everything was mended, and then every partition had its leader and its full ISR, or an excuse.

    ``metadata_offset`` is what the controller had committed by then (exclusive).
    """

    metadata_offset: MetadataOffset


class OrderGiven(Event, frozen=True, kw_only=True):
    """The harness orders a node to do something, or somebody whom it knows does; this is written before.

    Attributes:
        given_to: the node.
        api: as in ``OrderReceived``.
        order: likewise.
    """

    given_to: NodeId
    api: str
    order: str


class OrderRelayed(Event, frozen=True, kw_only=True):
    """A broker passes on what a client of Kafka orders, or is ordered itself; this is written before.

    Attributes:
        client: its name in the history.
        given_to: the node.
        api: as in ``OrderReceived``.
        order: likewise.
        metadata_offset: end of the metadata that the broker had applied; what the order led to was committed later.
        unclean_elections: as in ``StepReached``.
        deletions: likewise.
    """

    client: str
    given_to: NodeId
    api: str
    order: str
    metadata_offset: MetadataOffset
    unclean_elections: tuple[str, ...] = ()
    deletions: tuple[RequestedDeletion, ...] = ()


class FileVouched(Event, frozen=True, kw_only=True):
    """The content of an evidence file as the harness found it after its writer had ended.

    Attributes:
        file: relative to the run's directory.
        lines: of events or of a history: how many are whole, without the seal; ``None`` of any other file.
        digest: of those lines, or of all bytes, as in ``FileSealed``.
    """

    file: str
    lines: int | None
    digest: str


class ShutdownBegan(Event, frozen=True, kw_only=True):
    """All is played and read; the nodes are stopped from now on, which is no part of what is recorded of a run."""


class RunEnded(Event, frozen=True, kw_only=True):
    """Last but one event of the harness. ``problem`` says why the plan did not reach its end, if it did not."""

    problem: str | None


BrokerEvent: TypeAlias = (
    NodeStarted
    | NodeStopped
    | FileSealed
    | BrokerStateChanged
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
    | PositionTold
    | PeerUnreachable
    | PeerReachable
    | ClientConnected
    | ClientDisconnected
    | MessageIntercepted
    | OrderReceived
    | OrderRelayed
    | AuthorizationDenied
    | AuthenticationFailed
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
    | AlterPartitionDecided
    | MessageIntercepted
    | OrderReceived
    | AuthorizationDenied
    | AuthenticationFailed
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
