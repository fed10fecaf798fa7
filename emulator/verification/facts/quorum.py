"""Facts about a quorum of controllers, from their events and their logs on disk."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, NodeRole
from laststand.emulator.verification.tables.events import EventTable, place_of
from laststand.emulator.verification.tables.timeline import CollectedEvent
from laststand.emulator.verification.tables.vocabulary import COMMITTED

NEW_DISK: Final = "replace_disk"
"""The fault after which a node has an empty disk."""

COMPARED: Final = frozenset(
    kind for kind in COMMITTED if kind is events.PartitionChanged or not issubclass(kind, events.PartitionEvent)
)
"""Events of metadata records that controllers also store in their logs."""


class _VoterOrder(msgspec.Struct):
    voter: tuple[int, str | None]


_VOTERS: Final = "KRaftVoters"
_VOTER: Final = msgspec.json.Decoder(_VoterOrder)
_NO_CAUSE: Final = CauseId("")
_FIRST_PLACE: Final = (-1, -1, -1)

RecordKey = tuple[int, str, str, int]
"""Metadata offset and type of an event; topic id and partition, where it has them."""


class LoggedBatch(NamedTuple):
    """A batch of a metadata log on disk."""

    base_offset: int
    end_offset: int
    leader_epoch: int
    crc: int


class MetadataLog(NamedTuple):
    """The metadata log of a controller on disk.

    Attributes:
        batches: in order.
        events: of its records.
        end_offset: of the log.
        problem: why reading ended early, if it did.
        voters: nodes of each set of voters in it, by offset.
    """

    batches: tuple[LoggedBatch, ...]
    events: tuple[events.Event, ...]
    end_offset: int
    problem: str | None
    voters: Mapping[int, frozenset[int]] = MappingProxyType({})


class Forgotten(NamedTuple):
    """Metadata that a leader of the quorum lacked although it was committed before.

    Attributes:
        elected: the leader's election.
        begin: first missing offset.
        end: end of the committed metadata, exclusive.
        committed_in: epoch in which that was committed.
    """

    elected: CollectedEvent[events.QuorumLeaderElected]
    begin: int
    end: int
    committed_in: int


class Quorum:
    """The quorum of a run; a single controller records no such events.

    Args:
        table: the events of the cluster.
        logs: of controllers on disk, by node.
    """

    def __init__(self, table: EventTable, logs: Mapping[int, MetadataLog]) -> None:
        self._table = table
        self.logs = logs

    @cached_property
    def elections(self) -> tuple[CollectedEvent[events.QuorumLeaderElected], ...]:
        """Elections by epoch."""
        return tuple(sorted(self._table.of(events.QuorumLeaderElected), key=lambda each: each.event.quorum_epoch))

    @cached_property
    def controllers(self) -> frozenset[int]:
        """All controllers that ever ran."""
        started = self._table.of(events.NodeStarted)
        return frozenset(each.node for each in started if each.event.role is NodeRole.CONTROLLER)

    @property
    def lost_a_majority(self) -> bool:
        """True if so many controllers' disks were lost at the same time that committed records may be lost.

        A controller with a replaced disk counts as lost until the harness asks for it to be added as a voter, which it
        does only once the controller's log has all committed records. With static voters it counts as lost to the end.
        Controllers that are no voters do not count from the commit of that set of voters on; an order to remove a voter
        is not enough, because it may be refused or lost.
        """
        by_harness: list[CollectedEvent[events.FaultInjected | events.OrderGiven]] = [
            *self._table.of(events.FaultInjected),
            *self._table.of(events.OrderGiven),
        ]
        lost: set[int] = set()
        standby = {node for each in self._table.of(events.NodeStarted) for node in each.event.standby_controllers}
        voters, later = self.controllers - standby, deque(self._voter_sets)
        for each in sorted(by_harness, key=place_of):
            match each.event:
                case events.FaultInjected(fault=fault, nodes=nodes, metadata_offset=known_end) if fault == NEW_DISK:
                    while later and known_end is not None and later[0][0] < known_end:
                        _, voters = later.popleft()
                        if _is_majority(lost, voters):
                            return True
                    lost.update(self.controllers.intersection(nodes))
                    unsure = (others for _, others in later) if known_end is None else ()
                    if any(_is_majority(lost, possible) for possible in (voters, *unsure)):
                        return True
                case events.OrderGiven(api="AddRaftVoter", order=order):
                    lost.discard(_voter_of(order))
                case _:
                    pass
        return any(_is_majority(lost, others) for _, others in later)

    @property
    def _voter_sets(self) -> list[tuple[int, frozenset[int]]]:
        """The committed sets of voters, by the offsets of their records.

        A log may have an uncommitted set at the same offset; the last leader's log, if it is there, decides.
        """
        of_quorum = (each.event for each in self._table.of(events.OtherRecordCommitted))
        committed = {event.metadata_offset for event in of_quorum if event.record == _VOTERS}
        sets = {offset: voters for log in self.logs.values() for offset, voters in log.voters.items()}
        sets.update({} if self.last_leaders_log is None else self.last_leaders_log.voters)
        return sorted((offset, voters) for offset, voters in sets.items() if offset in committed)

    @cached_property
    def forgotten(self) -> tuple[Forgotten, ...]:
        """Records that leaders lacked at their elections, by epoch."""
        return tuple(self._forgotten())

    def _forgotten(self) -> Iterator[Forgotten]:
        commits = self.commits_of_leaders()
        for elected in self.elections:
            before = [
                (commit.high_watermark, commit.quorum_epoch)
                for commit in commits
                if commit.quorum_epoch < elected.event.quorum_epoch
            ]
            end, committed_in = max(before, default=(0, 0))
            if end > elected.event.log_end_offset:
                yield Forgotten(elected, elected.event.log_end_offset, end, committed_in)

    @cached_property
    def last_leaders_log(self) -> MetadataLog | None:
        """The log of the last elected leader; ``None`` if its disk was replaced later, or it left no log."""
        if not self.elections:
            return None
        last = self.elections[-1]
        return None if self._is_replaced_since(last.node, last.incarnation) else self.logs.get(last.node)

    def is_forgotten(self, metadata_offset: int) -> bool:
        """Returns whether a leader lacked the committed record at an offset: the offset may have two records."""
        return any(each.begin <= metadata_offset < each.end for each in self.forgotten)

    def unexplained(self, contradictions: Iterable[tuple[int, str]]) -> tuple[str, ...]:
        """Returns the sentences about metadata offsets whose records no leader lacked."""
        return tuple(sentence for offset, sentence in contradictions if not self.is_forgotten(offset))

    def known_end(self, node: int) -> int:
        """Returns the end (exclusive) of the log that a controller's last process knew to be committed.

        Fetched and unsynced records are gone after a power loss, and all records after a replaced disk.
        """
        heard = [each for each in self._table.of(events.MetadataCommittedUpTo) if each.node == node]
        last = max((each.incarnation for each in heard), default=0)
        started = max((each.incarnation for each in self._table.of(events.NodeStarted) if each.node == node), default=0)
        end = max((each.event.high_watermark for each in heard if each.incarnation == last == started), default=0)
        if (node, started) in self._without_power or self._is_replaced_since(node, started):
            log = self.logs.get(node)
            return 0 if log is None else min(end, log.end_offset)
        return end

    @cached_property
    def _without_power(self) -> frozenset[tuple[int, int]]:
        """Processes that lost power."""
        ended = (each.event for each in self._table.of(events.IncarnationEnded))
        return frozenset(
            (each.ended_node, each.ended_incarnation) for each in ended if each.end is events.IncarnationEnd.POWER_LOST
        )

    def _is_replaced_since(self, node: int, incarnation: int) -> bool:
        """Returns whether a node's disk was replaced after a process of it was started."""
        process = (node, incarnation)
        started = [
            place_of(each)
            for each in self._table.of(events.IncarnationStarted)
            if (each.event.started_node, each.event.started_incarnation) == process
        ]
        return any(
            place_of(each) > max(started, default=_FIRST_PLACE)
            for each in self._table.of(events.FaultInjected)
            if each.event.fault == NEW_DISK and node in each.event.nodes
        )

    def commits_of_leaders(self) -> list[events.MetadataCommittedUpTo]:
        """Returns the high watermarks of leaders, from their reports; those of Kafka's leaders were observed."""
        return [each.event for each in self._table.of(events.MetadataCommittedUpTo) if each.event.is_leader]

    def committed_records(self) -> Iterator[CollectedEvent[events.Event]]:
        """Yields the events by which controllers reported committed records."""
        for kind in sorted(COMPARED, key=lambda kind: kind.__name__):
            yield from self._table.of(kind)


def _is_majority(lost: AbstractSet[int], voters: AbstractSet[int]) -> bool:
    return 2 * len(lost & voters) > len(voters)


def _voter_of(order: str) -> int:
    """Returns the node that an AddRaftVoter order adds."""
    node_id, _ = _VOTER.decode(order).voter
    return node_id


def record_key(event: events.Event) -> RecordKey:
    """Returns the key of the record that an event of ``COMMITTED`` reports."""
    offset = getattr(event, "metadata_offset")  # noqa: B009 - of COMMITTED, by its definition
    return offset, type(event).__name__, getattr(event, "topic_id", None) or "", getattr(event, "partition", 0)


def without_cause(event: events.Event) -> events.Event:
    """Returns an event of the quorum's own records without its cause, which the log does not store."""
    if isinstance(event, events.OtherRecordCommitted):
        return msgspec.structs.replace(event, cause_id=_NO_CAUSE)
    return event
