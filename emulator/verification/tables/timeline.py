"""The small part of a run that is kept event by event: what controller and harness decided, and what logs lost.

Elections, registrations, fencings, ends of processes, faults, steps and truncations: from these the story of a loss is
told, and by these the guarantee is judged. Batches, acknowledgements and high watermarks are in ``facts.partition``.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

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


class Timeline(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The collected events of one run, ordered by node, incarnation and sequence: never across nodes.

    Each partition of a run asks for the same of it, so that nothing is looked for twice.
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
    def members(self) -> tuple[Mapping[str, str], ...]:
        """The rules of every process of a node, each once: those of a mixed cluster are several."""
        known = {
            tuple(sorted(started.switches.items())): started.switches
            for started in self.of(NodeStarted)
            if started.role is not NodeRole.HARNESS
        }
        return tuple(known.values())

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
        """The topic for which a broker used a log that it found under another topic's id: the files still name that id.

        Returns:
            Topic id by node, topic, partition and the id on disk; empty unless strays are left where they are.
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
