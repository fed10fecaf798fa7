"""Actions: everything that can be done to a cluster, each with all its arguments, in one table.

An action is a frozen struct; its decorator is its row in ``ACTION_SPECS``: its notation, its fault, and the drivers
that have it. Nodes are ``NodeRef`` where a scenario may still name a role (``ActionTemplate``), and ids where the
action can be performed (``Action``). ``lines`` and ``steps`` are the two notations; both follow from the fields'
annotations. An executor performs an action and returns an ``Outcome``:
``laststand.emulator.simulator.actions.performer`` in virtual time, ``laststand.chaos.process.faults`` on processes.
"""

import typing
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Annotated, Final, Generic, TypeAlias, TypeVar, cast

import msgspec

from laststand.emulator.core import admin_messages, events
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client.settings import OffsetReset
from laststand.emulator.core.client.steps import Source
from laststand.emulator.core.disk import DiskOperation
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.node_clock import NORMAL_RATE_PPM
from laststand.emulator.core.types import BrokerId, FeatureUpgradeType, NodeId, Offset, TopicPartition, Way
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY as IBP_PROPERTY
from laststand.emulator.plan import fields as field
from laststand.emulator.plan.administration_fields import (
    ConfigChange,
    ConfigChangeField,
    DeletionOffset,
    ElectionField,
    FeatureLevel,
    FeatureLevelField,
    OptionalBrokerId,
    PartitionSet,
    Replicas,
    RequiredBrokerId,
    TopicSpec,
)
from laststand.emulator.plan.channels import STREAM, SYNC, Channel, Direction, Link, NodeT_co
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.fields import AnyField
from laststand.emulator.plan.nodes import CONTROLLER, NodeGroup, NodeRef
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.plan.topics import PlannedTopic


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of performing an action.

    Attributes:
        took_effect: whether the action changed anything; otherwise it was a no-op.
        affected: whether a node, link or message was affected, which a fault has to prove.
        seen: the observed effect, or why there was none; begins with "no-op: " exactly if ``took_effect`` is false.
    """

    took_effect: bool
    affected: bool
    seen: str


def effective(seen: str) -> Outcome:
    """Returns the outcome of an action that took effect."""
    return Outcome(took_effect=True, affected=True, seen=seen)


def unproved(reason: str) -> Outcome:
    """Returns the outcome of an action that changed something, although no effect on a node was seen."""
    return Outcome(took_effect=True, affected=False, seen=f"no effect was seen: {reason}")


def no_op(reason: str) -> Outcome:
    """Returns the outcome of an action that changed nothing."""
    return Outcome(took_effect=False, affected=False, seen=f"no-op: {reason}")


class Switched(Enum):
    """A switch state: on or off."""

    ON = "on"
    OFF = "off"


class Clients(Enum):
    """The treatment of clients' links to an isolated node: kept or cut."""

    CUT = "cut"
    CONNECTED = "connected"


class Roles(Enum):
    """The nodes of a machine that a network fault affects, if a broker and a controller share a process."""

    ALL = "all"
    NAMED = "named"


# --- The table ----------------------------------------------------------------------------------------------------


class ActionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table: a kind of action.

    Attributes:
        kind: class of the action.
        verb: in steps and, with ``-`` for ``_``, in ``laststand chaos``.
        line_verb: first word of its line; empty if the line is the step itself.
        example: a line.
        meaning: the meaning, in words for users.
        fields: its arguments by the struct's names, in order.
        fault: the name in the event log of the fault that it begins; ``None`` if it begins none.
        heals: names of the faults that it ends; ``all`` for all of them.
        refused: reason why a driver refuses it, by driver.
    """

    kind: type["_Action"]
    verb: str
    line_verb: str
    example: str
    meaning: str
    fields: Mapping[str, AnyField]
    fault: str | None
    heals: frozenset[str]
    refused: Mapping[DriverName, str]

    @property
    def breaks_links(self) -> bool:
        """True if processes can do this only if their links go through proxies."""
        return self.fault is not None and ("link" in self.fields or self.kind in (Isolate, Expire, ExpireCertificate))

    @property
    def is_on_processes(self) -> bool:
        """True if at least one driver of real processes can do this, in containers or not."""
        return any(driver.has_processes and driver not in self.refused for driver in DriverName)


NO_TLS_IN_CONTAINERS: Final = "nodes that this program starts in containers speak no TLS"
_RENEWED_BY_RESTART: Final = "a container's node gets a new certificate when it is started again, and no other"
NO_TLS: Final = "nodes do not speak TLS to each other (security.inter.broker.protocol)"
"""The reasons for which nothing can happen to certificates."""

_rows: Final[dict[type["_Action"], ActionSpec]] = {}

ACTION_SPECS: Final[Mapping[type["_Action"], ActionSpec]] = MappingProxyType(_rows)
"""The table, by class, in the order of this file."""

KindT = TypeVar("KindT", bound="type[_Action]")


def action_spec(
    example: str,
    meaning: str,
    *,
    verb: str | None = None,
    fault: str | None = None,
    heals: str = "",
    refused: Mapping[DriverName, str] | None = None,
) -> Callable[[KindT], KindT]:
    """Returns a decorator that enters a class into the table.

    Args:
        example: a line; the step itself for an action without a form as a line.
        meaning: what the action does.
        verb: in steps, if it differs from the verb in lines.
        fault: name of the fault that it begins.
        heals: names of the faults that it ends.
        refused: reason why a driver refuses it.
    """
    first = example.split()[0]
    is_step = first.endswith(":")

    def enter(kind: KindT) -> KindT:
        _rows[kind] = ActionSpec(
            kind=kind,
            verb=verb or first.rstrip(":").replace("-", "_"),
            line_verb="" if is_step else first,
            example=example,
            meaning=meaning,
            fields=_fields(kind),
            fault=fault,
            heals=frozenset(heals.split()),
            refused=MappingProxyType(dict(refused or {})),
        )
        return kind

    return enter


def _fields(kind: type["_Action"]) -> Mapping[str, AnyField]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return MappingProxyType({name: cast(AnyField, hints[name].__metadata__[0]) for name in kind.__struct_fields__})


def spec_of(action: "ActionTemplate") -> ActionSpec:
    """Returns an action's row."""
    return ACTION_SPECS[type(action)]


FLAP_PHASE_MIN_MS: Final = 100
"""Shortest phase of a flapping link."""


def _simulator_only(reason: str) -> Mapping[DriverName, str]:
    """Returns a refusal by all real processes, with the reason."""
    return {driver: reason for driver in DriverName if driver.has_processes}


class _Action(msgspec.Struct, frozen=True, kw_only=True, tag_field="action"):
    """Base of all actions."""

    def problems(self) -> Iterator[str]:
        """Yields why the arguments contradict each other."""
        yield from ()

    def repair(self) -> "Action | None":
        """Returns the action that undoes this one if healing every link does not; ``None`` for other actions."""
        return None

    @property
    def new_partitions(self) -> tuple[TopicPartition, ...]:
        """Partitions that later actions may name once this one was performed; some may have existed before."""
        return ()

    @property
    def is_repair(self) -> bool:
        """The action restores the normal state, and so undoes another action of its kind."""
        return False

    def refused_by(self, driver: DriverName) -> str | None:
        """Returns why a driver refuses this action with these arguments; ``None`` if it does not."""
        return spec_of(self).refused.get(driver)  # type: ignore[arg-type]  # every subclass is in the union


class OfWorkload(_Action, frozen=True, kw_only=True):
    """Base of requests to a workload's clients; a plan without a workload cannot have them."""


class OnNodes(_Action, Generic[NodeT_co], frozen=True, kw_only=True):
    """Base of actions on nodes; several nodes are acted on at the same moment."""

    nodes: Annotated[tuple[NodeT_co, ...], field.Nodes()]


class OnBrokers(_Action, Generic[NodeT_co], frozen=True, kw_only=True):
    """Base of actions on brokers only."""

    nodes: Annotated[tuple[NodeT_co, ...], field.Brokers()]


_ROLES: Final = field.Choice(
    "roles",
    Roles,
    help="Of a combined process: `all` of its nodes, as it has one network, or only those that are `named`.",
    default=Roles.ALL,
)


class OnLink(_Action, Generic[NodeT_co], frozen=True, kw_only=True):
    """Base of actions on the connections that one node dials to another."""

    link: Annotated[Link[NodeT_co], field.Ends()]
    roles: Annotated[Roles, _ROLES] = Roles.ALL


class OnChannel(_Action, Generic[NodeT_co], frozen=True, kw_only=True):
    """Base of actions on messages of one kind."""

    channel: Annotated[Channel[NodeT_co], field.Messages()]

    def refused_by(self, driver: DriverName) -> str | None:
        """Returns why a driver refuses this action with these arguments; ``None`` if it does not."""
        if driver.has_processes and self.channel.api == SYNC:
            return "a controller's process waits for its disk within a turn, so that nothing can come between"
        return super().refused_by(driver)


# --- Time and clients ---------------------------------------------------------------------------------------------


@action_spec(
    "wait 120",
    "Virtual milliseconds pass, everything being delivered promptly.",
    refused=_simulator_only("steps on processes wait for a state (until), not for time"),
)
class Wait(_Action, frozen=True, kw_only=True, tag="wait"):
    """Let time pass."""

    duration_ms: Annotated[int, field.Span("for", help="How long, such as 120 ms.")]


@action_spec("produce orders-0 acks=all records=1", "The producer with these acks (`all` or `1`) is offered a batch.")
class Produce(OfWorkload, frozen=True, kw_only=True, tag="produce"):
    """Have a producer send a batch of ``records`` records, besides those of its rate."""

    partition: Annotated[TopicPartition, field.PartitionField()]
    producer: Annotated[str, field.ProducerField()]
    records: Annotated[int, field.Whole("records", help="How many records.", low=1, high=10_000)]


class End(Enum):
    """The end that a transaction is meant to have."""

    COMMIT = "commit"
    ABORT = "abort"

    @property
    def result(self) -> TransactionResult:
        """The transaction's result as coordinators name it."""
        return TransactionResult.COMMIT if self is End.COMMIT else TransactionResult.ABORT


@action_spec(
    "transact orders-0,refunds-0 records=2 end=abort producer=1",
    "The transactional producer is offered a transaction: a batch for each of these partitions, in this order, and its "
    "end (`commit` or `abort`). Producers other than 0 have the same transactional id: each is a process that starts "
    "with its first transaction.",
)
class Transact(OfWorkload, frozen=True, kw_only=True, tag="transact"):
    """Have the transactional producer carry out a transaction."""

    partitions: Annotated[tuple[TopicPartition, ...], field.PartitionList()]
    records: Annotated[int, field.Whole("records", help="Records of each batch.", low=1, high=10_000)]
    end: Annotated[End, field.Choice("end", End, help="Which end it is meant to have.", default=End.COMMIT)] = (
        End.COMMIT
    )
    number: Annotated[
        int,
        field.Whole(
            "producer",
            help="Which of the producers with the transactional id.",
            high=10_000,
            default=0,
        ),
    ] = 0


@action_spec(
    "consume orders-0 group=readers records=2 into=refunds-0 end=abort reset=latest",
    "The client reads committed records of a partition for a group, from the position on that the group has committed, "
    "and commits the position behind them. With `into` it writes one record for each to that partition, all in one "
    "transaction with the position (`end` as of `transact`). Each time it knows no more than a client that has just "
    "been started. With `member` it does so on behalf of that member of the group, in the generation that the member "
    "is in by then (KIP-447), and by a producer with a transactional id of its own.",
)
class Consume(OfWorkload, frozen=True, kw_only=True, tag="consume"):
    """Have a client read for a group, and commit its position; ``into`` with what it writes of it."""

    partition: Annotated[TopicPartition, field.PartitionField()]
    group: Annotated[str, field.GroupOption("group", help="The consumer group.")]
    records: Annotated[int, field.Whole("records", help="Records to read, in whole batches.", low=1, high=10_000)]
    into: Annotated[
        TopicPartition | None, field.OptionalPartition("into", help="Where to write what it makes of them.")
    ] = None
    end: Annotated[
        End, field.Choice("end", End, help="Which end the transaction is meant to have.", default=End.COMMIT)
    ] = End.COMMIT
    reset: Annotated[
        OffsetReset,
        field.Choice("reset", OffsetReset, help="Where to begin without a position.", default=OffsetReset.EARLIEST),
    ] = OffsetReset.EARLIEST

    member: Annotated[
        int | None, field.OptionalWhole("member", help="The member of the group on whose behalf.", low=0)
    ] = None

    @property
    def source(self) -> Source:
        """The input that is read."""
        return Source(group_id=self.group, partition=self.partition, records=self.records, reset=self.reset)


class MemberDoes(Enum):
    """The acts of a member of a group."""

    JOIN = "join"
    """A process starts and joins the group."""

    LEAVE = "leave"
    """The process sends LeaveGroup and ends; a static member ends without a request."""

    DIE = "die"
    """The process ends without a request."""

    PAUSE = "pause"
    """The process is stopped; it keeps its state and its partitions."""

    GO_ON = "go-on"


class MemberKind(Enum):
    """The kind of a member: a static one keeps its place when its process is started again (KIP-345)."""

    DYNAMIC = "dynamic"
    STATIC = "static"


class MemberReads(Enum):
    """The causes of a member's reads: its own process, or ``consume`` on its behalf."""

    ITSELF = "itself"
    ASKED = "asked"


@action_spec(
    "member group=readers number=1 does=join kind=static",
    "A member of a consumer group does something: `join` starts a process that joins, reads the partitions that it is "
    "assigned, commits its positions and joins again whenever it has to; `leave` ends it with a word, `die` without, "
    "`pause` stops it until `go-on`. A member of `kind=static` has an instance id; with `reads=asked` it reads "
    "nothing by itself, only by `consume` on its behalf.",
)
class Member(OfWorkload, frozen=True, kw_only=True, tag="member"):
    """Start, stop or end a member of a consumer group; it subscribes to all topics but internal ones."""

    group: Annotated[str, field.GroupOption("group", help="The consumer group.")]
    number: Annotated[int, field.Whole("number", help="Which member.", low=0, high=10_000)]
    does: Annotated[MemberDoes, field.Choice("does", MemberDoes, help="What it does.")]
    kind: Annotated[MemberKind, field.Choice("kind", MemberKind, help="How it joins.", default=MemberKind.DYNAMIC)] = (
        MemberKind.DYNAMIC
    )
    reads: Annotated[
        MemberReads, field.Choice("reads", MemberReads, help="When it reads.", default=MemberReads.ITSELF)
    ] = MemberReads.ITSELF

    @property
    def is_static(self) -> bool:
        """It has an instance id."""
        return self.kind is MemberKind.STATIC


# --- Processes and disks ------------------------------------------------------------------------------------------


@action_spec(
    "kill 1", "Nodes die at the same moment: `kill 0,1` for several. So do all verbs on nodes alone.", fault="kill"
)
class Kill(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="kill"):
    """SIGKILL; the page cache stays."""


@action_spec(
    "power-loss 1 keep=prefix kept=2 truncation=kept",
    "Nodes lose power, and with it what was not synced: `keep` (`none`, `prefix`, `torn`, `pages`) and `kept` say "
    "which batches stay, `truncation` (`kept`, `undone`) what becomes of truncations. With `names=undone`, what was "
    "not synced of names comes undone, too. `disk` (`posix`, `btrfs`, `ext4`, `xfs`) says which file system forgets.",
    fault="power_loss",
)
class PowerLoss(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="power_loss"):
    """SIGKILL of all nodes at once, then the loss of what was not synced."""

    loss: Annotated[DiskLoss, field.LossField()]


@action_spec(
    "crash-within 1 after-effects=2",
    "A broker dies in its next turn that opens or changes logs, after two changes of files. With `keep`, `kept` and "
    "`truncation` (and `names`, `disk`), by a loss of power.",
    refused=_simulator_only("a process cannot be ended between two of the files that it writes in one turn"),
)
class CrashWithin(OnBrokers[NodeT_co], frozen=True, kw_only=True, tag="crash_within"):
    """Let a broker die in the midst of its next turn that changes logs; by a signal, unless ``loss`` says otherwise."""

    after_effects: Annotated[
        int,
        field.Whole("after_effects", help="After how many changes of files.", line="after-effects"),
    ]
    loss: Annotated[DiskLoss | None, field.OptionalLoss()] = None


@action_spec(
    "replace-disk 1", "Nodes die and get empty disks, which have room.", fault="replace_disk", heals="disk_full"
)
class ReplaceDisk(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="replace_disk"):
    """SIGKILL, and an empty disk instead of the node's; a controller formats it with a new directory id."""

    nodes: Annotated[tuple[NodeT_co, ...], field.Disks()]


@action_spec(
    "lose-quorum-state 101",
    "Controllers die, and their files of epoch and vote (`quorum-state`) are gone. Beside a log none of them starts "
    "again where `missing_state_stops` holds, until its disk is replaced.",
    fault="lose_quorum_state",
    refused=_simulator_only("a process that has lost it does not start again, so that no run could end with all nodes"),
)
class LoseQuorumState(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="lose_quorum_state"):
    """SIGKILL, and the loss of ``quorum-state``."""

    nodes: Annotated[tuple[NodeT_co, ...], field.Disks()]


_ONLY_ON_KAFKA: Final = (
    "a release is one of Apache Kafka (--driver kafka); era beside it names the rules of other nodes"
)


@action_spec(
    "start 1",
    "Nodes that do not run are started; with `era=kafka-3.9` they follow that era's rules from then on "
    "(`era=kip-966,elr=off`: all but one). In eras with ZooKeeper brokers speak what "
    "`inter.broker.protocol.version=2.7` says. On Apache Kafka they run the release `kafka=4.2.0`; beside `era` "
    "it is for that driver alone.",
    heals="kill stop power_loss replace_disk lose_quorum_state disk_error",
)
class Start(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="start"):
    """Start nodes that are down, also with another era, or in a ZooKeeper cluster with another protocol version."""

    inter_broker_protocol_version: Annotated[
        str | None, field.ProtocolVersion(help="The brokers' inter-broker protocol from now on, such as 2.7.")
    ] = None
    era: Annotated[
        str | None, field.NodeEra(help="Era whose rules they follow from now on: kafka-3.9, or kip-966,elr=off.")
    ] = None
    kafka: Annotated[
        str | None, field.KafkaRelease(help="The release of Apache Kafka that they run from now on, such as 4.2.0.")
    ] = None

    def refused_by(self, driver: DriverName) -> str | None:
        """Returns why a driver refuses this action with these arguments; ``None`` if it does not."""
        if self.kafka is not None and self.era is None and driver is not DriverName.KAFKA:
            return _ONLY_ON_KAFKA
        return super().refused_by(driver)

    def problems(self) -> Iterator[str]:
        """Yields whether the ZooKeeper server is to speak a protocol of brokers."""
        if self.inter_broker_protocol_version is not None and CONTROLLER in self.nodes:
            yield f"expected brokers beside {IBP_PROPERTY}"


@action_spec("stop 1", "Nodes are asked to shut down in order.", fault="stop")
class Stop(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="stop"):
    """SIGTERM: a controlled shutdown."""


@action_spec("pause 1", "Nodes stand still, as by SIGSTOP.", fault="pause")
class Pause(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="pause"):
    """SIGSTOP; connections stay open."""


@action_spec("resume 1", "Paused nodes go on.", heals="pause")
class Resume(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="resume"):
    """SIGCONT."""


_IN_CONTAINERS_ONLY: Final = {
    DriverName.PROCESS: "processes share the loopback network, which none of them can leave; isolate cuts their links",
    DriverName.SIMULATOR: "simulated nodes have links and no network; isolate cuts them",
}


@action_spec(
    "disconnect 1",
    "The containers of nodes leave their network.",
    fault="disconnect",
    refused=_IN_CONTAINERS_ONLY,
)
class Disconnect(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="disconnect"):
    """Take the containers of nodes off their network."""

    def repair(self) -> "Action | None":
        """Returns the action that puts them back."""
        return Connect(nodes=self.nodes)  # type: ignore[arg-type]


@action_spec("connect 1", "The containers are on their network again.", heals="disconnect", refused=_IN_CONTAINERS_ONLY)
class Connect(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="connect"):
    """Put the containers of nodes back on their network, with the address that they had."""


@action_spec(
    "sync 1",
    "The operating system writes out what the nodes' disks have in their caches.",
    refused=_simulator_only("the kernel cannot be asked for one node's pages without the node's knowledge"),
)
class SyncDisk(OnBrokers[NodeT_co], frozen=True, kw_only=True, tag="sync"):
    """Make durable what is in the page cache."""


@action_spec(
    "slow-disk 1 ms=200",
    "Every fsync of a node takes so much longer, also after a restart; `ms=0` ends that.",
    fault="slow_disk",
    refused={DriverName.SIMULATOR: "the simulated disk takes no time"},
)
class SlowDisk(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="slow_disk"):
    """Make every fsync of nodes take longer."""

    delay_ms: Annotated[int, field.Duration("delay", help="Added to every fsync, such as 200 ms.", line="ms")]

    @property
    def is_repair(self) -> bool:
        return self.delay_ms == 0

    def repair(self) -> "Action | None":
        """Returns the action that makes the disks quick again."""
        return None if self.is_repair else SlowDisk(nodes=self.nodes, delay_ms=0)  # type: ignore[arg-type]


@action_spec(
    "lose-syncs 1",
    "Every fsync of nodes returns although nothing is durable, also after a restart; `state=off` ends that.",
    fault="lose_syncs",
    refused={DriverName.SIMULATOR: "the simulated disk does not lie"},
)
class LoseSyncs(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="lose_syncs"):
    """Let nodes' fsyncs succeed without effect; a power loss then shows what is lost."""

    state: Annotated[
        Switched, field.Choice("state", Switched, help="Whether fsyncs lie from now on.", default=Switched.ON)
    ] = Switched.ON

    @property
    def is_repair(self) -> bool:
        return self.state is Switched.OFF

    def repair(self) -> "Action | None":
        """Returns the action that makes fsyncs effective again."""
        return None if self.is_repair else LoseSyncs(nodes=self.nodes, state=Switched.OFF)  # type: ignore[arg-type]


@action_spec(
    "flip-bit 1 partition=orders-0",
    "A bit of the last batch that a broker has stored of a partition is flipped.",
    fault="flip_bit",
    refused={DriverName.SIMULATOR: "a simulated batch has no bits"},
)
class FlipBit(OnBrokers[NodeT_co], frozen=True, kw_only=True, tag="flip_bit"):
    """Damage the last stored batch of a partition on brokers."""

    partition: Annotated[
        TopicPartition, field.PartitionOption("partition", help="The partition whose last batch is damaged.")
    ]


@action_spec(
    "disk-error 1 operation=write at=3",
    "The third write (or `sync`, or `read`) of a node from now on fails with EIO, which ends the process.",
    fault="disk_error",
    refused={DriverName.SIMULATOR: "operations of the simulated disk do not fail"},
)
class DiskError(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="disk_error"):
    """Make an operation of nodes' disks fail, which ends their processes."""

    operation: Annotated[DiskOperation, field.Choice("operation", DiskOperation, help="Which operation.")]
    at: Annotated[
        int, field.Whole("at", help="Which of these operations fails, counted from now on.", low=1, default=1)
    ] = 1


@action_spec(
    "disk-full 1 left=1000",
    "A node's disk has room for so many bytes; the write that finds none (ENOSPC) ends the process, and so it does "
    "after every start, until `state=off` makes room.",
    fault="disk_full",
)
class DiskFull(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="disk_full"):
    """Fill nodes' disks: their processes end, and end again at each start until there is room."""

    left: Annotated[int, field.Whole("left", help="Bytes that may still be written.", default=0)] = 0
    state: Annotated[
        Switched, field.Choice("state", Switched, help="Whether disks are full from now on.", default=Switched.ON)
    ] = Switched.ON

    @property
    def is_repair(self) -> bool:
        return self.state is Switched.OFF

    def repair(self) -> "Action | None":
        """Returns the action that makes room."""
        return None if self.is_repair else DiskFull(nodes=self.nodes, state=Switched.OFF)  # type: ignore[arg-type]

    def problems(self) -> Iterator[str]:
        """Yields why the arguments contradict each other."""
        if self.is_repair and self.left:
            yield "where room is made, no bytes are left that may still be written"


@action_spec(
    "clock 1 rate=1100000",
    "A node's clock runs at this rate, in parts per million, also after a restart.",
    fault="clock",
)
class ClockRate(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="clock"):
    """Change the rate of nodes' clocks, in parts per million."""

    rate_ppm: Annotated[int, field.Whole("rate", help="In parts per million of the correct rate.", low=1)]

    @property
    def is_repair(self) -> bool:
        return self.rate_ppm == NORMAL_RATE_PPM

    def repair(self) -> "Action | None":
        """Returns the action that sets the clocks' rate right again."""
        return None if self.is_repair else ClockRate(nodes=self.nodes, rate_ppm=NORMAL_RATE_PPM)  # type: ignore[arg-type]


@action_spec("clock-jump 1 ms=3000", "A node's clock jumps ahead, and so do its timers.", fault="clock_jump")
class ClockJump(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="clock_jump"):
    """Set nodes' clocks forward."""

    by_ms: Annotated[int, field.Duration("by", help="How far, such as 3 s.", line="ms")]

    def problems(self) -> Iterator[str]:
        """Yields why the arguments contradict each other."""
        if not self.by_ms:
            yield "a jump by 0 ms is none"


class GrantedOperation(StrEnum):
    """Operations on the cluster or a topic, by Kafka's names."""

    CLUSTER_ACTION = "cluster_action"
    READ = "read"
    WRITE = "write"
    DESCRIBE = "describe"
    IDEMPOTENT_WRITE = "idempotent_write"
    ALTER = "alter"
    ALL = "all"


class _OnPermissions(OnNodes[NodeT_co], Generic[NodeT_co], frozen=True, kw_only=True):
    """Base of changes of nodes' permissions; ``topic`` is ``None`` for the cluster."""

    nodes: Annotated[tuple[NodeT_co, ...], field.Principals()]
    operation: Annotated[
        GrantedOperation, field.Choice("operation", GrantedOperation, help="The operation, by Kafka's name.")
    ]
    topic: Annotated[
        str | None, field.TopicOption("topic", help="The topic; the cluster itself if not given.", default=None)
    ] = None


@action_spec(
    "grant 1 operation=cluster_action",
    "An administrator adds access control entries that let nodes, or the client, do something: to the cluster, or with "
    "`topic` to a topic. Nodes need `authorizer.class.name`.",
    heals="revoke",
)
class Grant(_OnPermissions[NodeT_co], frozen=True, kw_only=True, tag="grant"):
    """Give nodes the permission for an operation."""


@action_spec(
    "revoke 1 operation=cluster_action",
    "An administrator removes the access control entries that let nodes, or the client, do something.",
    fault="revoke",
)
class Revoke(_OnPermissions[NodeT_co], frozen=True, kw_only=True, tag="revoke"):
    """Take from nodes the permission for an operation."""


@action_spec(
    "expire-certificate 1",
    "The client certificates of nodes expire: their new connections are refused, and they can be dialled as before. "
    "Nodes need `security.inter.broker.protocol=SSL`.",
    fault="expire_certificate",
    refused={DriverName.DOCKER: _RENEWED_BY_RESTART},
)
class ExpireCertificate(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="expire_certificate"):
    """Let the client certificates of nodes expire: their new connections are refused."""

    def repair(self) -> "Action | None":
        """Returns the action that gives the nodes new certificates."""
        return RenewCertificate(nodes=self.nodes)  # type: ignore[arg-type]


@action_spec(
    "renew-certificate 1",
    "Nodes get new certificates of the cluster's authority, which new connections show.",
    heals="expire_certificate",
    refused={DriverName.DOCKER: _RENEWED_BY_RESTART},
)
class RenewCertificate(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="renew_certificate"):
    """Give nodes new certificates."""


@action_spec(
    "draw 2",
    "The controller draws this number for unclean elections from now on.",
    refused=_simulator_only("a controller's process draws by itself"),
)
class Draw(_Action, frozen=True, kw_only=True, tag="draw"):
    """Choose the number that the controller draws in unclean elections."""

    number: Annotated[int, field.Number("number", help="What is drawn.")]


@action_spec("expire 1", "Brokers' heartbeats wait until the controller has fenced them.", fault="lose_responses")
class Expire(OnBrokers[NodeT_co], frozen=True, kw_only=True, tag="expire"):
    """Let brokers' sessions expire: their requests do not reach the controller until it has fenced them."""


@action_spec(
    "expire-session 1",
    "ZooKeeper ends brokers' sessions at once; each process hears of it when it next asks for something.",
    fault="expire_session",
)
class ExpireSession(OnBrokers[NodeT_co], frozen=True, kw_only=True, tag="expire_session"):
    """End brokers' ZooKeeper sessions, as an administrator can who knows the sessions' passwords."""


@action_spec(
    "depose-controller",
    "An administrator deletes /controller in ZooKeeper: another election follows; the session of who lost it goes on.",
    fault="depose_controller",
)
class DeposeController(_Action, frozen=True, kw_only=True, tag="depose_controller"):
    """Delete ``/controller``, as operators do to get another controller."""


# --- Links --------------------------------------------------------------------------------------------------------


@action_spec(
    "isolate 1",
    "Nodes are cut off from the other nodes; clients still reach them, unless `clients=cut`.",
    fault="isolate",
)
class Isolate(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="isolate"):
    """Cut every link to and from nodes."""

    clients: Annotated[
        Clients,
        field.Choice(
            "clients",
            Clients,
            help="Whether links to clients are cut, too.",
            default=Clients.CUT,
            line_default=Clients.CONNECTED,
        ),
    ] = Clients.CUT
    roles: Annotated[Roles, _ROLES] = Roles.ALL


@action_spec("cut 0->1", "What 0 dials to 1 is swallowed, in both directions.", fault="cut")
class Cut(OnLink[NodeT_co], frozen=True, kw_only=True, tag="cut"):
    """Cut the connections that one node dials to another, in both directions."""


@action_spec(
    "lose-responses 0->1", "Requests of 0 reach 1, and the answers are swallowed.", verb="lose", fault="lose_responses"
)
class LoseResponses(_Action, Generic[NodeT_co], frozen=True, kw_only=True, tag="lose_responses"):
    """Drop the responses that one node gets from another; its requests still arrive."""

    link: Annotated[Link[NodeT_co], field.Arrow("responses")]
    roles: Annotated[Roles, _ROLES] = Roles.ALL


@action_spec("reset 0->1", "Connections end; requests on their way may still arrive.", fault="reset")
class Reset(OnLink[NodeT_co], frozen=True, kw_only=True, tag="reset"):
    """End the connections that one node dials to another."""


@action_spec(
    "slow 0->1 ms=40",
    "Messages of a link take longer; with `jitter=10`, that much more or less; with `direction=requests` or "
    "`direction=responses`, one way only.",
    fault="slow",
)
class Slow(OnLink[NodeT_co], frozen=True, kw_only=True, tag="slow"):
    """Make a link's messages take longer."""

    latency_ms: Annotated[
        int, field.Duration("latency", help="Delay of each message, one way, such as 40 ms.", line="ms")
    ]
    jitter_ms: Annotated[int, field.Duration("jitter", help="How much more or less, such as 10 ms.", default=0)] = 0
    direction: Annotated[
        Direction, field.Choice("direction", Direction, help="Which messages.", default=Direction.BOTH)
    ] = Direction.BOTH

    def problems(self) -> Iterator[str]:
        """Yields why the arguments contradict each other."""
        if self.jitter_ms > self.latency_ms:
            yield "jitter is at most as long as the latency"


@action_spec(
    "throttle 0->1 rate=100",
    "A link carries so many KB a second each way.",
    fault="throttle",
    refused={DriverName.SIMULATOR: "messages have no size in virtual time"},
)
class Throttle(OnLink[NodeT_co], frozen=True, kw_only=True, tag="throttle"):
    """Limit the bandwidth of a link."""

    rate_kb: Annotated[int, field.Whole("rate", help="KB per second, in each direction.", low=1)]


@action_spec(
    "half-open 0->1",
    "Requests of 0 do not reach 1, and what 1 sends on these connections still arrives.",
    fault="half_open",
)
class HalfOpen(OnLink[NodeT_co], frozen=True, kw_only=True, tag="half_open"):
    """Drop what one node sends to another; what comes back on its connections still arrives."""


@action_spec(
    "slice 0->1 size=64 pause=1",
    "Bytes of a link travel in pieces of this size at most, with a pause of so many ms before each.",
    fault="slice",
    refused={DriverName.SIMULATOR: "messages have no size in virtual time"},
)
class Slice(OnLink[NodeT_co], frozen=True, kw_only=True, tag="slice"):
    """Split the traffic of a link into small pieces."""

    size: Annotated[int, field.Whole("size", help="Maximal size of a piece in bytes.", low=1)]
    pause_ms: Annotated[int, field.Duration("pause", help="Pause before each piece, such as 1 ms.", line="pause")]

    def problems(self) -> Iterator[str]:
        """Yields why the arguments contradict each other."""
        if not self.pause_ms:
            yield "a pause of 0 ms is none"


@action_spec(
    "flap 0->1 down=500 up=500 times=3",
    "A link is cut and mended in turn, so often and for so long; then it is whole.",
    fault="flap",
)
class Flap(OnLink[NodeT_co], frozen=True, kw_only=True, tag="flap"):
    """Cut and heal a link several times; the action ends after the last time."""

    down_ms: Annotated[int, field.Duration("down", help="How long it is cut each time, such as 500 ms.", line="down")]
    up_ms: Annotated[int, field.Duration("up", help="How long it is whole after that, such as 500 ms.", line="up")]
    times: Annotated[int, field.Whole("times", help="How often it is cut.", low=1, high=10_000)]

    def problems(self) -> Iterator[str]:
        """Yields why the arguments contradict each other."""
        if min(self.down_ms, self.up_ms) < FLAP_PHASE_MIN_MS:
            yield f"down and up are {FLAP_PHASE_MIN_MS} ms at least: a shorter phase cannot be proved"


@action_spec("heal", "Every link is mended, and everything that is held is released.", heals="all")
class HealAll(_Action, frozen=True, kw_only=True, tag="heal"):
    """Heal every link."""


@action_spec("rejoin 1", "Every link of these nodes is mended.", verb="heal", heals="heal")
class HealNodes(OnNodes[NodeT_co], frozen=True, kw_only=True, tag="heal_nodes"):
    """Heal every link to and from nodes."""


@action_spec("mend 0->1", "The link is whole again.", verb="heal", heals="heal")
class HealLink(OnLink[NodeT_co], frozen=True, kw_only=True, tag="heal_link"):
    """Heal what one node dials to another."""


# --- Single messages ----------------------------------------------------------------------------------------------


@action_spec(
    "hold 0->100 AlterPartition request",
    "Messages of this kind, `request` or `response`, wait from now on.",
    fault="hold",
)
class Hold(OnChannel[NodeT_co], frozen=True, kw_only=True, tag="hold"):
    """Hold back messages of one kind."""


@action_spec(
    "release 0->100 AlterPartition request",
    "All that are held arrive in order, and nothing is done to later ones. With `count=1`, as many as counted arrive; "
    "the rest is held on.",
)
class Release(OnChannel[NodeT_co], frozen=True, kw_only=True, tag="release"):
    """Deliver the oldest messages that are held; without a count all, and leave later ones alone."""

    count: Annotated[int | None, field.OptionalWhole("count", help="How many messages.", low=1)] = None


@action_spec(
    "release-newest 1->100 Stream response",
    "The newest overtakes; of the metadata stream, all batches are then applied as one.",
)
class ReleaseNewest(OnChannel[NodeT_co], frozen=True, kw_only=True, tag="release_newest"):
    """Deliver the newest message that is held, before the others."""


@action_spec("lose 0->1 Fetch response", "The oldest held message is lost.")
class LoseHeld(OnChannel[NodeT_co], frozen=True, kw_only=True, tag="lose"):
    """Lose the oldest message that is held."""


@action_spec(
    "duplicate 0->100 AlterPartition request",
    "The oldest held request arrives now, and once more when it is released.",
)
class Duplicate(OnChannel[NodeT_co], frozen=True, kw_only=True, tag="duplicate"):
    """Deliver the oldest held request, and keep holding it."""

    def problems(self) -> Iterator[str]:
        """Yields why the arguments contradict each other."""
        yield from _only_requests(self.channel)


def _only_requests(channel: Channel[NodeRef]) -> Iterator[str]:
    if channel.way is not Way.REQUEST or channel.api in (STREAM, SYNC):
        yield "only requests are duplicated, and not those of metadata streams"


@action_spec(
    "lose-next 0->100 AlterPartition response count=1",
    "The next messages of this kind are lost, as many as counted.",
    verb="lose",
    fault="lose_messages",
)
class LoseNext(OnChannel[NodeT_co], frozen=True, kw_only=True, tag="lose_next"):
    """Lose the next messages of one kind."""

    count: Annotated[int, field.Whole("count", help="How many messages.", low=1)]

    def repair(self) -> "Action | None":
        """Returns the action that ends it, if fewer messages than its count have passed."""
        return Release(channel=self.channel)  # type: ignore[arg-type]


@action_spec(
    "duplicate-next 0->100 AlterPartition request count=1",
    "The next requests of this kind arrive twice, as many as counted.",
    verb="duplicate",
    fault="duplicate_messages",
)
class DuplicateNext(OnChannel[NodeT_co], frozen=True, kw_only=True, tag="duplicate_next"):
    """Deliver the next requests of one kind twice."""

    count: Annotated[int, field.Whole("count", help="How many requests.", low=1)]

    def repair(self) -> "Action | None":
        """Returns the action that ends it, if fewer messages than its count have passed."""
        return Release(channel=self.channel)  # type: ignore[arg-type]

    def problems(self) -> Iterator[str]:
        """Yields why the arguments contradict each other."""
        yield from _only_requests(self.channel)


@action_spec(
    "delay 1->0 Fetch request ms=50",
    "Messages of this kind arrive so much later, until they are released.",
    fault="delay_messages",
)
class DelayMessages(OnChannel[NodeT_co], frozen=True, kw_only=True, tag="delay"):
    """Deliver messages of one kind later."""

    delay_ms: Annotated[int, field.Duration("by", help="How much later, such as 50 ms.", line="ms")]

    def problems(self) -> Iterator[str]:
        """Yields why the arguments contradict each other."""
        if not self.delay_ms:
            yield "a delay of 0 ms is none"


# --- An administrator's requests --------------------------------------------------------------------------------------


_NO_VOTERS: Final = dict.fromkeys(
    (DriverName.KAFKA, DriverName.EXTERNAL), "Kafka's own tools change the voters of its quorum"
)


class AdminAction(_Action, frozen=True, kw_only=True):
    """Base of an administrator's requests: to the controller, unless an action says otherwise.

    Attributes:
        answers: the expected responses, so that one plan can make a request that one of two eras refuses.
    """

    answers: Annotated[tuple[ErrorCode, ...], field.Answers()] = (ErrorCode.NONE,)


@action_spec(
    "create_topic: {name: refunds, replicas: [[1, 2]], min.insync.replicas: 1}",
    "An administrator creates a topic, perhaps one whose name another one had before.",
)
class CreateTopic(AdminAction, frozen=True, kw_only=True, tag="create_topic"):
    """Create a topic."""

    topic: Annotated[PlannedTopic, TopicSpec()]

    @property
    def new_partitions(self) -> tuple[TopicPartition, ...]:
        return self.topic.partitions


@action_spec("delete_topic: {name: refunds}", "An administrator deletes a topic.")
class DeleteTopic(AdminAction, frozen=True, kw_only=True, tag="delete_topic"):
    """Delete a topic."""

    name: Annotated[str, field.TopicField()]


@action_spec("recreate orders", "An administrator deletes a topic and creates it again.", verb="recreate_topic")
class RecreateTopic(AdminAction, frozen=True, kw_only=True, tag="recreate_topic"):
    """Delete a topic, and create one of the same name with the same replicas and configuration."""

    name: Annotated[str, field.TopicField()]


@action_spec("create_partitions: {name: orders, count: 2}", "An administrator adds partitions to a topic.")
class CreatePartitions(AdminAction, frozen=True, kw_only=True, tag="create_partitions"):
    """Give a topic this many partitions, the new ones placed automatically."""

    name: Annotated[str, field.TopicField()]
    count: Annotated[int, field.Whole("count", help="Of all partitions.", low=1, high=10_000)]

    @property
    def new_partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition(self.name, number) for number in range(self.count))


@action_spec(
    "alter_config: {topic: orders, set: {min.insync.replicas: 1}}",
    "An administrator sets or deletes configuration entries. `min-isr orders value=1` is short for this one.",
)
class AlterConfig(AdminAction, frozen=True, kw_only=True, tag="alter_config"):
    """Set configuration entries of a topic, a broker or all brokers, or delete them."""

    config: Annotated[ConfigChange, ConfigChangeField()]


@action_spec(
    "elect_leaders: {type: designated, partition: orders-0, leader: 2}",
    "An administrator asks for leaders: preferred, unclean, designated, longest_log_balanced, longest_log_aggressive.",
)
class ElectLeaders(AdminAction, frozen=True, kw_only=True, tag="elect_leaders"):
    """Ask for leaders; ``leader`` belongs to a designated election alone."""

    election: Annotated[admin_messages.RequestedElection, ElectionField()]
    partitions: Annotated[tuple[TopicPartition, ...], PartitionSet()]
    leader: Annotated[BrokerId | None, OptionalBrokerId("leader")] = None

    @property
    def unclean_elections(self) -> tuple[TopicPartition, ...]:
        """The partitions that may get an unclean leader by the action."""
        return () if self.election is admin_messages.RequestedElection.PREFERRED else self.partitions

    def problems(self) -> Iterator[str]:
        """Yields why the arguments contradict each other."""
        if (self.leader is not None) != (self.election is admin_messages.RequestedElection.DESIGNATED):
            yield "a designated election, and no other, names its leader"


@action_spec("reassign orders-0 replicas=0,1,3", "An administrator moves a partition; `replicas=none` cancels that.")
class Reassign(AdminAction, frozen=True, kw_only=True, tag="reassign"):
    """Give a partition other replicas, the preferred one first."""

    partition: Annotated[TopicPartition, field.PartitionField()]
    replicas: Annotated[tuple[BrokerId, ...], Replicas()]


@action_spec("cancel_reassignment: {partition: orders-0}", "An administrator cancels a reassignment that is under way.")
class CancelReassignment(AdminAction, frozen=True, kw_only=True, tag="cancel_reassignment"):
    """Cancel a partition's reassignment."""

    partition: Annotated[TopicPartition, field.PartitionField()]


@action_spec(
    "update_feature: {feature: eligible.leader.replicas.version, level: 0, upgrade_type: SAFE_DOWNGRADE}",
    "An administrator finalizes a feature at a level. `elr-feature level=0` is short for this one; 0 is as unsafe as "
    "`elr=off`.",
)
class UpdateFeature(AdminAction, frozen=True, kw_only=True, tag="update_feature"):
    """Finalize a feature at a level."""

    target: Annotated[FeatureLevel, FeatureLevelField()]
    upgrade_type: Annotated[
        FeatureUpgradeType,
        field.Choice(
            "upgrade_type",
            FeatureUpgradeType,
            help="Which direction is allowed.",
            default=FeatureUpgradeType.UPGRADE,
        ),
    ] = FeatureUpgradeType.UPGRADE


@action_spec("unregister_broker: {node: 2}", "An administrator has the controller forget a broker.")
class UnregisterBroker(AdminAction, frozen=True, kw_only=True, tag="unregister_broker"):
    """Have the controller forget a broker."""

    broker_id: Annotated[BrokerId, RequiredBrokerId("node")]


@action_spec(
    "delete_records: {partition: orders-0, offset: 5}",
    "An administrator has a partition's leader delete the records below an offset, -1 for all that are committed.",
)
class DeleteRecords(AdminAction, frozen=True, kw_only=True, tag="delete_records"):
    """Have the leader raise its log start to ``offset``; ``None`` is its high watermark."""

    partition: Annotated[TopicPartition, field.PartitionField()]
    offset: Annotated[Offset | None, DeletionOffset()]

    @property
    def deletions(self) -> tuple[events.RequestedDeletion, ...]:
        """The deletions that the action asks for, in the form of the events."""
        return (events.RequestedDeletion(partition=str(self.partition), offset=self.offset),)


# --- The voters of several controllers --------------------------------------------------------------------------------


class VoterAction(AdminAction, Generic[NodeT_co], frozen=True, kw_only=True):
    """Base of changes of the quorum's voters, one voter at a time (KIP-853)."""

    node: Annotated[NodeT_co, field.ControllerField()]


@action_spec(
    "add-voter 102",
    "An administrator makes a controller a voter (AddRaftVoter), with the disk that it has now; in a scenario once its "
    "log has caught up.",
    refused=_NO_VOTERS,
)
class AddVoter(VoterAction[NodeT_co], frozen=True, kw_only=True, tag="add_voter"):
    """Make an observer a voter."""


@action_spec(
    "remove-voter 102",
    "An administrator makes a voter an observer (RemoveRaftVoter), the leader perhaps, which resigns then; or removes "
    "the voter that a node was before its disk was replaced.",
    refused=_NO_VOTERS,
)
class RemoveVoter(VoterAction[NodeT_co], frozen=True, kw_only=True, tag="remove_voter"):
    """Make a voter an observer."""


# --- All of them --------------------------------------------------------------------------------------------------

Administration: TypeAlias = (
    CreateTopic
    | DeleteTopic
    | RecreateTopic
    | CreatePartitions
    | AlterConfig
    | ElectLeaders
    | Reassign
    | CancelReassignment
    | UpdateFeature
    | UnregisterBroker
    | DeleteRecords
)
"""An administrator's requests."""

VoterChange: TypeAlias = AddVoter[NodeT_co] | RemoveVoter[NodeT_co]
"""Changes of the voters of several controllers."""

ProcessAction: TypeAlias = (
    Kill[NodeT_co]
    | PowerLoss[NodeT_co]
    | CrashWithin[NodeT_co]
    | ReplaceDisk[NodeT_co]
    | LoseQuorumState[NodeT_co]
    | Start[NodeT_co]
    | Stop[NodeT_co]
    | Pause[NodeT_co]
    | Resume[NodeT_co]
    | Disconnect[NodeT_co]
    | Connect[NodeT_co]
    | SyncDisk[NodeT_co]
    | SlowDisk[NodeT_co]
    | LoseSyncs[NodeT_co]
    | DiskError[NodeT_co]
    | DiskFull[NodeT_co]
    | FlipBit[NodeT_co]
    | ClockRate[NodeT_co]
    | ClockJump[NodeT_co]
    | Expire[NodeT_co]
    | ExpireSession[NodeT_co]
    | Grant[NodeT_co]
    | Revoke[NodeT_co]
    | ExpireCertificate[NodeT_co]
    | RenewCertificate[NodeT_co]
)
"""Actions on processes, their disks, permissions and certificates."""

LinkAction: TypeAlias = (
    Isolate[NodeT_co]
    | Cut[NodeT_co]
    | LoseResponses[NodeT_co]
    | Reset[NodeT_co]
    | Slow[NodeT_co]
    | Throttle[NodeT_co]
    | HalfOpen[NodeT_co]
    | Slice[NodeT_co]
    | Flap[NodeT_co]
    | HealAll
    | HealNodes[NodeT_co]
    | HealLink[NodeT_co]
)
"""Actions on links."""

MessageAction: TypeAlias = (
    Hold[NodeT_co]
    | Release[NodeT_co]
    | ReleaseNewest[NodeT_co]
    | LoseHeld[NodeT_co]
    | Duplicate[NodeT_co]
    | LoseNext[NodeT_co]
    | DuplicateNext[NodeT_co]
    | DelayMessages[NodeT_co]
)
"""Actions on single messages."""

_AnyAction: TypeAlias = (
    Wait
    | Produce
    | Transact
    | Consume
    | Member
    | Draw
    | DeposeController
    | ProcessAction[NodeT_co]
    | LinkAction[NodeT_co]
    | MessageAction[NodeT_co]
    | Administration
    | VoterChange[NodeT_co]
)

Action: TypeAlias = _AnyAction[NodeId]
"""Actions that can be performed."""

ActionTemplate: TypeAlias = _AnyAction[NodeRef]
"""Actions as a scenario or a person asks for them: nodes may be roles or names."""


FoundT = TypeVar("FoundT", bound=NodeRef)


def with_nodes(action: ActionTemplate, find: Callable[[NodeRef], FoundT]) -> "_AnyAction[FoundT]":
    """Returns an action with its nodes found."""
    changes: dict[str, object] = {}
    match action:
        case OnNodes(nodes=nodes) | OnBrokers(nodes=nodes):
            changes["nodes"] = tuple(find(node) for node in nodes)
        case VoterAction(node=node):
            changes["node"] = find(node)
        case OnLink(link=link) | LoseResponses(link=link):
            changes["link"] = Link(find(link.source), find(link.target))
        case OnChannel(channel=channel):
            changes["channel"] = channel._replace(source=find(channel.source), target=find(channel.target))
        case _:
            pass
    return cast(_AnyAction[FoundT], msgspec.structs.replace(action, **changes) if changes else action)


def with_members(action: ActionTemplate, members: Callable[[NodeGroup], tuple[NodeId, ...]]) -> ActionTemplate:
    """Returns an action with groups replaced by their members; a link has a group at each end."""

    def one(node: NodeRef) -> NodeRef:
        return members(node)[0] if isinstance(node, NodeGroup) else node

    changes: dict[str, object] = {}
    match action:
        case OnNodes(nodes=nodes) | OnBrokers(nodes=nodes):
            found = (members(node) if isinstance(node, NodeGroup) else (node,) for node in nodes)
            changes["nodes"] = tuple(dict.fromkeys(each for group in found for each in group))
        case OnLink(link=link) | LoseResponses(link=link):
            changes["link"] = Link(one(link.source), one(link.target))
        case OnChannel(channel=channel):
            changes["channel"] = channel._replace(source=one(channel.source), target=one(channel.target))
        case _:
            pass
    return msgspec.structs.replace(action, **changes) if changes else action


def nodes_of(action: ActionTemplate) -> tuple[NodeRef, ...]:
    """Returns the nodes that an action names, in order."""
    found: list[NodeRef] = []

    def append(node: NodeRef) -> NodeId:
        found.append(node)
        return NodeId(0)

    with_nodes(action, append)
    return tuple(found)
