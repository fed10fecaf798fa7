"""What a scenario says, once it has been read and checked.

A scenario names a cluster, a workload, steps and what each era is expected to make of them. Steps wait on protocol
state, never on sleeps. Nodes are named by id, by *role* (``leader(orders-0)``, ``last-isr``, ``elr``, ``follower``),
which is resolved when the step is reached, or by a name that an earlier step gave with ``as``.
"""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, Literal, TypeAlias

from chaos.administration import Administration, TopicPlan
from emulator.core.errors import ErrorCode
from emulator.core.types import Acks, BrokerId, LeaderRecoveryState, NodeId, Offset, TopicPartition
from emulator.storage.power_loss_plan import ExactLoss, Keep

CLIENT: Final = NodeId(1000)
"""The client process as an end of network links; it is no node of the cluster."""

CONTROLLER: Final = NodeId(100)
"""The controller."""

DEFAULT_WITHIN_MS: Final = 30_000
"""Deadline of a barrier that names none."""


class Role(Enum):
    """Who a node is in a partition."""

    LEADER = "leader"
    FOLLOWER = "follower"
    """Lowest member of the ISR that does not lead."""

    LAST_ISR = "last-isr"
    """Only member of the ISR."""

    ELR = "elr"
    """Lowest eligible leader replica."""


@dataclass(frozen=True, kw_only=True)
class FixedNode:
    """A node by its id."""

    node_id: NodeId

    def __str__(self) -> str:
        return {CLIENT: "client", CONTROLLER: "controller"}.get(self.node_id, str(self.node_id))


@dataclass(frozen=True, kw_only=True)
class RoleNode:
    """Whoever has a role when the step is reached."""

    role: Role
    partition: TopicPartition

    def __str__(self) -> str:
        return f"{self.role.value}({self.partition})"


@dataclass(frozen=True, kw_only=True)
class NamedNode:
    """The node that an earlier step called so."""

    name: str

    def __str__(self) -> str:
        return self.name


NodeRef: TypeAlias = FixedNode | RoleNode | NamedNode


class Clients(Enum):
    """Whether an isolated node keeps its links to the client process."""

    CUT = "cut"
    CONNECTED = "connected"


class NoLeader(Enum):
    """Stands where a leader could: the partition has none."""

    NONE = "none"


class Count(Enum):
    """What a number of acknowledged records is a number of."""

    TOTAL = "total"
    PARTITION = "partition"
    """Each partition by itself."""


class Since(Enum):
    """From when on records are counted."""

    STEP = "step"
    RUN = "run"


# --- Conditions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Acked:
    """So many records were acknowledged by producers with ``acks`` (any, if ``None``)."""

    count: int
    acks: Acks | None
    partitions: tuple[TopicPartition, ...]
    per: Count
    since: Since = Since.STEP


@dataclass(frozen=True, kw_only=True)
class PartitionIs:
    """Committed state of every one of ``partitions``; ``None`` where the scenario does not care.

    Members are compared as sets.
    """

    partitions: tuple[TopicPartition, ...]
    leader: NodeRef | NoLeader | None = None
    isr: tuple[NodeRef, ...] | None = None
    elr: tuple[NodeRef, ...] | None = None
    last_known_elr: tuple[NodeRef, ...] | None = None
    last_known_leader: NodeRef | NoLeader | None = None
    replicas: tuple[NodeRef, ...] | None = None
    adding_replicas: tuple[NodeRef, ...] | None = None
    removing_replicas: tuple[NodeRef, ...] | None = None
    leader_recovery_state: LeaderRecoveryState | None = None


@dataclass(frozen=True, kw_only=True)
class BrokerIs:
    """Whether the controller has a broker fenced."""

    node: NodeRef
    unfenced: bool


@dataclass(frozen=True, kw_only=True)
class RegistrationIs:
    """Whether the controller knows a broker at all."""

    node: NodeRef
    exists: bool


@dataclass(frozen=True, kw_only=True)
class LogIs:
    """Whether a node's log directory holds a log under the name of a partition; ``topic_id`` does not count."""

    node: NodeRef
    partition: TopicPartition
    exists: bool


@dataclass(frozen=True, kw_only=True)
class LogEnds:
    """Where a node's log of a partition ends, synced or not."""

    node: NodeRef
    partition: TopicPartition
    end: Offset


@dataclass(frozen=True, kw_only=True)
class TopicIs:
    """Whether a topic exists."""

    topic: str
    exists: bool


@dataclass(frozen=True, kw_only=True)
class FeatureIs:
    """A finalized feature level; 0 where there is none."""

    feature: str
    level: int


@dataclass(frozen=True, kw_only=True)
class ClientSaw:
    """Producers and consumers were answered with ``error`` so often since the step began."""

    error: ErrorCode
    count: int


@dataclass(frozen=True, kw_only=True)
class Consumed:
    """So many records reached consumers since the step began."""

    count: int


Condition: TypeAlias = (
    Acked | PartitionIs | BrokerIs | RegistrationIs | LogIs | LogEnds | TopicIs | FeatureIs | ClientSaw | Consumed
)

# --- Steps --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Until:
    """Waits for a condition, ``within_ms`` at most."""

    condition: Condition
    within_ms: int


@dataclass(frozen=True, kw_only=True)
class Isolate:
    """Cuts every link to and from a node."""

    node: NodeRef
    clients: Clients


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Cuts what one node dials to another, in both byte directions."""

    source: NodeRef
    target: NodeRef


@dataclass(frozen=True, kw_only=True)
class LoseResponses:
    """Stops only the bytes that come back on what one node dials to another."""

    source: NodeRef
    target: NodeRef


@dataclass(frozen=True, kw_only=True)
class Kill:
    """SIGKILL; the page cache stays."""

    node: NodeRef


@dataclass(frozen=True, kw_only=True)
class Pause:
    """SIGSTOP."""

    node: NodeRef


@dataclass(frozen=True, kw_only=True)
class Resume:
    """SIGCONT."""

    node: NodeRef


@dataclass(frozen=True, kw_only=True)
class PowerLoss:
    """SIGKILL of all nodes at once, then the loss of what was not synced.

    Attributes:
        seed: of what is drawn; the plan gives it if it is ``None``.
        exact: what is not drawn, where the step says it.
    """

    nodes: tuple[NodeRef, ...]
    keep: Keep
    seed: int | None
    exact: ExactLoss | None = None


@dataclass(frozen=True, kw_only=True)
class ReplaceDisk:
    """SIGKILL, and an empty disk in place of the node's."""

    node: NodeRef


@dataclass(frozen=True, kw_only=True)
class Produce:
    """Has a producer send a batch of so many records, beside what its rate makes."""

    producer: str
    partition: TopicPartition
    records: int


@dataclass(frozen=True, kw_only=True)
class Start:
    """Starts a node that is down."""

    node: NodeRef


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Stops a node in order."""

    node: NodeRef


@dataclass(frozen=True, kw_only=True)
class HealAll:
    """Mends every link."""


@dataclass(frozen=True, kw_only=True)
class HealNode:
    """Mends every link to and from a node."""

    node: NodeRef


@dataclass(frozen=True, kw_only=True)
class HealLink:
    """Mends what one node dials to another."""

    source: NodeRef
    target: NodeRef


NetworkAction: TypeAlias = Isolate | Cut | LoseResponses | HealAll | HealNode | HealLink
ProcessAction: TypeAlias = Kill | Pause | Resume | PowerLoss | ReplaceDisk | Start | Stop
Action: TypeAlias = Until | Produce | NetworkAction | ProcessAction | Administration


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: what to do, how it is written, where, and the name that its node gets."""

    action: Action
    text: str
    line: int
    bind: str | None


# --- Cluster, workload, expectations ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ProducerPlan:
    """One producer: ``rate`` records/s of ``record_size`` bytes over all partitions of ``topics``.

    With rate 0 it sends what ``produce`` steps ask for.
    """

    name: str
    acks: Acks
    rate: int
    topics: tuple[str, ...]
    record_size: int
    properties: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class ConsumerPlan:
    """One consumer of all partitions of ``topics``."""

    topics: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]


class VerdictName(Enum):
    """The three verdicts."""

    VALID = "valid"
    VIOLATION = "violation"
    UNKNOWN = "unknown"


Comparison: TypeAlias = Literal["==", ">=", "<=", ">", "<"]


@dataclass(frozen=True, kw_only=True)
class Lost:
    """How many records acknowledged with acks=all must be gone."""

    comparison: Comparison
    count: int

    def holds(self, lost: int) -> bool:
        """Whether a number of lost records is as expected."""
        return {
            "==": lost == self.count,
            ">=": lost >= self.count,
            "<=": lost <= self.count,
            ">": lost > self.count,
            "<": lost < self.count,
        }[self.comparison]

    def __str__(self) -> str:
        return f"{self.comparison}{self.count}"


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What one era must make of the scenario; ``None`` and empty where it does not matter."""

    verdict: VerdictName
    guarantee: Literal["broken", "exceeded"] | None
    checks: tuple[str, ...]
    lost: Lost | None


class Ending(Enum):
    """What happens to what is still broken when the steps are through."""

    RESTORE = "restore"
    """Heal, continue and start everything, and wait for leaders and full ISR."""

    AS_IS = "as_is"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A whole scenario file.

    Attributes:
        path: where it was read from.
        text: the file as it is.
        brokers: there are brokers 0 to ``brokers`` - 1, and one controller.
        properties: of every node, by Kafka's names.
        seed: for random choices, where the file fixes it (a recorded plan does).
        report: what is to be told beside the verdict.
        expect: by era.
    """

    path: Path
    text: str
    name: str
    source: str
    brokers: int
    properties: tuple[tuple[str, str], ...]
    topics: tuple[TopicPlan, ...]
    producers: tuple[ProducerPlan, ...]
    consumers: tuple[ConsumerPlan, ...]
    steps: tuple[Step, ...]
    end: Ending
    seed: int | None
    expect: tuple[tuple[str, Expectation], ...]
    report: str | None = None

    @property
    def broker_ids(self) -> tuple[BrokerId, ...]:
        """All brokers, ascending."""
        return tuple(BrokerId(NodeId(index)) for index in range(self.brokers))

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """All partitions of all topics."""
        return tuple(partition for topic in self.topics for partition in topic.partitions)

    @property
    def has_network_faults(self) -> bool:
        """Whether links must be proxied."""
        return any(isinstance(step.action, Isolate | Cut | LoseResponses) for step in self.steps)

    def expectation(self, era: str) -> Expectation | None:
        """Returns what the file expects of an era, or ``None`` where it says nothing."""
        return dict(self.expect).get(era)
