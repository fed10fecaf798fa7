"""Finds the records acknowledged with acks=all that a whole run has lost, as verification counts them.

A record is lost if a later leader took over with a log that ends before it, if the last leader lacks it, or, without a
leader, if every replica lacks it. A later leader is one that was elected after the acknowledgement, or the process of a
broker that was restarted since and leads again in its own epoch. Deliberately deleted records are not lost.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.types import BrokerId, LeaderEpoch, Offset, TopicId, TopicPartition
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.truth import PartitionTruth, PromisedBatch


class LostBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that was acknowledged and is lost, and whether the guarantee covered it."""

    partition: TopicPartition
    base_offset: Offset
    crc: int
    records: int
    is_covered: bool


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's process that led in an epoch, and the end of its log when it took over."""

    leader_epoch: LeaderEpoch
    incarnation: int
    broker_id: BrokerId
    log_end_offset: Offset


class LossLedger:
    """Leaders, and the ends of their logs when they took over."""

    def __init__(self) -> None:
        self._terms: dict[TopicPartition, list[Term]] = {}
        self._used: dict[TopicPartition, dict[BrokerId, TopicId]] = {}

    def took_role(self, name: TopicPartition, broker_id: BrokerId, topic_id: TopicId) -> None:
        """A broker leads or follows a topic's partition with the log of that name, even a former topic's (S27)."""
        self._used.setdefault(name, {})[broker_id] = topic_id

    def became_leader(
        self, name: TopicPartition, node: BrokerNode, leader_epoch: LeaderEpoch, log_end_offset: Offset
    ) -> None:
        """A broker's process took over."""
        term = Term(
            leader_epoch=leader_epoch,
            incarnation=node.incarnation,
            broker_id=node.broker_id,
            log_end_offset=log_end_offset,
        )
        self._terms.setdefault(name, []).append(term)

    def forget(self, name: TopicPartition) -> None:
        """A partition is deleted, with its promises."""
        self._terms.pop(name, None)
        self._used.pop(name, None)

    def lost(
        self,
        truths: Mapping[TopicPartition, PartitionTruth],
        states: Mapping[TopicPartition, PartitionState],
        nodes: Mapping[BrokerId, BrokerNode],
        *,
        unread: Collection[TopicPartition],
    ) -> Iterator[LostBatch]:
        """Yields the batches that are lost so far; the partitions in ``unread`` have no leader that could be read."""
        for name, truth in truths.items():
            state = states.get(name)
            if state is None:
                continue
            holders = [node for node in nodes.values() if self.has_log(node, name, state)]
            has_none = PROMISES["D1"].leaves_out(Exemption.NO_CANDIDATE) and name in unread
            leader = None if has_none else self.last_leader(name)
            for promise in truth.ever_acked.values():
                is_exempt = PROMISES["D1"].leaves_out(Exemption.DELETED_RECORDS)
                if is_exempt and truth.is_deleted(promise, promise.last_offset):
                    continue
                lacking = self._lacking(name, promise)
                if lacking is None and not _is_missing(promise, name, leader, holders):
                    continue
                yield LostBatch(
                    partition=name,
                    base_offset=promise.base_offset,
                    crc=promise.crc,
                    records=promise.last_offset - promise.base_offset + 1,
                    is_covered=_is_covered(truth, promise, state, lacking),
                )

    def _lacking(self, name: TopicPartition, promise: PromisedBatch) -> Term | None:
        """Returns the first leader after the acknowledgement that took over without a record."""
        if promise.leader_epoch is None or promise.incarnation is None:
            return None
        end_offset = Offset(promise.last_offset + 1)
        return self.first_lacking(name, promise.leader_epoch, promise.incarnation, end_offset)

    def first_lacking(
        self, name: TopicPartition, leader_epoch: LeaderEpoch, incarnation: int, end_offset: Offset
    ) -> Term | None:
        """Returns the first leader after a leader's process that took over with a log that ends before an offset."""
        lacking = (
            term
            for term in self._terms.get(name, ())
            if (term.leader_epoch, term.incarnation) > (leader_epoch, incarnation) and term.log_end_offset < end_offset
        )
        return min(lacking, key=_place, default=None)

    def has_log(self, node: BrokerNode, name: TopicPartition, state: PartitionState) -> bool:
        """Returns whether a broker has a log of the topic, or used its log as one."""
        log = node.disk.logs.get(name)
        return log is not None and state.topic_id in (log.topic_id, self._used.get(name, {}).get(node.broker_id))

    def last_leader(self, name: TopicPartition) -> BrokerId | None:
        """Returns the broker that took over in the last epoch."""
        last = max(self._terms.get(name, ()), key=_place, default=None)
        return None if last is None else last.broker_id


def _place(term: Term) -> tuple[LeaderEpoch, int]:
    return term.leader_epoch, term.incarnation


def _is_missing(
    promise: PromisedBatch, name: TopicPartition, leader: BrokerId | None, holders: Iterable[BrokerNode]
) -> bool:
    """Returns whether the last leader lacks a record; without a leader, whether every replica lacks it."""
    having = {node.broker_id for node in holders if _holds(node, name, promise)}
    return not having if leader is None else leader not in having


def _holds(node: BrokerNode, name: TopicPartition, promise: PromisedBatch) -> bool:
    log = node.disk.logs[name]
    return any(
        batch.base_offset == promise.base_offset
        and batch.crc == promise.crc
        and batch.last_offset >= log.log_start_offset
        for batch in log.batches
    )


def _is_covered(truth: PartitionTruth, promise: PromisedBatch, state: PartitionState, lacking: Term | None) -> bool:
    """Returns whether the guarantee held up to the election of the last leader lacking the batch."""
    ledger = truth.ledger
    if lacking is None:
        until = ledger.elected_at.get(state.leader_epoch)
    else:
        until = ledger.took_over_at(lacking.leader_epoch, lacking.incarnation)
    since = promise.moment
    if promise.leader_epoch is not None:
        since = min(since, ledger.deposed_at(promise.leader_epoch))
    end = since if until is None else until
    return ledger.held(min(since, end), end)
