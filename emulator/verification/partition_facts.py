"""What a run's evidence says about one partition, and what follows from it for several checks.

A partition is a topic's name and a number, as clients know it. A topic that is deleted and created again has another
topic id: facts of the two are told apart by it.

A batch is identified by topic id, base offset and CRC. Nothing here orders events of different nodes by time: the
controller's records are ordered by metadata offset, leaders by epoch, one node's events by its sequence.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from emulator.core.events import (
    BatchAppended,
    BecameLeader,
    ConfigChanged,
    Election,
    FollowerHighWatermarkUpdated,
    HighWatermarkAdvanced,
    LogOpened,
    LogStartOffsetRaised,
    LogTruncated,
    PartitionChanged,
    PartitionEvent,
    ProduceAnswered,
)
from emulator.core.history import FinalReadOperation, OperationType
from emulator.core.types import ConfigResource
from emulator.verification.client_history import Poll, ReceivedBatch, SentBatch
from emulator.verification.cluster_facts import ClusterFacts
from emulator.verification.event_table import EventTable
from emulator.verification.log_reader import FinalBatch, FinalLog
from emulator.verification.losses import LossClass, classify_settled, classify_unsettled
from emulator.verification.timeline import CollectedEvent

ACKS_ALL: Final = -1
NO_ERROR: Final = "NONE"
UNCLEAN: Final = (Election.UNCLEAN, Election.LAST_KNOWN_LEADER)
_MIN_ISR: Final = "min.insync.replicas"

_Copy = tuple[str | None, int, int | None, int]
"""Topic id, base offset, CRC and last offset of a batch."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A committed change of a partition.

    Attributes:
        new: the state after it.
        old: the state before it; ``None`` where the partition was created.
        has_elr: whether the cluster had eligible leader replicas then.
        has_recovery_state: whether the metadata version knew partitions that are RECOVERING.
    """

    new: PartitionChanged
    old: PartitionChanged | None
    has_elr: bool
    has_recovery_state: bool

    @property
    def is_unclean(self) -> bool:
        """Whether it elected a leader that may lack records."""
        return self.new.election in UNCLEAN


class SettledLeader(msgspec.Struct, frozen=True, kw_only=True):
    """The leader whose log decides what a partition holds at the end."""

    leader: int
    leader_epoch: int


class LeaderTerm(NamedTuple):
    """An election whose winner took over as the process that was elected, and where its log ended then."""

    leader_epoch: int
    node: int
    log_end_offset: int


class AckedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that a producer was told is in the log.

    Attributes:
        topic_id: ``None`` where nothing names it.
        node: who acknowledged it.
        leader_epoch: in which it was appended, by the log of who acknowledged it.
        acked_epoch: in which it was acknowledged; later than the other where the producer had tried again.
    """

    topic_id: str | None
    base_offset: int
    last_offset: int
    crc: int | None
    record_count: int
    acks: int
    operation_id: str
    node: int | None
    leader_epoch: int | None
    acked_epoch: int | None


class LostBatch(msgspec.Struct, frozen=True, kw_only=True):
    """An acknowledged batch (any acks) that is not where it must be.

    Attributes:
        holders: nodes whose final logs have it.
        lacking: the first leader elected without it.
        settled: the leader whose log decides, if one does.
    """

    batch: AckedBatch
    loss_class: LossClass
    holders: tuple[int, ...]
    lacking: LeaderTerm | None
    settled: SettledLeader | None


class ConsumedBatch(NamedTuple):
    """A batch that a consumer received, and the epoch of the leader that served it, if known."""

    topic_id: str | None
    process: str
    served_epoch: int | None
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    producer: str
    first_record_id: int
    record_count: int


class PartitionFacts:
    """The facts of one partition of one run.

    Attributes:
        cluster: of the same run.
        events: about the partition.
        sent, received, polls, final_reads: the clients' history, in its order.
        final_batches, final_logs: what its replicas' final logs hold.
    """

    def __init__(self, cluster: ClusterFacts, topic: str, partition: int) -> None:
        self.cluster = cluster
        self.topic = topic
        self.partition = partition
        self.events = EventTable()
        self.sent: list[SentBatch] = []
        self.received: list[ReceivedBatch] = []
        self.polls: list[Poll] = []
        self.final_reads: list[FinalReadOperation] = []
        self.final_batches: list[FinalBatch] = []
        self.final_logs: list[FinalLog] = []

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Committed changes in the controller's order."""
        before: dict[str, PartitionChanged] = {}
        changes = []
        for collected in sorted(self.events.of(PartitionChanged), key=lambda each: each.event.metadata_offset):
            new = collected.event
            old = before.get(new.topic_id)
            changes.append(
                Change(
                    new=new,
                    old=old,
                    has_elr=self.cluster.has_elr(new.metadata_offset),
                    has_recovery_state=self.cluster.has_recovery_state(new.metadata_offset),
                )
            )
            before[new.topic_id] = new
        return tuple(changes)

    @cached_property
    def states(self) -> Mapping[str, PartitionChanged]:
        """The controller's last word, by topic id."""
        return {change.new.topic_id: change.new for change in self.changes}

    @cached_property
    def settled(self) -> Mapping[str, SettledLeader]:
        """The settled leader by topic id: the last elected one that acted on it.

        It settles the partition only if its process lived to an orderly end, and, where an election came after it
        (brokers that stop one by one), if the final consumer could read.
        """
        acted: dict[tuple[str, int, int], int] = {}
        for took_over in self.events.of(BecameLeader):
            acted[took_over.event.topic_id, took_over.event.leader_epoch, took_over.node] = took_over.incarnation
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

    @cached_property
    def settled_batches(self) -> list[FinalBatch]:
        """What the settled leaders' logs hold, in the order of each log."""
        leaders = {(topic_id, settled.leader) for topic_id, settled in self.settled.items()}
        return [batch for batch in self.final_batches if (batch.topic_id, batch.node) in leaders]

    @cached_property
    def terms(self) -> Mapping[str, tuple[LeaderTerm, ...]]:
        """By topic id, each broker that was elected, ordered by epoch.

        A leader is elected as the process that is registered then. One that starts later and takes the role over before
        it is registered (eras without that rule) was never elected.
        """
        elected: dict[tuple[str, int], int] = {}
        for change in self.changes:
            elected.setdefault((change.new.topic_id, change.new.leader_epoch), change.new.metadata_offset)
        terms: dict[str, list[LeaderTerm]] = {}
        for took_over in self.events.of(BecameLeader):
            event = took_over.event
            registered = self.cluster.registered_at.get((took_over.node, took_over.incarnation))
            at = elected.get((event.topic_id, event.leader_epoch))
            if registered is not None and (at is None or registered < at):
                terms.setdefault(event.topic_id, []).append(
                    LeaderTerm(event.leader_epoch, took_over.node, event.epoch_start_offset)
                )
        return {topic_id: tuple(sorted(found)) for topic_id, found in terms.items()}

    def first_lacking(self, topic_id: str | None, *, after_epoch: int, last_offset: int) -> LeaderTerm | None:
        """The first leader after an epoch whose log did not reach beyond an offset."""
        return next(
            (
                term
                for term in self.terms.get(topic_id or "", ())
                if term.leader_epoch > after_epoch and term.log_end_offset <= last_offset
            ),
            None,
        )

    @cached_property
    def answers(self) -> Mapping[tuple[int, int], list[CollectedEvent[ProduceAnswered]]]:
        """Answers without error by node and base offset."""
        answers: dict[tuple[int, int], list[CollectedEvent[ProduceAnswered]]] = {}
        for answered in self.events.of(ProduceAnswered):
            base_offset = answered.event.base_offset
            if answered.event.error == NO_ERROR and base_offset is not None:
                answers.setdefault((answered.node, base_offset), []).append(answered)
        return answers

    @cached_property
    def acked(self) -> tuple[AckedBatch, ...]:
        """Every batch that a producer was told is in the log, but for those of deleted topics."""
        appended: dict[tuple[str | None, int | None, int, int | None], int] = {}
        acknowledging = {sent.node for sent in self.sent}
        for each in self.events.of(BatchAppended):
            event = each.event
            if each.node not in acknowledging:
                continue
            key = (event.topic_id, each.node, event.base_offset, event.crc)
            if appended.get(key, -1) < event.leader_epoch:
                appended[key] = event.leader_epoch
        return tuple(
            acked
            for acked in (
                self._acked(sent, sent.base_offset, appended)
                for sent in self.sent
                if sent.type is OperationType.OK and sent.base_offset is not None
            )
            if acked.topic_id not in self.cluster.deleted_topics
        )

    def _acked(
        self, sent: SentBatch, base_offset: int, appended: Mapping[tuple[str | None, int | None, int, int | None], int]
    ) -> AckedBatch:
        # Whoever acknowledged a batch has it in its own log: that copy tells the epoch in which it was appended. It may
        # have been acknowledged in a later one, when the producer tried again; leaders elected in between need not have
        # it. The leader's own answer names that epoch; what the client believed counts only where there is no such
        # event. So with the topic id: a client may still believe in a topic that was deleted while it is answered for
        # its successor.
        answers = [] if sent.node is None else self.answers.get((sent.node, base_offset), [])
        own = [answer.event for answer in answers if answer.event.cause_id == sent.operation_id]
        topic_id = max((answer.topic_id for answer in own), default=sent.topic_id or max(self.states, default=None))
        epochs = [answer.leader_epoch for answer in own if answer.topic_id == topic_id]
        told = max((epoch for epoch in epochs if epoch is not None), default=sent.leader_epoch)
        appended_epoch = appended.get((topic_id, sent.node, base_offset, sent.crc))
        return AckedBatch(
            topic_id=topic_id,
            base_offset=base_offset,
            last_offset=base_offset + sent.record_count - 1,
            crc=sent.crc,
            record_count=sent.record_count,
            acks=sent.acks,
            operation_id=sent.operation_id,
            node=sent.node,
            leader_epoch=appended_epoch,
            acked_epoch=max((epoch for epoch in (told, appended_epoch) if epoch is not None), default=None),
        )

    @cached_property
    def lost(self) -> tuple[LostBatch, ...]:
        """Acknowledged batches that are not where they must be.

        Where a replica's directory is missing and there is no settled leader, nothing is called lost: that evidence is
        incomplete, not bad.
        """
        return tuple(self._lost())

    def _lost(self) -> Iterator[LostBatch]:
        suspects = [acked for acked in self.acked if not self._is_kept(acked)]
        copies: dict[_Copy, set[int]] = {(a.topic_id, a.base_offset, a.crc, a.last_offset): set() for a in suspects}
        for batch in self.final_batches if suspects else ():
            held_by = copies.get((batch.topic_id, batch.base_offset, batch.crc, batch.last_offset))
            if held_by is not None:
                held_by.add(batch.node)
        for acked in suspects:
            state = self.states.get(acked.topic_id or "")
            if state is None or acked.last_offset < self.deleted_below.get(state.topic_id, 0):
                continue
            holders = copies[acked.topic_id, acked.base_offset, acked.crc, acked.last_offset]
            lacking = self._first_lacking(acked)
            settled = self.settled.get(state.topic_id)
            if settled is not None:
                loss_class = classify_settled(
                    state=state,
                    leader=settled.leader,
                    holders=holders,
                    was_lacking=lacking is not None,
                    is_missed=self._is_missed(acked),
                )
            elif self.missing_replicas(state):
                loss_class = None
            else:
                loss_class = classify_unsettled(state=state, holders=holders, was_lacking=lacking is not None)
            if loss_class is not None:
                yield LostBatch(
                    batch=acked,
                    loss_class=loss_class,
                    holders=tuple(sorted(holders)),
                    lacking=lacking,
                    settled=settled,
                )

    def _is_kept(self, acked: AckedBatch) -> bool:
        """Whether a batch is where it must be, so that nobody has to ask who else has it: so it is with almost all."""
        copy = (acked.topic_id, acked.base_offset, acked.crc, acked.last_offset)
        return copy in self._settled_copies and self._first_lacking(acked) is None and not self._is_missed(acked)

    def _first_lacking(self, acked: AckedBatch) -> LeaderTerm | None:
        if acked.acked_epoch is None:
            return None
        return self.first_lacking(acked.topic_id, after_epoch=acked.acked_epoch, last_offset=acked.last_offset)

    def _is_missed(self, acked: AckedBatch) -> bool:
        return self.is_all_read and (acked.base_offset, acked.crc) not in self._read_at_the_end

    @cached_property
    def _settled_copies(self) -> frozenset[_Copy]:
        return frozenset((b.topic_id, b.base_offset, b.crc, b.last_offset) for b in self.settled_batches)

    @cached_property
    def _read_at_the_end(self) -> frozenset[tuple[int, int]]:
        return frozenset((batch.base_offset, batch.crc) for batch in self.received if batch.phase == "final")

    def missing_replicas(self, state: PartitionChanged) -> tuple[int, ...]:
        """Replicas that left no directory."""
        return tuple(replica for replica in state.replicas if replica not in self.cluster.node_directories)

    @cached_property
    def is_all_read(self) -> bool:
        """Whether the final consumer read the partition to its end."""
        return any(read.type is OperationType.OK for read in self.final_reads)

    @cached_property
    def deleted_below(self) -> Mapping[str, int]:
        """By topic id, the log start up to which records were deleted on purpose."""
        starts: dict[str, int] = {}
        for raised in self.events.of(LogStartOffsetRaised):
            topic_id = raised.event.topic_id
            starts[topic_id] = max(starts.get(topic_id, 0), raised.event.new)
        return starts

    @cached_property
    def consumed(self) -> tuple[ConsumedBatch, ...]:
        """Every batch that a consumer received, once per consumer and epoch."""
        last_id = max(self.states, default=None)
        return tuple(
            dict.fromkeys(
                ConsumedBatch(
                    batch.topic_id or last_id,
                    batch.process,
                    batch.served_epoch,
                    batch.base_offset,
                    batch.last_offset,
                    batch.leader_epoch,
                    batch.crc,
                    batch.producer,
                    batch.first_record_id,
                    batch.record_count,
                )
                for batch in self.received
            )
        )

    @cached_property
    def last_high_watermarks(self) -> Mapping[tuple[str, int], int]:
        """By topic id and node, the high watermark by the replica's own last event about it."""
        last: dict[tuple[str, int], tuple[int, int, int]] = {}

        def note(each: CollectedEvent[PartitionEvent], high_watermark: int) -> None:
            key = (each.event.topic_id, each.node)
            told = (each.incarnation, each.sequence, high_watermark)
            if last.get(key, (-1, -1, -1)) < told:
                last[key] = told

        for advanced in self.events.of(HighWatermarkAdvanced):
            note(advanced, advanced.event.new)
        for updated in self.events.of(FollowerHighWatermarkUpdated):
            note(updated, updated.event.new)
        for opened in self.events.of(LogOpened):
            note(opened, opened.event.high_watermark)
        for truncated in self.events.of(LogTruncated):
            note(truncated, min(truncated.event.high_watermark, truncated.event.new_end_offset))
        return {key: high_watermark for key, (_, _, high_watermark) in last.items()}

    @cached_property
    def required_isr(self) -> Mapping[str, int]:
        """By topic id, how many members a committed ISR needs before the high watermark may move.

        The least of min(min ISR, replication factor) that was ever in force.
        """
        configured = [
            int(value)
            for value in (
                change.event.value
                for change in self.cluster.events.of(ConfigChanged)
                if change.event.resource is ConfigResource.TOPIC
                and change.event.resource_name == self.topic
                and change.event.name == _MIN_ISR
            )
            if value is not None and value.isdigit()
        ]
        required: dict[str, int] = {}
        for change in self.changes:
            new = change.new
            least = min(new.effective_min_isr, len(new.replicas), *configured)
            required[new.topic_id] = min(required.get(new.topic_id, least), least)
        return required
