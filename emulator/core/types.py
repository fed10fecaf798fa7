"""The vocabulary of small values: identifiers, offsets and epochs.

Each is a ``NewType``, so that the type check finds mixed-up values, the classic bug of replication code. Absence is
``None``, never -1; the codec and the file formats translate. Offsets named ``*_end_offset`` and ``high_watermark`` are
exclusive: the next offset, not the last one.

A ``StrEnum`` is a closed set of words of the event log.
"""

from collections.abc import Iterable
from enum import Enum, IntEnum, StrEnum
from typing import Final, NamedTuple, NewType

NodeId = NewType("NodeId", int)
"""A process of the cluster: brokers are 0..N-1, controllers 100 and up."""

CLIENT_ID: Final = NodeId(1000)
"""All client processes together, as an end of links; no node of the cluster. Clients of Kafka with links of their own
are 1001 and up."""


BrokerId = NewType("BrokerId", NodeId)
"""A node that is a broker."""

Offset = NewType("Offset", int)
"""Position of a record in a partition's log."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""Rises by one with each record that carries a leader value."""

PartitionEpoch = NewType("PartitionEpoch", int)
"""Rises by one with each applied partition change."""

BrokerEpoch = NewType("BrokerEpoch", int)
"""Metadata offset at which a broker's registration was handled; strictly rising over incarnations."""

MetadataOffset = NewType("MetadataOffset", int)
"""Position of a record in the controller's metadata log."""

ProducerId = NewType("ProducerId", int)
"""Identity of an idempotent producer session."""

ProducerEpoch = NewType("ProducerEpoch", int)
"""Generation of a producer id; bumped when sequences start again at 0."""


def kafka_client_ids(names: Iterable[str]) -> dict[NodeId, str]:
    """Returns the ids of named clients of Kafka as ends of links, in the order of the names."""
    return {NodeId(CLIENT_ID + number): name for number, name in enumerate(names, start=1)}


class ProducerIdentity(NamedTuple):
    """A producer id with its epoch."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch


TopicId = NewType("TopicId", str)
"""A topic's UUID, 22 characters of URL-safe base64 without padding, as Kafka prints it."""

IncarnationId = NewType("IncarnationId", str)
"""Random identity of one broker process, same form as a topic id."""

CauseId = NewType("CauseId", str)
"""The cause of an event: a client operation, a plan step or a timer. Travels in every request and response."""

RequestId = NewType("RequestId", int)
"""The driver's handle of a request that a node received and has yet to answer."""

CorrelationId = NewType("CorrelationId", int)
"""The core's handle of a request that a node sent and awaits the answer to."""


class TopicPartition(NamedTuple):
    """One partition of a topic, by the topic's name; prints as ``orders-0``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class LeaderRecoveryState(IntEnum):
    """The recovery state of a leader after an unclean election (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class Acks(IntEnum):
    """The acknowledgement that a produce request waits for (Kafka's ``acks``)."""

    NONE = 0
    LEADER = 1
    ALL = -1


class IsolationLevel(IntEnum):
    """The records that a consumer may see."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class ElectionType(Enum):
    """The candidates that an election may choose from (Kafka's ``PartitionChangeBuilder.electLeader``, and CLEAN)."""

    CLEAN = "CLEAN"
    """From ISR and ELR only; the rest is for unclean recovery, or for the administrator (KIP-966)."""

    PREFERRED = "PREFERRED"
    ONLINE = "ONLINE"
    UNCLEAN = "UNCLEAN"


class FeatureUpgradeType(Enum):
    """The direction that an UpdateFeatures request allows."""

    UPGRADE = "UPGRADE"
    SAFE_DOWNGRADE = "SAFE_DOWNGRADE"
    UNSAFE_DOWNGRADE = "UNSAFE_DOWNGRADE"


class ClusterKind(Enum):
    """The kind of cluster: whether KRaft or ZooKeeper holds the metadata."""

    KRAFT = "kraft"
    """A controller, in a log of its own."""

    ZOOKEEPER = "zookeeper"
    """A ZooKeeper server, in nodes that the controller writes, which is one of the brokers."""

    @property
    def metadata_role(self) -> "NodeRole":
        """The role of the node that is not a broker."""
        return NodeRole.CONTROLLER if self is ClusterKind.KRAFT else NodeRole.ZOOKEEPER

    @property
    def first_metadata_offset(self) -> MetadataOffset:
        """The offset of the first change of metadata; with ZooKeeper offsets are zxids."""
        return MetadataOffset(0 if self is ClusterKind.KRAFT else 1)


class NodeRole(StrEnum):
    """The role of a process in a run."""

    BROKER = "broker"
    CONTROLLER = "controller"
    HARNESS = "harness"
    ZOOKEEPER = "zookeeper"

    @property
    def has_metadata(self) -> bool:
        """Nodes of this role commit the cluster's metadata."""
        return self in (NodeRole.CONTROLLER, NodeRole.ZOOKEEPER)


class ZnodeWrite(StrEnum):
    """The kind of change that a write made to a node of ZooKeeper."""

    CREATED = "created"
    DELETED = "deleted"
    DATA_CHANGED = "data_changed"


class Witness(StrEnum):
    """The writer of a process's event file: the process, or an observer. It decides what a missing event proves."""

    PROCESS = "process"
    """The process itself: what it does not record did not happen."""

    HARNESS = "harness"
    """The harness, about a node of Apache Kafka: events that cannot be observed from outside are absent."""

    CLIENTS = "clients"
    """No process: the harness writes its own file, and all other evidence of the run is clients' histories."""


class BrokerState(StrEnum):
    """Life cycle of a broker process (Kafka's ``org.apache.kafka.metadata.BrokerState``)."""

    NOT_RUNNING = "NOT_RUNNING"
    STARTING = "STARTING"
    RECOVERY = "RECOVERY"
    RUNNING = "RUNNING"
    PENDING_CONTROLLED_SHUTDOWN = "PENDING_CONTROLLED_SHUTDOWN"
    SHUTTING_DOWN = "SHUTTING_DOWN"


class LogDeletedReason(StrEnum):
    """Reason why a log is no longer served."""

    DELETED = "deleted"
    """Deleted with its topic or its assignment."""

    STRAY = "stray"
    """It was found at start and does not belong here."""


class StrayReason(StrEnum):
    """Reason why a log found at start is a stray (KIP-550)."""

    NO_TOPIC_ID = "no_topic_id"
    UNKNOWN_TOPIC = "unknown_topic"
    """Topic or partition is not there; a topic of that name may be, with another id."""

    NOT_A_REPLICA = "not_a_replica"


class TxnRecovery(StrEnum):
    """The treatment of ``__transaction_state`` records by an uncleanly elected leader."""

    ABORT_ONGOING = "abort_ongoing"
    """Transactions that look ongoing are aborted: their decisions may be what was lost."""

    BUMP_ALL = "bump_all"
    """As ``ABORT_ONGOING``, and each id gets a new producer id at its next session: a later epoch may be lost."""

    OFF = "off"
    """Kafka: transactions that look ongoing stay so, and are aborted at their timeout."""


class GroupRecovery(StrEnum):
    """The treatment of ``__consumer_offsets`` records by an uncleanly elected leader."""

    REBALANCE = "rebalance"
    """Generation ids jump above every id that can have been lost, and members join again."""

    HOLD = "hold"
    """As ``REBALANCE``, and no position is returned until an administrator commits one: members know none."""

    OFF = "off"
    """Kafka: the remaining records are used as they are."""


class OffsetBeyondEnd(StrEnum):
    """The treatment of a group's position whose records a log has lost."""

    CLAMP = "clamp"
    """The group gets the offset at which the log that it had read ends in the leader's log."""

    SERVE = "serve"
    """Kafka: the group gets the committed position; consumers may compare leader epochs themselves (KIP-320)."""


class StrayCleanup(StrEnum):
    """The treatment of logs found at start that are not assigned to the broker (KIP-550)."""

    DELETE = "delete"
    """Put aside, and deleted after a delay (KIP-550)."""

    RENAME = "rename"
    """Put aside and left on disk (Kafka in KRaft mode)."""

    OFF = "off"
    """Left as they are; a later partition of the same name takes them for its own data: S26, S27."""


class TruncationReason(StrEnum):
    """Reason for a truncation."""

    DIVERGING_EPOCH = "diverging_epoch"
    HIGH_WATERMARK = "high_watermark"
    OFFSET_OUT_OF_RANGE = "offset_out_of_range"
    RECOVERED = "recovered"
    """Recovery found a damaged batch in the files."""

    RESTARTED = "restarted"
    """Everything was dropped, and the log begins again at another offset."""


class IsrAnswer(StrEnum):
    """The leader's interpretation of the answer to its AlterPartition."""

    IGNORED = "ignored"
    """The change that it answers is not under way any more."""

    COMMITTED = "committed"
    REVERTED = "reverted"
    PENDING = "pending"


class RequestFailure(StrEnum):
    """Reason why a request got no answer."""

    TIMED_OUT = "timed_out"
    """No answer within its deadline; it may have been executed."""

    DISCONNECTED = "disconnected"
    """The connection broke, or none could be made; it may have been executed."""


class ConfigResource(StrEnum):
    """The resource that a configuration entry belongs to."""

    TOPIC = "topic"
    BROKER = "broker"
    """One broker by id, or every broker where the name is empty (the cluster default)."""


class FenceReason(StrEnum):
    """Reason why a broker was fenced."""

    SESSION_EXPIRED = "session_expired"
    REQUESTED = "requested"
    SHUTDOWN = "shutdown"
    UNREGISTERED = "unregistered"


class ChangeReason(StrEnum):
    """The trigger of a committed partition change."""

    CREATED = "created"
    BROKER_FENCED = "broker_fenced"
    BROKER_UNFENCED = "broker_unfenced"
    CONTROLLED_SHUTDOWN = "controlled_shutdown"
    BROKER_REGISTERED = "broker_registered"
    ALTER_PARTITION = "alter_partition"
    ELECT_LEADERS = "elect_leaders"
    UNCLEAN_RECOVERY = "unclean_recovery"
    REASSIGNMENT = "reassignment"
    MIN_ISR_CHANGED = "min_isr_changed"
    FEATURES_CHANGED = "features_changed"
    UNREGISTERED = "unregistered"


class RecoveryStrategy(StrEnum):
    """The risk that a topic accepts for having a leader."""

    AGGRESSIVE = "Aggressive"
    BALANCED = "Balanced"
    NONE = "None"


class RecoveryOrigin(StrEnum):
    """The origin of an unclean recovery."""

    CONFIGURED = "configured"
    REQUESTED = "requested"
    """Requested by an administrator."""


class RecoveryDropReason(StrEnum):
    """Reason why an unclean recovery ended without a leader; ``wait_*`` names what the partition waits for."""

    ELECTED = "elected"
    """A leader was elected cleanly, or by request."""

    DELETED = "deleted"
    TIMED_OUT = "timed_out"
    """Only where an administrator asked for it."""

    WAIT_ISR = "wait_isr"
    WAIT_ELR = "wait_elr"
    WAIT_LAST_KNOWN_ELR = "wait_last_known_elr"
    WAIT_USER = "wait_user"


class Way(StrEnum):
    """Direction of a message, as seen by the node that opened the connection."""

    REQUEST = "request"
    RESPONSE = "response"


class MessageFate(StrEnum):
    """The effect of a fault on a message."""

    HELD = "held"
    """It waits until it is released."""

    RELEASED = "released"
    """It went on after it had waited."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    """The request arrived now, and arrives once more."""

    DELAYED = "delayed"
