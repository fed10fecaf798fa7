"""Evidence about one partition: its changes, its leaders, its replicas, and its deletions.

A partition is a topic's name and a number, as clients know it. A topic that is deleted and created again has another
topic id, which distinguishes the facts of both.

A batch is identified by topic id, base offset and CRC. Nothing here orders events of different nodes by time: the
controller's records are ordered by metadata offset, leaders by epoch, one node's events by its sequence.
"""

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.history import FinalReadOperation, OperationType
from laststand.emulator.core.types import ConfigResource
from laststand.emulator.verification.facts.batches import (
    LeaderTerm,
    SettledLeader,
    TermPlace,
)
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.deletions import may_expire, wanted_log_start
from laststand.emulator.verification.tables.client_history import Poll
from laststand.emulator.verification.tables.columns import NONE, Mask, Table
from laststand.emulator.verification.tables.events import EventRows, PartitionEventTable
from laststand.emulator.verification.tables.final_logs import FinalBatch, FinalLog, batches_read
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.late_topic_ids import id_by_name
from laststand.emulator.verification.tables.matching import groups_of
from laststand.emulator.verification.tables.rows import PartitionRows
from laststand.emulator.verification.tables.timeline import CollectedEvent, ProcessName

NO_ERROR: Final = "NONE"
UNCLEAN: Final = (events.Election.UNCLEAN, events.Election.LAST_KNOWN_LEADER)
_MIN_ISR: Final = "min.insync.replicas"
UNKNOWN_NODE: Final = -1
"""Stands for an unknown broker."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A committed change of a partition.

    Attributes:
        new: the state after it.
        old: the state before it; ``None`` if the partition was created.
        reported_by: the controller process that reported it; a controller before it may have written the record.
        has_elr: whether the cluster had eligible leader replicas at that time.
        has_recovery_state: whether the metadata version knew partitions that are RECOVERING.
    """

    new: events.PartitionChanged
    old: events.PartitionChanged | None
    reported_by: ProcessName
    has_elr: bool
    has_recovery_state: bool

    @property
    def is_unclean(self) -> bool:
        """True if the election was unclean, so that the new leader may lack records."""
        return self.new.election in UNCLEAN


class _Deletion(NamedTuple):
    """A rise of a leader's log start: the deleted offsets, its epoch, and the batches that it had appended below.

    An epoch that no event records is ``None``; batches may be missing, because a killed process may not have recorded
    its last ones.
    """

    since: int
    below: int
    leader_epoch: int | None
    incarnation: int
    held: EventRows[events.BatchAppended]

    def is_of(self, last_offset: int, crc: int | None) -> bool:
        """Returns whether a batch was deleted; it was not if the leader had another batch at that offset."""
        if not self.since <= last_offset < self.below:
            return False
        there = (self.held["base_offset"] <= last_offset) & (self.held["last_offset"] >= last_offset)
        own = there & (self.held["incarnation"] == self.incarnation)
        # A process's last append at an offset replaced what it had truncated there. Of an earlier process, a power loss
        # may have undone the truncation.
        latest = np.flatnonzero(own)[-1:] if own.any() else np.flatnonzero(there)
        itself = (self.held["last_offset"][latest] == last_offset) & (self.held["crc"][latest] == crc)
        return crc is None or bool(itself.any()) or not there.any()


class PartitionEvidence:
    """The evidence about one partition of one run.

    Attributes:
        cluster: facts of the same run's cluster.
        events: about the partition.
        sent, received, polls, final_reads: the clients' history, in its order.
        final_batches, final_logs: the content of its replicas' final logs.
        topic_numbers: numbers of topic ids in columns.
    """

    def __init__(self, cluster: ClusterFacts, topic: str, partition: int) -> None:
        self.cluster = cluster
        self.topic = topic
        self.partition = partition
        nothing = PartitionRows.none(topic, partition)
        self.events = PartitionEventTable(nothing.events)
        self.sent = nothing.sent
        self.received = nothing.received
        self.polls: list[Poll] = []
        self.final_reads: list[FinalReadOperation] = []
        self.final_batches: Table[FinalBatch] = Table(FinalBatch)
        self.final_logs: list[FinalLog] = []
        self.topic_numbers: dict[Hashable, int] = {}
        self._commits: dict[tuple[str, int], tuple[Ints, EventRows[events.HighWatermarkAdvanced]]] = {}

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def add_rows(self, rows: PartitionRows) -> None:
        """Adds the partition's events and history rows, after the facts of the cluster are complete."""
        rows = rows.knowing_ids(self.cluster.late_topic_ids)
        self.events.append_rows(rows.events)
        self.sent, self.received = rows.sent, rows.received

    def add_final_reads(self) -> None:
        """Adds the batches that the final consumer received as the final log of the broker that served it."""
        given = self.received.only(self.received.has("phase", "final"))
        for read in self.final_reads:
            if read.type is not OperationType.OK or read.start_offset is None or read.end_offset is None:
                continue
            own = given.only(given.has("topic_id", read.topic_id))
            log = FinalLog(
                node=int(own["node"][-1]) if len(own) else UNKNOWN_NODE,
                topic=self.topic,
                partition=self.partition,
                topic_id=read.topic_id,
                log_start_offset=read.start_offset,
                log_end_offset=read.end_offset,
                is_clean=True,
                problem=None,
            )
            self.final_logs.append(log)
            self.final_batches = self.final_batches.joined([batches_read(log, own)])

    def replace_late_ids(self) -> None:
        """Replaces placeholders by the topic ids that became known late, after the cluster's facts are complete."""
        ids = self.cluster.late_topic_ids
        if not ids:
            return
        self.events.replace_late_ids(ids)
        self.polls = [
            msgspec.structs.replace(each, topic_id=ids.get(each.topic_id or "", each.topic_id)) for each in self.polls
        ]

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Committed changes in the controller's order."""
        before: dict[str, events.PartitionChanged] = {}
        changes = []
        for collected in sorted(self.events.of(events.PartitionChanged), key=lambda each: each.event.metadata_offset):
            new = collected.event
            old = before.get(new.topic_id)
            if old is not None and self._is_deleted_between(old, new):
                old = None
            changes.append(
                Change(
                    new=new,
                    old=old,
                    reported_by=ProcessName(collected.node, collected.incarnation),
                    has_elr=self.cluster.has_elr(new.metadata_offset),
                    has_recovery_state=self.cluster.has_recovery_state(new.metadata_offset),
                )
            )
            before[new.topic_id] = new
        return tuple(changes)

    def _is_deleted_between(self, old: events.PartitionChanged, new: events.PartitionChanged) -> bool:
        """Returns whether the topic was deleted between two changes, so that they are of two topics without ids."""
        return any(
            deleted.event.topic_id == old.topic_id
            and old.metadata_offset < deleted.event.metadata_offset < new.metadata_offset
            for deleted in self.cluster.events.of(events.TopicDeleted)
        )

    @cached_property
    def states(self) -> Mapping[str, events.PartitionChanged]:
        """The last committed state, by topic id."""
        return {change.new.topic_id: change.new for change in self.changes}

    @cached_property
    def last_topic_id(self) -> str | None:
        """The id of the last topic of that name; ``None`` if no evidence names one."""
        if self.cluster.is_seen_by_clients_alone:
            return next((log.topic_id for log in reversed(self.final_logs)), None)
        return max(self.states, default=None)

    @cached_property
    def settled(self) -> Mapping[str, SettledLeader]:
        """The settled leader by topic id: the last elected one that acted on its election.

        It counts only if its process stopped in order. If another leader was elected after it (as brokers stop one by
        one), it counts only if the final consumer read the partition to its end. If the only evidence is from clients,
        the settled leader is the broker that served the final consumer.
        """
        if self.cluster.is_seen_by_clients_alone:
            return self._served_at_the_end()
        if self.cluster.is_seen_from_outside:
            acted = self._led_when_settled()
        else:
            acted = {
                (took_over.event.topic_id, took_over.event.leader_epoch, took_over.node): took_over.incarnation
                for took_over in self.events.of(events.BecameLeader)
            }
        last: dict[str, tuple[int, int, int]] = {}
        for change in self.changes:
            new = change.new
            if new.leader is None:
                continue
            incarnation = acted.get((new.topic_id, new.leader_epoch, new.leader))
            if incarnation is not None:
                last[new.topic_id] = max(
                    last.get(new.topic_id, (-1, -1, -1)), (new.leader_epoch, new.leader, incarnation)
                )
        return {
            topic_id: SettledLeader(leader=leader, leader_epoch=leader_epoch)
            for topic_id, (leader_epoch, leader, incarnation) in last.items()
            if self.cluster.last_incarnation.get(leader) == incarnation
            and leader in self.cluster.node_directories
            and (leader, incarnation) not in self.cluster.killed
            and (self.is_all_read or self.states[topic_id].leader_epoch == leader_epoch)
        }

    def _served_at_the_end(self) -> dict[str, SettledLeader]:
        if not self.cluster.events.of(events.ClusterSettled):
            return {}
        served = self.received.only(self.received.has("phase", "final"))
        found: dict[str, SettledLeader] = {}
        for log in self.final_logs:
            epochs = served["served_epoch"][served.has("topic_id", log.topic_id)]
            if log.topic_id is not None:
                found[log.topic_id] = SettledLeader(leader=log.node, leader_epoch=int(epochs.max(initial=0)))
        return found

    def _led_when_settled(self) -> dict[tuple[str, int, int], int]:
        """Returns the incarnation of each leader when the cluster settled, by topic id, epoch and leader.

        This is for leaders whose events are not recorded: they count as acting if all replicas were in sync.
        """
        led: dict[tuple[str, int, int], int] = {}
        for settled in self.cluster.events.of(events.ClusterSettled):
            before = [c.new for c in self.changes if c.new.metadata_offset < settled.event.metadata_offset]
            for state in {new.topic_id: new for new in before}.values():
                if state.leader is not None and set(state.isr) == set(state.replicas):
                    incarnation = self.cluster.last_incarnation[state.leader]
                    led[state.topic_id, state.leader_epoch, state.leader] = incarnation
        return led

    @cached_property
    def settled_batches(self) -> Table[FinalBatch]:
        """The batches in the settled leaders' logs, in the order of each log."""
        final = self.final_batches
        is_settled = np.zeros(len(final), np.bool_)
        for topic_id, settled in self.settled.items():
            is_settled |= final.has("topic_id", topic_id) & final.has("node", settled.leader)
        return final.only(is_settled)

    def topics(self, table: Table[Any]) -> Ints:
        """The topic ids of a table's rows, as numbers that are the same in every table of the partition."""
        return table.numbers("topic_id", self.topic_numbers)

    def topic_number(self, topic_id: str | None) -> int:
        """The number that ``topics`` has for a topic id."""
        return self.topic_numbers.setdefault(topic_id, len(self.topic_numbers))

    @cached_property
    def terms(self) -> Mapping[str, tuple[LeaderTerm, ...]]:
        """The processes that led, by topic id, ordered by epoch and incarnation.

        An election is for the process that is registered at that time. A process that is started later may still become
        leader by older metadata: before it is registered (in eras that allow this), or if it is back before the session
        of its predecessor ends. It then leads again in the same epoch, and must have what its predecessor promised. For
        Kafka's own brokers such terms are left out: they open their listeners only once they are unfenced.
        """
        elected: dict[tuple[str, int], int] = {}
        for change in self.changes:
            elected.setdefault((change.new.topic_id, change.new.leader_epoch), change.new.metadata_offset)
        terms: dict[str, list[LeaderTerm]] = {}
        for took_over in self.events.of(events.BecameLeader):
            event = took_over.event
            registered = self.cluster.registered_at.get((took_over.node, took_over.incarnation))
            at = elected.get((event.topic_id, event.leader_epoch))
            unelected_at = None
            if registered is None or (at is not None and registered > at):
                if self.cluster.is_seen_from_outside:
                    continue
                unelected_at = self.cluster.known_when_sent(took_over)
            term = LeaderTerm(
                event.leader_epoch, took_over.incarnation, took_over.node, event.epoch_start_offset, unelected_at
            )
            terms.setdefault(event.topic_id, []).append(term)
        return {topic_id: tuple(sorted(found, key=lambda term: term.place)) for topic_id, found in terms.items()}

    @cached_property
    def committed(self) -> Mapping[str, Mapping[TermPlace, int]]:
        """The highest high watermark of each leader's term, by topic id."""
        moves = self.events.rows(events.HighWatermarkAdvanced)
        committed: dict[str, dict[TermPlace, int]] = {}
        for places in groups_of(moves["topic_id"], moves["leader_epoch"], moves["incarnation"]):
            [first] = moves.rows(places[:1])
            terms = committed.setdefault(first.event.topic_id, {})
            terms[TermPlace(first.event.leader_epoch, first.incarnation)] = max(0, int(moves["new"][places].max()))
        return committed

    def committed_at(self, topic_id: str, offset: int, *, since_epoch: int) -> int:
        """The metadata (exclusive) applied by the first leader, of an epoch or later, when it committed an offset."""
        if (topic_id, since_epoch) not in self._commits:
            self._commits[topic_id, since_epoch] = self._commits_since(topic_id, since_epoch)
        reached, moves = self._commits[topic_id, since_epoch]
        place = int(np.searchsorted(reached, offset, "right"))
        for first in moves.rows(slice(place, place + 1)):
            return self.cluster.applied_before(first.node, first.incarnation, first.sequence) or 0
        return 0

    def _commits_since(self, topic_id: str, leader_epoch: int) -> tuple[Ints, EventRows[events.HighWatermarkAdvanced]]:
        """The leaders' moves of the high watermark from an epoch on, in order, and its maximum up to each move."""
        moves = self.events.rows(events.HighWatermarkAdvanced)
        moves = moves.only(moves.has("topic_id", topic_id) & (moves["leader_epoch"] >= leader_epoch))
        moves = moves.only(np.lexsort((moves["sequence"], moves["incarnation"], moves["leader_epoch"])))
        return np.maximum.accumulate(moves["new"]), moves

    def first_lacking(self, topic_id: str | None, *, after: TermPlace, last_offset: int) -> LeaderTerm | None:
        """The first leader after a term whose log did not reach beyond an offset."""
        return next(
            (
                term
                for term in self.terms.get(topic_id or "", ())
                if term.place > after and term.log_end_offset <= last_offset
            ),
            None,
        )

    def are_lacking(self, *, topics: Ints, after_epochs: Ints, after_incarnations: Ints, last_offsets: Ints) -> Mask:
        """Returns, for each row, whether there is a ``first_lacking``; never where the row's epoch is unknown."""
        found = np.zeros(len(topics), np.bool_)
        for topic_id, terms in self.terms.items():
            is_of_topic = (topics == self.topic_number(topic_id)) & (after_epochs != NONE)
            for term in terms:
                is_later = after_epochs < term.leader_epoch
                is_later |= (after_epochs == term.leader_epoch) & (after_incarnations < term.incarnation)
                found |= is_of_topic & is_later & (last_offsets >= term.log_end_offset)
        return found

    @cached_property
    def answered(self) -> EventRows[events.ProduceAnswered]:
        """Answers without error that name an offset."""
        answered = self.events.rows(events.ProduceAnswered)
        return answered.only(answered.has("error", NO_ERROR) & (answered["base_offset"] != NONE))

    def missing_replicas(self, state: events.PartitionChanged) -> tuple[int, ...]:
        """Replicas that left no directory."""
        return tuple(replica for replica in state.replicas if replica not in self.cluster.node_directories)

    @cached_property
    def is_all_read(self) -> bool:
        """The final consumer read the partition to its end."""
        return any(read.type is OperationType.OK for read in self.final_reads)

    @cached_property
    def has_unclear_id(self) -> bool:
        """True if some events name the topic without its id although several topics had that name."""
        named = [
            *self.events.of(events.LogOpened),
            *self.events.of(events.BecameLeader),
            *self.events.of(events.BecameFollower),
        ]
        ids = {*self.states, *(each.event.topic_id for each in named)}
        return id_by_name(self.topic) in ids and len(ids) > 1

    @property
    def is_known_what_was_read(self) -> bool:
        """True if records that the final reads lack are missing from the log: no read and no line is missing."""
        return self.is_all_read and self.cluster.is_history_whole

    @cached_property
    def read_up_to(self) -> int | None:
        """The offset at which the final read ended, if records beyond it need not be lost; ``None`` if they are.

        The read ends at the leader's high watermark. In a cluster that never settled, a new leader's high watermark may
        be below records that were acknowledged before its term (KIP-207).
        """
        if any(self.cluster.events.of(events.ClusterSettled)):
            return None
        return max((read.end_offset for read in self.final_reads if read.end_offset is not None), default=0)

    @cached_property
    def damaged_from(self) -> Mapping[int, int]:
        """The offset, by node, from which on a final log is unreadable because the harness damaged a batch there."""
        flipped = (flip.event for flip in self.events.of(events.BitFlipped))
        flips = {(flip.flipped_node, flip.base_offset, flip.damaged_crc) for flip in flipped}
        return {
            log.node: log.log_end_offset
            for log in self.final_logs
            if (log.node, log.log_end_offset, log.damaged_crc) in flips
        }

    @cached_property
    def deleted_below(self) -> Mapping[str, int]:
        """The offset, by topic id, below which records were deleted on purpose."""
        raised = self.events.of(events.LogStartOffsetRaised)
        wanted = wanted_log_start(self.cluster, str(self)) if raised else None
        starts: dict[str, int] = {}
        for each in raised:
            topic_id, new = each.event.topic_id, each.event.new
            starts[topic_id] = max(starts.get(topic_id, 0), new if wanted is None else min(new, wanted))
        return starts

    @cached_property
    def _deletions(self) -> Mapping[str, list[_Deletion]]:
        """The deletions of leaders, by topic id; those of followers, too, if retention may delete records."""
        role_events: list[CollectedEvent[events.BecameLeader | events.BecameFollower]] = [
            *self.events.of(events.BecameLeader),
            *self.events.of(events.BecameFollower),
        ]
        roles = sorted(role_events, key=lambda each: each.sequence, reverse=True)
        deletions: dict[str, list[_Deletion]] = {}
        appended = self.events.rows(events.BatchAppended)
        for raised in self.events.of(events.LogStartOffsetRaised):
            topic_id, process = raised.event.topic_id, (raised.node, raised.incarnation)
            own = (role for role in roles if (role.node, role.incarnation) == process)
            role = next((each.event for each in own if each.sequence < raised.sequence), None)
            if role is None or isinstance(role, events.BecameLeader) or may_expire(self.cluster):
                below = min(raised.event.new, self.deleted_below[topic_id])
                own_log = appended.has("node", raised.node) & appended.has("topic_id", topic_id)
                own_log &= (appended["incarnation"] < raised.incarnation) | (
                    (appended["incarnation"] == raised.incarnation) & (appended["sequence"] < raised.sequence)
                )
                held = appended.only(own_log & (appended["base_offset"] < below))
                epoch = None if role is None else role.leader_epoch
                deletions.setdefault(topic_id, []).append(
                    _Deletion(raised.event.old, below, epoch, raised.incarnation, held)
                )
        return deletions

    def is_deleted(self, topic_id: str, last_offset: int, *, crc: int | None, leader_epoch: int | None) -> bool:
        """Returns whether a batch was deleted by a replica that had it, before a later leader had it again.

        If the only evidence is from clients, returns whether the batch lies below the log start: it may have been
        deleted.

        Args:
            topic_id: of the batch's topic.
            last_offset: of the batch.
            crc: of the batch; ``None`` if it is unknown.
            leader_epoch: in which it was appended; ``None`` if it is unknown.
        """
        if self.cluster.is_seen_by_clients_alone:
            return any(log.topic_id == topic_id and last_offset < log.log_start_offset for log in self.final_logs)
        return any(
            deletion.is_of(last_offset, crc)
            and (deletion.leader_epoch is None or leader_epoch is None or leader_epoch <= deletion.leader_epoch)
            for deletion in self._deletions.get(topic_id, ())
        )

    @cached_property
    def last_high_watermarks(self) -> Mapping[tuple[str, int], int]:
        """The high watermark of each replica's last event about it, by topic id and node."""
        last: dict[tuple[str, int], tuple[int, int, int]] = {}

        def note(each: CollectedEvent[events.PartitionEvent], high_watermark: int) -> None:
            key = (each.event.topic_id, each.node)
            marked = (each.incarnation, each.sequence, high_watermark)
            if last.get(key, (-1, -1, -1)) < marked:
                last[key] = marked

        def note_last(
            moves: EventRows[events.HighWatermarkAdvanced] | EventRows[events.FollowerHighWatermarkUpdated],
        ) -> None:
            last_places = [places[-1] for places in groups_of(moves["topic_id"], moves["node"])]
            for each in moves.rows(np.array(last_places, np.int64)):
                note(each, each.event.new)

        note_last(self.events.rows(events.HighWatermarkAdvanced))
        note_last(self.events.rows(events.FollowerHighWatermarkUpdated))
        for opened in self.events.of(events.LogOpened):
            note(opened, opened.event.high_watermark)
        for truncated in self.events.of(events.LogTruncated):
            note(truncated, min(truncated.event.high_watermark, truncated.event.new_end_offset))
        return {key: high_watermark for key, (_, _, high_watermark) in last.items()}

    @cached_property
    def required_isr(self) -> Mapping[str, int]:
        """The number of members, by topic id, that a committed ISR needs before the high watermark may move.

        It is the least number that was in force at any time of the run.
        """
        configured = [
            int(value)
            for value in (
                change.event.value
                for change in self.cluster.events.of(events.ConfigChanged)
                if change.event.resource is ConfigResource.TOPIC
                and change.event.resource_name == self.topic
                and change.event.name == _MIN_ISR
            )
            if value is not None and value.isdigit()
        ]
        required: dict[str, int] = {}
        for change in self.changes:
            new = change.new
            least = min((self.cluster.configuration.members_required(new), *configured))
            required[new.topic_id] = min(required.get(new.topic_id, least), least)
        return required
