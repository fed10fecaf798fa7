"""Checks of coordinators by their own events, in order: R1, R2, R4, R9, R10."""

from collections import Counter
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerId,
    LeaderEpoch,
    NodeId,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicPartition,
)
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog

_NEXT: Final = {
    "Empty": {"Empty", "Ongoing", "PrepareAbort", "Dead"},
    "Ongoing": {"Ongoing", "PrepareCommit", "PrepareAbort"},
    "PrepareCommit": {"CompleteCommit"},
    "PrepareAbort": {"CompleteAbort"},
    "CompleteCommit": {"Empty", "Ongoing", "PrepareAbort", "Dead"},
    "CompleteAbort": {"Empty", "Ongoing", "PrepareAbort", "Dead"},
    "Dead": set[str](),
}
"""The states that follow each one (Kafka's ``TransactionState.validPreviousStates``), of those that are written."""


class _Place(NamedTuple):
    """A record of a decision in a log."""

    partition: TopicPartition
    offset: Offset
    transactional_id: str
    producer: tuple[ProducerId, ProducerEpoch]


class _Term:
    """The steps of a coordinator in one epoch, by transactional id."""

    def __init__(self) -> None:
        self.under_way: dict[str, events.TransitionBegun] = {}
        self.states: dict[str, str] = {}
        self.sent: dict[str, events.MarkersSent] = {}
        self.completed: dict[str, Offset] = {}


class CoordinatorChecks:
    """Checks of one run's coordinators."""

    def __init__(self, alarm_log: AlarmLog) -> None:
        self._alarm_log = alarm_log
        self._cluster: SimulatedCluster
        self._terms: dict[tuple[NodeId, int, TopicPartition, LeaderEpoch], _Term] = {}
        self._decided: dict[_Place, tuple[str, ...]] = {}
        self._appended: Counter[tuple[str, ProducerId, ProducerEpoch]] = Counter()
        self._needed: Counter[tuple[str, ProducerId, ProducerEpoch]] = Counter()
        self._deleted_topics: set[str] = set()

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster

    def _term(self, node_id: NodeId, name: TopicPartition, leader_epoch: LeaderEpoch) -> _Term:
        node = self._cluster.nodes[BrokerId(node_id)]
        return self._terms.setdefault((node_id, node.incarnation, name, leader_epoch), _Term())

    def _is_committed(self, node_id: NodeId, name: TopicPartition, offset: Offset) -> bool:
        broker = self._cluster.nodes[BrokerId(node_id)].broker
        partition = None if broker is None else broker.partition(name)
        return partition is None or offset < partition.log.high_watermark

    def deleted(self, topic: str) -> None:
        """Notes that a topic was deleted: its partitions get no more markers."""
        self._deleted_topics.add(topic)

    def marker_appended(self, name: TopicPartition, event: events.BatchAppended) -> None:
        """A leader appended the end of a transaction."""
        if event.role is events.AppendRole.LEADER and event.producer_id is not None:
            self._appended[str(name), event.producer_id, event.producer_epoch] += 1

    def begun(self, node_id: NodeId, name: TopicPartition, event: events.TransitionBegun) -> None:
        """Notes that a transition begins: R1, R10, and R2 if it completes a transaction."""
        term, key = self._term(node_id, name, event.leader_epoch), event.transactional_id
        where = f"{key} at coordinator {node_id} of {name} in epoch {event.leader_epoch}"
        before = term.under_way.get(key)
        if before is not None:
            self._report(
                "R1", name, f"{where} goes from {event.old} to {event.new} while it still goes to {before.new}"
            )
        known = term.states.get(key, event.old)
        if event.new not in _NEXT[event.old] or known != event.old:
            self._report("R10", name, f"{where} goes from {event.old} to {event.new}, and was last {known}")
        term.under_way[key] = event
        if event.new in {"PrepareCommit", "PrepareAbort"}:
            place = _Place(name, event.offset, key, (event.producer_id, event.producer_epoch))
            self._decided[place] = event.partitions
        elif event.new in {"CompleteCommit", "CompleteAbort"}:
            self._completes(name, term, event, where)

    def _completes(self, name: TopicPartition, term: _Term, event: events.TransitionBegun, where: str) -> None:
        sent = term.sent.get(event.transactional_id)
        if sent is None:
            self._report("R2", name, f"{where} goes to {event.new}, and never had markers written")
            return
        if term.completed.get(event.transactional_id) == sent.decided_at:
            return  # tried again
        term.completed[event.transactional_id] = sent.decided_at
        producer = (sent.producer_id, sent.producer_epoch)
        decided = self._decided.get(_Place(name, sent.decided_at, event.transactional_id, producer), ())
        for partition in sorted({*sent.partitions, *decided}):
            self._needed[partition, *producer] += 1
            is_there = self._appended[partition, *producer] >= self._needed[partition, *producer]
            if not is_there and partition.rpartition("-")[0] not in self._deleted_topics:
                self._report("R2", name, f"{where} goes to {event.new}, and {partition} has no marker of {producer}")

    def ended(self, node_id: NodeId, name: TopicPartition, event: events.TransitionEnded) -> None:
        """Notes that a transition took effect or was given up."""
        term, key = self._term(node_id, name, event.leader_epoch), event.transactional_id
        begun = term.under_way.pop(key, None)
        if begun is None or event.error != ErrorCode.NONE.name:
            return
        if begun.new == "Dead":
            term.states.pop(key, None)
        else:
            term.states[key] = begun.new

    def markers_sent(self, node_id: NodeId, name: TopicPartition, event: events.MarkersSent) -> None:
        """Markers are to be written: R4."""
        self._term(node_id, name, event.leader_epoch).sent[event.transactional_id] = event
        if not self._is_committed(node_id, name, event.decided_at):
            sentence = f"coordinator {node_id} of {name} sends markers of {event.transactional_id}, whose decision at"
            self._report("R4", name, f"{sentence} {event.decided_at} is not committed", by=node_id)

    def returned(self, node_id: NodeId, name: TopicPartition, event: events.PositionReturned) -> None:
        """A coordinator answered with a committed offset: R9."""
        if not self._is_committed(node_id, name, event.counts_from):
            position = f"the position {event.position} of {event.group_id} in {event.source}, which counts from"
            sentence = f"coordinator {node_id} of {name} returned {position} {event.counts_from}"
            self._report("R9", name, f"{sentence} and is not committed")

    def _report(self, check_id: str, name: TopicPartition, sentence: str, *, by: NodeId | None = None) -> None:
        self._alarm_log.report(check_id, name, sentence, by=by)
