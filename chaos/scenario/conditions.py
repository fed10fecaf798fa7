"""Conditions that a step of a scenario may wait for."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import Acks, LeaderRecoveryState, NodeId, Offset, TopicPartition
from laststand.emulator.plan.channels import Channel
from laststand.emulator.plan.nodes import NamedNode, NodeRef

DEFAULT_WITHIN_MS: Final = 30_000
"""Deadline of a barrier that names none."""


class NoLeader(Enum):
    """Stands for a leader in a condition: the partition has none."""

    NONE = "none"


class CountPer(Enum):
    """Over what acknowledged records are counted."""

    TOTAL = "total"
    PARTITION = "partition"
    """Each partition by itself."""


class Since(Enum):
    """The moment from which on records are counted."""

    STEP = "step"
    RUN = "run"


@dataclass(frozen=True, kw_only=True)
class Acked:
    """``count`` records were acknowledged to producers with ``acks`` (any, if ``None``)."""

    count: int
    acks: Acks | None
    partitions: tuple[TopicPartition, ...]
    per: CountPer
    since: Since = Since.STEP


@dataclass(frozen=True, kw_only=True)
class PartitionIs:
    """Committed state of every one of ``partitions``; ``None`` accepts any value.

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
    """The condition that a broker is fenced, or unfenced."""

    node: NodeRef
    unfenced: bool


@dataclass(frozen=True, kw_only=True)
class RegistrationIs:
    """The condition that a broker is registered, or not."""

    node: NodeRef
    exists: bool


@dataclass(frozen=True, kw_only=True)
class LogIs:
    """The condition that a node's log directory holds a log with the name of a partition, whatever its topic id."""

    node: NodeRef
    partition: TopicPartition
    exists: bool


@dataclass(frozen=True, kw_only=True)
class LogEnds:
    """The condition that a node's log of a partition ends at an offset, synced or not."""

    node: NodeRef
    partition: TopicPartition
    end: Offset


@dataclass(frozen=True, kw_only=True)
class TopicIs:
    """The condition that a topic exists, or not."""

    topic: str
    exists: bool


@dataclass(frozen=True, kw_only=True)
class FeatureIs:
    """A finalized feature level; 0 if there is none."""

    feature: str
    level: int


@dataclass(frozen=True, kw_only=True)
class ClientSaw:
    """Producers and consumers received ``error`` ``count`` times since the step began."""

    error: ErrorCode
    count: int


@dataclass(frozen=True, kw_only=True)
class Consumed:
    """``count`` records reached consumers."""

    count: int
    since: Since = Since.STEP


@dataclass(frozen=True, kw_only=True)
class Intercepted:
    """Faults have held, lost, duplicated or delayed ``count`` messages of one kind since the run began."""

    channel: Channel[NodeRef]
    count: int


@dataclass(frozen=True, kw_only=True)
class Elapsed:
    """The condition that a time has passed since the beginning of the step ``steps`` steps before this one."""

    duration_ms: int
    steps: int = 0


@dataclass(frozen=True, kw_only=True)
class AnyOf:
    """One of several conditions holds."""

    conditions: tuple["Condition", ...]


Condition: TypeAlias = (
    Acked
    | PartitionIs
    | BrokerIs
    | RegistrationIs
    | LogIs
    | LogEnds
    | TopicIs
    | FeatureIs
    | ClientSaw
    | Consumed
    | Intercepted
    | Elapsed
    | AnyOf
)


@dataclass(frozen=True, kw_only=True)
class Until:
    """Waits for a condition, ``within_ms`` at most."""

    condition: Condition
    within_ms: int = DEFAULT_WITHIN_MS

    def with_names(self, names: Mapping[str, NodeId]) -> "Until":
        """Returns the barrier with ids in place of the names that steps gave to nodes."""
        return dataclasses.replace(self, condition=_named(self.condition, names))


def _named(condition: Condition, names: Mapping[str, NodeId]) -> Condition:
    if isinstance(condition, AnyOf):
        return AnyOf(conditions=tuple(_named(each, names) for each in condition.conditions))
    changes = {each.name: _with_names(getattr(condition, each.name), names) for each in dataclasses.fields(condition)}
    return dataclasses.replace(condition, **changes)  # type: ignore[arg-type]


def _with_names(value: object, names: Mapping[str, NodeId]) -> object:
    match value:
        case NamedNode(name=name):
            return names[name]
        case Channel(source=source, target=target):
            return value._replace(source=_with_names(source, names), target=_with_names(target, names))
        case tuple() if not isinstance(value, TopicPartition):
            return tuple(_with_names(each, names) for each in value)
        case _:
            return value
