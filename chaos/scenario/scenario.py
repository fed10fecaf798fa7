"""A scenario, once it has been read and checked.

A scenario has a cluster, a workload, steps, and the expected result for each era. Steps wait for protocol state, never
for time. Nodes are named by id, by *role* (``leader(orders-0)``, ``last-isr``, ``elr``, ``follower``),
which is resolved when the step is reached, or by a name that an earlier step gave with ``as``.
"""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal, TypeAlias

from laststand.chaos.scenario import conditions
from laststand.emulator.core.switches import DEFAULT_ERA, Switches
from laststand.emulator.core.types import Acks, BrokerId, NodeId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import NodeRef, controller_ids
from laststand.emulator.plan.topics import PlannedTopic


@dataclass(frozen=True, kw_only=True)
class RoundLimit:
    """A round of ``every`` does not begin once ``span_ms`` have passed since the first round began.

    Attributes:
        before: number of steps in the rounds before it.
        rest: number of steps in it and the rounds after it.
    """

    span_ms: int
    before: int
    rest: int


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: its barrier or action, its text and line, and the name that it gives to its node.

    Attributes:
        together: the ``parallel`` that it is part of, if any; adjacent steps with the same one are played in parallel.
        limit: of the round that it begins, if it begins one.
    """

    action: conditions.Until | actions.ActionTemplate
    text: str
    line: int
    bind: str | None = None
    together: str | None = None
    limit: RoundLimit | None = None


@dataclass(frozen=True, kw_only=True)
class ProducerPlan:
    """One producer: ``rate`` records/s of ``record_size`` bytes over all partitions of ``topics``.

    With rate 0 it sends only what ``produce`` steps ask for. A topic that a step creates gets records once the producer
    knows of it.
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


@dataclass(frozen=True, kw_only=True)
class TransactionsPlan:
    """Transactions that the transactional producer makes by itself.

    Each has a batch of ``size`` records in each of ``partitions`` partitions, which take turns; each
    ``abort_every``-th is aborted (0: none). ``rate`` transactions per second, one after the other.
    """

    partitions: int
    size: int
    abort_every: int
    rate: int


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """A consumer group that has ``members`` members from the start; they read all topics but internal ones."""

    name: str
    members: int
    is_static: bool
    properties: tuple[tuple[str, str], ...]


class VerdictName(Enum):
    """The three verdicts, and a value that accepts two of them."""

    VALID = "valid"
    VIOLATION = "violation"
    UNKNOWN = "unknown"
    VALID_OR_EXCEEDED = "valid_or_exceeded"
    """Valid, or a violation by nothing but losses outside of the guarantee."""


Comparison: TypeAlias = Literal["==", ">=", "<=", ">", "<"]


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A bound on a number."""

    comparison: Comparison
    limit: float

    def holds(self, number: float) -> bool:
        """Returns whether a number is as expected."""
        return {
            "==": number == self.limit,
            ">=": number >= self.limit,
            "<=": number <= self.limit,
            ">": number > self.limit,
            "<": number < self.limit,
        }[self.comparison]

    def __str__(self) -> str:
        return f"{self.comparison}{self.limit:.15g}"


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """The expected result for one era; ``None`` and empty fields accept any value.

    Attributes:
        line: in the file, from 1.
        guarantee: ``VerdictReport.worst_guarantee``.
        lost: number of lost records that were acknowledged with acks=all.
        lost_acks_1: number of lost records that were acknowledged with acks=1.
        unavailable: ``VerdictReport.unavailable_s``, in seconds.
        p99_ack: ``VerdictReport.p99_ack_s``, in seconds.
    """

    line: int = 1
    verdict: VerdictName
    guarantee: Literal["broken", "exceeded"] | None
    checks: tuple[str, ...]
    lost: Bound | None
    lost_acks_1: Bound | None = None
    unavailable: Bound | None = None
    p99_ack: Bound | None = None


class Ending(Enum):
    """The end of a scenario: remaining faults are healed, or stay."""

    RESTORE = "restore"
    """Heal, continue and start everything, and wait for leaders and full ISR."""

    AS_IS = "as_is"


class MissedStep(Enum):
    """The treatment of a barrier that times out, or of an answer that a step does not allow: fail, or end the steps."""

    PROBLEM = "problem"
    """The steps after it are left out, and the verdict is unknown at best."""

    END = "end"
    """The steps after it are left out, and the run is judged by what was played."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules under which a recorded plan was played."""

    era: str
    switches: Switches


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """A condition on the rules under which a scenario may be played.

    Attributes:
        name: of a rule, or ``eras``.
        allowed: rules or eras, one of which is required.
        line: in the file, from 1.
        source: what requires it: a key of the file, or a step.
    """

    name: str
    allowed: tuple[str, ...]
    line: int
    source: str


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """An ``inter.broker.protocol.version``, with those of single brokers, in the form of ``--set``, and its line."""

    version: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A whole scenario file.

    Attributes:
        path: the path of the file.
        text: the text of the file.
        brokers: there are brokers 0 to ``brokers`` - 1.
        controllers: there are controllers 100 to 99 + ``controllers``.
        standby_controllers: number of further controllers, with the next ids, which are down and no voters.
        combined: controller 100 shares a process with broker 0, and so on.
        properties: of every node, by Kafka's names.
        protocol: protocol version of brokers in a cluster with ZooKeeper, and its line; ``None`` for the era's.
        kafka_clients: names of the clients of Kafka that have links of their own.
        applications: commands that are started as these clients, by their names.
        seed: for random choices, if the file fixes it (a recorded plan does).
        rules: the rules of the recorded run, if the file is a recorded plan.
        zookeeper_at: line at which a step first names ZooKeeper's server by that word; ``None`` if none does.
        report: the additional reports.
        expect: by era.
        expect_changed: by label of an era with changes (``kip-966 with elr=off``).
        requires: of the rules and the era under which it is played.
    """

    path: Path
    text: str
    name: str
    title: str
    source: str
    brokers: int
    properties: tuple[tuple[str, str], ...]
    topics: tuple[PlannedTopic, ...]
    producers: tuple[ProducerPlan, ...]
    consumers: tuple[ConsumerPlan, ...]
    steps: tuple[Step, ...]
    end: Ending
    seed: int | None
    expect: tuple[tuple[str, Expectation], ...]
    expect_changed: tuple[tuple[str, Expectation], ...] = ()
    protocol: Protocol | None = None
    missed_step: MissedStep = MissedStep.PROBLEM
    report: str | None = None
    rules: Rules | None = None
    requires: tuple[Requirement, ...] = ()
    zookeeper_at: int | None = None
    controllers: int = 1
    standby_controllers: int = 0
    combined: bool = False
    kafka_clients: tuple[str, ...] = ()
    applications: tuple[tuple[str, str], ...] = ()
    transactions: TransactionsPlan | None = None
    groups: tuple[GroupPlan, ...] = ()

    @property
    def broker_ids(self) -> tuple[BrokerId, ...]:
        """All brokers, ascending."""
        return tuple(BrokerId(NodeId(index)) for index in range(self.brokers))

    @property
    def controller_ids(self) -> tuple[NodeId, ...]:
        """All controllers, ascending; of a cluster with ZooKeeper its server."""
        return controller_ids(self.controllers + self.standby_controllers)

    @property
    def standby_ids(self) -> tuple[NodeId, ...]:
        """Controllers that are down, and no voters, until a step starts and adds them."""
        return self.controller_ids[self.controllers :]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """All partitions of the topics that are there from the start."""
        return tuple(partition for topic in self.topics for partition in topic.partitions)

    @property
    def made_partitions(self) -> tuple[TopicPartition, ...]:
        """All other partitions, which steps create."""
        made = (
            each
            for step in self.steps
            if not isinstance(step.action, conditions.Until)
            for each in step.action.new_partitions
        )
        return tuple(dict.fromkeys(each for each in made if each not in self.partitions))

    @property
    def made_topics(self) -> tuple[str, ...]:
        """The topics that steps make, and that are not there from the start."""
        known = [topic.name for topic in self.topics]
        return tuple(dict.fromkeys(each.topic for each in self.made_partitions if each.topic not in known))

    @property
    def channels(self) -> frozenset[Channel[NodeRef]]:
        """The channels whose messages a step affects."""
        return frozenset(step.action.channel for step in self.steps if isinstance(step.action, actions.OnChannel))

    def needs_proxies(self, driver: DriverName) -> bool:
        """Returns whether a driver needs proxies for it; Laststand's own nodes apply faults of messages themselves."""
        if not driver.has_processes:
            return False
        if driver is DriverName.KAFKA and (self.channels or self.controllers > 1):
            return True
        return bool(self.kafka_clients) or any(
            not isinstance(step.action, conditions.Until) and actions.spec_of(step.action).breaks_links
            for step in self.steps
        )

    @property
    def has_power_losses(self) -> bool:
        """The scenario cuts the power of nodes, so that their syncs must be recorded."""
        return any(isinstance(step.action, actions.PowerLoss) for step in self.steps)

    def loses_power_of(self, node_id: NodeId) -> bool:
        """Returns whether a step cuts the power of a certain node, so that its syncs must be recorded."""
        return any(isinstance(step.action, actions.PowerLoss) and node_id in step.action.nodes for step in self.steps)

    @property
    def eras(self) -> tuple[str, ...]:
        """Eras to play it in if none is named: the default one, or, if it expects only others, those."""
        expected = tuple(era for era, _ in self.expect)
        return (DEFAULT_ERA,) if not expected or DEFAULT_ERA in expected else expected

    def expectation(self, label: str) -> Expectation | None:
        """Returns the file's expectation for an era, or for one with changes (``kip-966 with elr=off``), if any."""
        return dict((*self.expect, *self.expect_changed)).get(label)
