"""Facts about the cluster as a whole: processes, registrations, features, metadata that each node applied.

These facts of a run are small however long the run is, and are available for each partition.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.history import GroupPositionOperation
from laststand.emulator.core.types import ClusterKind, NodeRole, Witness, ZnodeWrite
from laststand.emulator.verification.facts.configuration import Configuration
from laststand.emulator.verification.facts.controller_terms import CONTROLLER_NODE, ControllerTerms
from laststand.emulator.verification.facts.group_positions import Positions
from laststand.emulator.verification.facts.memberships import Memberships
from laststand.emulator.verification.facts.quorum import MetadataLog, Quorum
from laststand.emulator.verification.facts.transactions import TransactionFacts
from laststand.emulator.verification.tables.events import EventTable
from laststand.emulator.verification.tables.late_topic_ids import LateTopicIds, find_late_topic_ids
from laststand.emulator.verification.tables.timeline import CollectedEvent, EventPlace, Timeline
from laststand.emulator.verification.tables.vocabulary import COMMITTED, EVENT_TYPES

ELR_FEATURE: Final = "eligible.leader.replicas.version"
METADATA_VERSION: Final = "metadata.version"
_LEADER_RECOVERY: Final = 3
"""Level of ``metadata.version`` 3.2-IV0, below which no partition is RECOVERING (KIP-704)."""

_CLOCK_FAULTS: Final = frozenset({"clock", "clock_jump"})
_SLOW_DISK: Final = "slow_disk"
_DELETE_TOPICS: Final = "/admin/delete_topics/"
_ISR_CHANGE_NOTIFICATIONS: Final = "/isr_change_notification/"

_Process = tuple[int, int]
"""Node and incarnation."""


class Silence(NamedTuple):
    """A time in which answers on the link of a client of Kafka may have been swallowed.

    Attributes:
        source: the client, as an end of links.
        target: the broker.
        begun_ns: when it began, by the clock of events.
        ended_ns: when it was over.
    """

    source: int
    target: int
    begun_ns: int
    ended_ns: float


class FaultPeriod(NamedTuple):
    """A fault, and the first event that ended it; ``None`` if it lasts until the end of the run."""

    injected: CollectedEvent[events.FaultInjected]
    healed: CollectedEvent[events.FaultHealed] | None


def begun_ns(collected: CollectedEvent[events.FaultInjected] | CollectedEvent[events.FaultHealed]) -> int:
    """Returns the start of a fault, or of its heal: the harness writes the event only once it has seen the effect."""
    return collected.time_ns if collected.event.begun_ns is None else collected.event.begun_ns


def _place(collected: CollectedEvent[events.Event]) -> tuple[int, int]:
    return collected.incarnation, collected.sequence


class AppliedMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The last metadata that a node acted on: up to ``end_offset``, exclusive."""

    incarnation: int
    end_offset: int


class ClusterFacts:
    """The facts of one run that belong to no single partition.

    Attributes:
        events: except those of a single partition.
        event_files: name of each process's event file.
        node_directories: nodes that left a directory.
        is_history_whole: whether every line of the clients' histories was read.
        transactions: of its clients.
        memberships: of members of groups.
        group_positions: positions of consumer groups that clients committed or received.
        metadata_logs: those of controllers on disk, by node.
    """

    def __init__(self) -> None:
        self.events = EventTable()
        self.event_files: dict[_Process, str] = {}
        self.node_directories: set[int] = set()
        self.is_history_whole = True
        self.transactions = TransactionFacts()
        self.memberships = Memberships()
        self.group_positions: list[GroupPositionOperation] = []
        self.metadata_logs: dict[int, MetadataLog] = {}

    def place(self, collected: CollectedEvent[events.Event]) -> EventPlace:
        """Returns the place of an event in the event log."""
        return EventPlace(
            file=f"events/{self.event_files[collected.node, collected.incarnation]}", sequence=collected.sequence
        )

    @cached_property
    def by_cause(self) -> Mapping[str, Sequence[CollectedEvent[events.Event]]]:
        """The events that belong to no partition, by their cause id."""
        found: dict[str, list[CollectedEvent[events.Event]]] = {}
        for kind in EVENT_TYPES:
            if not issubclass(kind, events.PartitionEvent):
                for collected in self.events.of(kind):
                    found.setdefault(collected.event.cause_id, []).append(collected)
        return found

    @cached_property
    def committed_positions(self) -> Positions:
        """The positions that groups committed; to be used once every history is read."""
        return Positions(self.transactions, self.memberships)

    @cached_property
    def origin_ns(self) -> int:
        """The clocks' time 0 of a story: the creation of the first partition, else the first line."""
        created = [each.time_ns for each in self.events.of(events.PartitionChanged)]
        return min(created or (each.time_ns for each in self.events.of(events.NodeStarted)), default=0)

    @cached_property
    def partition_count(self) -> int:
        """The number of partitions of which the controller committed a state."""
        return len({(each.event.topic, each.event.partition) for each in self.events.of(events.PartitionChanged)})

    @cached_property
    def quorum(self) -> Quorum:
        """The quorum of controllers."""
        return Quorum(self.events, self.metadata_logs if len(self.metadata_logs) > 1 else {})

    @cached_property
    def started(self) -> Mapping[_Process, CollectedEvent[events.NodeStarted]]:
        """The first line of each process."""
        return {(start.node, start.incarnation): start for start in self.events.of(events.NodeStarted)}

    @cached_property
    def silences(self) -> tuple[Silence, ...]:
        """The times in which answers on links of clients of Kafka may have been swallowed."""
        return tuple(
            Silence(link.source, link.target, begun_ns(injected), math.inf if healed is None else healed.time_ns)
            for injected, healed in self.fault_periods
            for link in injected.event.silenced
        )

    @cached_property
    def fault_periods(self) -> tuple[FaultPeriod, ...]:
        """Every fault, with its end."""
        healed = sorted(self.events.of(events.FaultHealed), key=_place)
        return tuple(
            FaultPeriod(
                injected,
                next(
                    (each for each in healed if _place(each) > _place(injected) and each.event.mends(injected.event)),
                    None,
                ),
            )
            for injected in self.events.of(events.FaultInjected)
        )

    @cached_property
    def is_seen_from_outside(self) -> bool:
        """True if nodes did not write events themselves, so that some of their actions may be unrecorded."""
        return any(start.event.witness is not Witness.PROCESS for start in self.started.values())

    @cached_property
    def is_seen_by_clients_alone(self) -> bool:
        """True if nodes left neither events nor logs, so that the final consumer's reads stand for the final logs."""
        return any(start.event.witness is Witness.CLIENTS for start in self.started.values())

    @cached_property
    def has_plan(self) -> bool:
        """A harness played a scenario, and made the topics that its clients wrote to."""
        return any(start.event.ending is not None for start in self.started.values())

    @cached_property
    def last_incarnation(self) -> Mapping[int, int]:
        """The last incarnation of each node."""
        return dict(sorted(self.started))

    @cached_property
    def killed(self) -> frozenset[_Process]:
        """Processes that did not stop in order."""
        ends = (end.event for end in self.events.of(events.IncarnationEnded))
        return frozenset(
            (end.ended_node, end.ended_incarnation) for end in ends if end.end is not events.IncarnationEnd.STOPPED
        )

    @cached_property
    def controllers_rules(self) -> tuple[Mapping[str, str], ...]:
        """The rules of all nodes with metadata; a record that one of them wrote may have been published by another."""
        started = (each.event for each in self.events.of(events.NodeStarted))
        known = {tuple(sorted(each.switches.items())): each.switches for each in started if each.role.has_metadata}
        return tuple(known.values())

    @cached_property
    def has_changed_clocks(self) -> bool:
        """True if a fault set a node's clock forward, or changed a clock's rate."""
        return any(injected.event.fault in _CLOCK_FAULTS for injected in self.events.of(events.FaultInjected))

    @cached_property
    def has_slowed_controllers(self) -> bool:
        """True if a fault slowed a controller's disk, so that its events carry later times than what they record."""
        controllers = {each.node for each in self.events.of(events.NodeStarted) if each.event.role.has_metadata}
        slowed = (each.event.nodes for each in self.events.of(events.FaultInjected) if each.event.fault == _SLOW_DISK)
        return not controllers.isdisjoint(node for nodes in slowed for node in nodes)

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration at any metadata offset."""
        relevant: list[CollectedEvent[events.Event]] = [
            *self.events.of(events.NodeStarted),
            *self.events.of(events.ConfigChanged),
            *self.events.of(events.TopicDeleted),
        ]
        return Configuration(Timeline(events=tuple(relevant)))

    @cached_property
    def registrations(self) -> tuple[CollectedEvent[events.BrokerRegistered], ...]:
        """Registrations in the controller's order."""
        return tuple(sorted(self.events.of(events.BrokerRegistered), key=lambda each: each.event.metadata_offset))

    def registered_before(self, metadata_offset: int) -> Mapping[int, events.BrokerRegistered]:
        """The last registration of each broker before a metadata offset."""
        return {
            each.event.broker_id: each.event
            for each in self.registrations
            if each.event.metadata_offset < metadata_offset
        }

    @cached_property
    def registered_at(self) -> Mapping[_Process, int]:
        """Metadata offset at which each process was first registered."""
        registered: dict[_Process, int] = {}
        for registration in self.registrations:
            process = self.process_of(registration.event)
            if process is not None:
                registered.setdefault(process, registration.event.metadata_offset)
        return registered

    def process_of(self, registration: events.BrokerRegistered) -> _Process | None:
        """The process that was registered; ``None`` if its first line is missing."""
        return self._processes.get((registration.broker_id, registration.incarnation_id))

    @cached_property
    def _processes(self) -> Mapping[tuple[int, str], _Process]:
        return {(start.node, start.event.incarnation_id): process for process, start in self.started.items()}

    @cached_property
    def kind(self) -> ClusterKind:
        """The owner of the cluster's metadata, by the processes that were started."""
        has_server = any(start.event.role is NodeRole.ZOOKEEPER for start in self.started.values())
        return ClusterKind.ZOOKEEPER if has_server else ClusterKind.KRAFT

    @cached_property
    def controller_elections(self) -> tuple[tuple[int, int], ...]:
        """In clusters with ZooKeeper: zxid and session of each creation of ``/controller``, ascending."""
        written = (each.event for each in self.events.of(events.ZnodeWritten))
        return tuple(
            sorted(
                (each.metadata_offset, each.session_id)
                for each in written
                if each.path == CONTROLLER_NODE and each.write is ZnodeWrite.CREATED
            )
        )

    @cached_property
    def controllers(self) -> ControllerTerms:
        """In clusters with ZooKeeper: the terms of controllers, and the writes of each."""
        return ControllerTerms(self.events.of(events.ZnodeWritten))

    @cached_property
    def isr_change_notifications(self) -> tuple[events.ZnodeWritten, ...]:
        """In clusters with ZooKeeper: each notification of an ISR change that was made or deleted, in order."""
        written = (each.event for each in self.events.of(events.ZnodeWritten))
        notified = (each for each in written if each.path.startswith(_ISR_CHANGE_NOTIFICATIONS))
        return tuple(sorted(notified, key=lambda each: each.metadata_offset))

    @cached_property
    def committed_offsets(self) -> frozenset[int]:
        """Offsets of the metadata records that the controller recorded."""
        committed = (each.event for kind in COMMITTED for each in self.events.of(kind))
        return frozenset(getattr(event, "metadata_offset") for event in committed)  # noqa: B009 - of COMMITTED, by its definition

    @cached_property
    def deleted_topics(self) -> Mapping[str, int]:
        """Metadata offset at which each topic id was deleted."""
        return {
            deleted.event.topic_id: deleted.event.metadata_offset for deleted in self.events.of(events.TopicDeleted)
        }

    @cached_property
    def deletions_begun(self) -> Mapping[str, int]:
        """In clusters with ZooKeeper: the zxid of the first request to delete each topic id.

        Brokers delete a topic's logs from then on, and its nodes are deleted when all of them have.
        """
        created = sorted(
            (each.event for each in self.events.of(events.TopicCreated)), key=lambda each: each.metadata_offset
        )
        written = (each.event for each in self.events.of(events.ZnodeWritten))
        begun: dict[str, int] = {}
        for each in sorted(written, key=lambda each: each.metadata_offset):
            if each.write is not ZnodeWrite.CREATED or not each.path.startswith(_DELETE_TOPICS):
                continue
            topic, at = each.path.removeprefix(_DELETE_TOPICS), each.metadata_offset
            ids = [one.topic_id for one in created if one.topic == topic and one.metadata_offset < at]
            for topic_id in ids[-1:]:
                begun.setdefault(self.late_topic_ids.get(topic_id, topic_id), at)
        return begun

    @cached_property
    def names_used_again(self) -> tuple[str, ...]:
        """Names under which topics without ids were created more than once."""
        created = Counter((each.event.topic, each.event.topic_id) for each in self.events.of(events.TopicCreated))
        return tuple(sorted(topic for (topic, _), count in created.items() if count > 1))

    @cached_property
    def late_topic_ids(self) -> LateTopicIds:
        """In clusters with ZooKeeper: the topic ids that brokers may not have known, or have known late."""
        if self.kind is ClusterKind.KRAFT:
            return {}
        created = (each.event for each in self.events.of(events.TopicCreated))
        return find_late_topic_ids(created, (each.event for each in self.events.of(events.TopicDeleted)))

    @cached_property
    def elr_levels(self) -> tuple[events.FeatureChanged, ...]:
        """Changes of the feature of eligible leader replicas, in order."""
        return self._levels(ELR_FEATURE)

    @cached_property
    def _metadata_versions(self) -> tuple[events.FeatureChanged, ...]:
        return self._levels(METADATA_VERSION)

    def _levels(self, name: str) -> tuple[events.FeatureChanged, ...]:
        changes = (change.event for change in self.events.of(events.FeatureChanged))
        return tuple(sorted((c for c in changes if c.name == name), key=lambda c: c.metadata_offset))

    def has_recovery_state(self, metadata_offset: int) -> bool:
        """Returns whether the finalized ``metadata.version`` knows partitions that are RECOVERING."""
        before = [change for change in self._metadata_versions if change.metadata_offset < metadata_offset]
        return not before or before[-1].feature_level >= _LEADER_RECOVERY

    def has_elr(self, metadata_offset: int) -> bool:
        """Returns whether the ELR feature was on at a metadata offset: it can be downgraded during a run."""
        before = [change for change in self.elr_levels if change.metadata_offset <= metadata_offset]
        return not before or before[-1].feature_level != 0 or before[-1].metadata_offset == metadata_offset

    def is_active(self, broker: int, metadata_offset: float) -> bool:
        """Returns whether a broker was registered, unfenced and not leaving when a record was committed."""
        return any(since < metadata_offset < until for since, until in self._active.get(broker, ()))

    @cached_property
    def _active(self) -> Mapping[int, list[tuple[int, float]]]:
        # A broker that was leaving stays inactive until it registers again, even if it is unfenced meanwhile.
        leaving: dict[tuple[int, int], int] = {}
        steps: dict[int, list[tuple[int, int | None]]] = {}
        for shutdown in self.events.of(events.ControlledShutdownStarted):
            key = (shutdown.event.broker_id, shutdown.event.broker_epoch)
            leaving[key] = min(leaving.get(key, shutdown.event.metadata_offset), shutdown.event.metadata_offset)
        others = [
            *((each.event.broker_id, each.event.metadata_offset) for each in self.events.of(events.BrokerRegistered)),
            *((each.event.broker_id, each.event.metadata_offset) for each in self.events.of(events.BrokerFenced)),
            *(
                (each.event.broker_id, each.event.metadata_offset)
                for each in self.events.of(events.ControlledShutdownStarted)
            ),
        ]
        for other, metadata_offset in others:
            steps.setdefault(other, []).append((metadata_offset, None))
        for unfenced in self.events.of(events.BrokerUnfenced):
            event = unfenced.event
            steps.setdefault(event.broker_id, []).append((event.metadata_offset, event.broker_epoch))
        active: dict[int, list[tuple[int, float]]] = {}
        for broker, found in steps.items():
            ordered = sorted(found, key=lambda step: step[0])
            ends = [float(offset) for offset, _ in ordered[1:]] + [float("inf")]
            for (since, broker_epoch), until in zip(ordered, ends, strict=True):
                if broker_epoch is not None and since < leaving.get((broker, broker_epoch), float("inf")):
                    active.setdefault(broker, []).append((since, until))
        return active

    @cached_property
    def last_applied(self) -> Mapping[int, AppliedMetadata]:
        """The metadata that each node's last process applied in the end."""
        return {
            applied.node: AppliedMetadata(incarnation=applied.incarnation, end_offset=applied.event.end_offset)
            for applied in self.events.of(events.MetadataApplied)
        }

    def known_when_sent(self, collected: CollectedEvent[events.Event]) -> int:
        """The end (exclusive) of the metadata that a process had applied at an event; at least its predecessor's."""
        before = (
            at
            for (node, incarnation), at in self._ended_at.items()
            if node == collected.node and incarnation < collected.incarnation
        )
        return max(
            max(before, default=0), self.applied_before(collected.node, collected.incarnation, collected.sequence) or 0
        )

    @cached_property
    def _ended_at(self) -> Mapping[_Process, int]:
        """The metadata (exclusive) that the harness knew at the end of each process; it never falls from end to end."""
        ended: dict[_Process, int] = {}
        known = 0
        for end in self.events.of(events.IncarnationEnded):
            known = max(known, end.event.metadata_offset or 0)
            ended[end.event.ended_node, end.event.ended_incarnation] = known
        return ended

    def applied_before(self, node: int, incarnation: int, sequence: int) -> int | None:
        """The metadata that a process had applied (exclusive) when it wrote its line of this number."""
        sequences, offsets = self._applied.get((node, incarnation), ((), ()))
        count = bisect_left(sequences, sequence)
        return offsets[count - 1] if count else None

    @cached_property
    def _applied(self) -> Mapping[_Process, tuple[tuple[int, ...], tuple[int, ...]]]:
        found: dict[_Process, list[CollectedEvent[events.MetadataApplied]]] = {}
        for applied in self.events.of(events.MetadataApplied):
            found.setdefault((applied.node, applied.incarnation), []).append(applied)
        return {
            process: (
                tuple(each.sequence for each in applied),
                tuple(accumulate((each.event.end_offset for each in applied), max)),
            )
            for process, applied in found.items()
        }
