"""The small part of a run that is kept event by event: decisions of controller and harness, and losses of logs.

Elections, registrations, fencings, ends of processes, faults, steps and truncations: the story of a loss and the
judgement of the guarantee need only these. Batches, acknowledgements and high watermarks are in ``facts.partition``.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from laststand.emulator.core.events import (
    BecameFollower,
    BecameLeader,
    BrokerFenced,
    BrokerRegistered,
    BrokerStateChanged,
    BrokerUnfenced,
    ClientStarted,
    ConfigChanged,
    ControlledShutdownStarted,
    Event,
    FaultHealed,
    FaultInjected,
    FeatureChanged,
    IncarnationEnded,
    IncarnationStarted,
    LogTruncated,
    MessageIntercepted,
    NodeStarted,
    OrderRelayed,
    PartitionChanged,
    PowerLost,
    RunEnded,
    StepReached,
    StrayDetected,
    TopicCreated,
    TopicDeleted,
)
from laststand.emulator.core.promises import Keeper, Member, is_promised_by_all
from laststand.emulator.core.types import NodeRole

COLLECTED: Final[tuple[type[Event], ...]] = (
    NodeStarted,
    IncarnationStarted,
    IncarnationEnded,
    ClientStarted,
    FaultInjected,
    FaultHealed,
    MessageIntercepted,
    PowerLost,
    StepReached,
    OrderRelayed,
    RunEnded,
    BrokerStateChanged,
    BrokerRegistered,
    BrokerFenced,
    BrokerUnfenced,
    ControlledShutdownStarted,
    TopicCreated,
    TopicDeleted,
    ConfigChanged,
    FeatureChanged,
    PartitionChanged,
    BecameLeader,
    BecameFollower,
    LogTruncated,
    StrayDetected,
)
"""Event types that are collected."""

_Event = TypeVar("_Event", bound=Event)
_Event_co = TypeVar("_Event_co", bound=Event, covariant=True)


class CollectedEvent(msgspec.Struct, Generic[_Event_co], frozen=True, kw_only=True):
    """An event and its place in its node's file.

    Attributes:
        time_ns: the node's clock; compared only within one process, and only where a promise names a duration.
    """

    node: int
    incarnation: int
    sequence: int
    event: _Event_co
    time_ns: int = 0


class EventPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the event log.

    Attributes:
        file: relative to the run's directory.
        sequence: number of the line.
    """

    file: str
    sequence: int


class ProcessName(NamedTuple):
    """One process of a node."""

    node: int
    incarnation: int


class Timeline(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The collected events of one run, ordered by node, incarnation and sequence: never across nodes.

    All partitions of a run need the same results of it, so results are cached.
    """

    events: tuple[CollectedEvent[Event], ...]

    def of(self, kind: type[_Event]) -> Iterator[_Event]:
        """The events of one type, in each node's order."""
        return iter(self._by_kind.get(kind, ()))

    @cached_property
    def _by_kind(self) -> Mapping[type[Event], list[Any]]:
        found: dict[type[Event], list[Event]] = {}
        for collected in self.events:
            found.setdefault(type(collected.event), []).append(collected.event)
        return found

    def switches(self) -> Mapping[str, str]:
        """The rules of the run, by the first line of the node that has the metadata; empty if there is none."""
        for started in self.of(NodeStarted):
            if started.role.has_metadata:
                return started.switches
        return {}

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """The different rules that nodes of each role had; a mixed cluster has several."""
        return _each_once(started for _, started in self._started)

    def is_promised_by_all(self, check_id: str) -> bool:
        """Returns whether every member made a check's promise; each partition asks that again."""
        answer = self._promised.get(check_id)
        if answer is None:
            answer = self._promised[check_id] = is_promised_by_all(check_id, self.members)
        return answer

    @cached_property
    def _promised(self) -> dict[str, bool]:
        return {}

    def members_behind(self, process: ProcessName, keeper: Keeper) -> tuple[Member, ...]:
        """Returns the members whose rules decide whether a promise holds for an action or a report of a process."""
        return _each_once(
            started for other, started in self._started if _is_behind(other, started.role, process, keeper)
        )

    @cached_property
    def _started(self) -> tuple[tuple[ProcessName, NodeStarted], ...]:
        return tuple(
            (ProcessName(each.node, each.incarnation), each.event)
            for each in self.events
            if isinstance(each.event, NodeStarted) and each.event.role is not NodeRole.HARNESS
        )

    def incarnation_of(self, incarnation_id: str) -> int | None:
        """The number of the incarnation that registered under this id; ``None`` if its first line is missing."""
        return self._incarnations.get(incarnation_id)

    @cached_property
    def _incarnations(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for collected in self.events:
            if isinstance(collected.event, NodeStarted):
                found.setdefault(collected.event.incarnation_id, collected.incarnation)
        return found

    @cached_property
    def logs_taken_over(self) -> Mapping[tuple[int, str, int, str], str]:
        """The logs of deleted topics that brokers went on to use for a new topic of the same name.

        Their files still have the id of the deleted topic.

        Returns:
            The id of the new topic by node, topic, partition and the id on disk; empty unless stray logs are kept.
        """
        strays: dict[tuple[int, str, int], str] = {}
        taken: dict[tuple[int, str, int, str], str] = {}
        for collected in self.events:
            match collected.event:
                case StrayDetected(action="off") as stray:
                    strays[collected.node, stray.topic, stray.partition] = stray.topic_id
                case (BecameLeader() | BecameFollower()) as role:
                    id_on_disk = strays.get((collected.node, role.topic, role.partition), role.topic_id)
                    if id_on_disk != role.topic_id:
                        taken[collected.node, role.topic, role.partition, id_on_disk] = role.topic_id
        return taken


def _each_once(started: Iterable[NodeStarted]) -> tuple[Member, ...]:
    known = {(each.role, *sorted(each.switches.items())): Member(each.role, each.switches) for each in started}
    return tuple(known.values())


def _is_behind(other: ProcessName, role: NodeRole, process: ProcessName, keeper: Keeper) -> bool:
    is_before = other.node == process.node and other.incarnation <= process.incarnation
    match keeper:
        case Keeper.CLUSTER:
            return True
        case Keeper.CONTROLLERS:  # another controller's records may be part of the state
            return is_before or (other.node != process.node and role.has_metadata)
        case Keeper.BROKER:
            return is_before
        case Keeper.PROCESS:
            return other == process
