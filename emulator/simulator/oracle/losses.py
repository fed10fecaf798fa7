"""Which records acknowledged with acks=all a whole run has lost: what verification counts, from what was seen.

A record is lost if a broker that was elected after its acknowledgement took over with a log that ends before it, if the
last leader does not have it, or, where nobody leads, if no replica does. What was deleted on purpose is not lost.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from emulator.core.image import PartitionState
from emulator.core.types import BrokerId, LeaderEpoch, Offset, TopicId, TopicPartition
from emulator.simulator.nodes import BrokerNode
from emulator.simulator.oracle.truth import PartitionTruth, PromisedBatch


class LostBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that was acknowledged and is lost, and whether the guarantee held for it."""

    partition: TopicPartition
    base_offset: Offset
    crc: int
    records: int
    is_covered: bool


class _Term(msgspec.Struct, frozen=True, kw_only=True):
    broker_id: BrokerId
    log_end_offset: Offset


class LossLedger:
    """Who led, and where its log ended when it took over."""

    def __init__(self) -> None:
        self._terms: dict[TopicPartition, dict[LeaderEpoch, _Term]] = {}
        self._used: dict[TopicPartition, dict[BrokerId, TopicId]] = {}

    def took_role(self, name: TopicPartition, broker_id: BrokerId, topic_id: TopicId) -> None:
        """A broker leads or follows a topic's partition with the log that has its name, whosever it is (S27)."""
        self._used.setdefault(name, {})[broker_id] = topic_id

    def became_leader(
        self, name: TopicPartition, broker_id: BrokerId, leader_epoch: LeaderEpoch, log_end_offset: Offset
    ) -> None:
        """A broker took over as the process that was elected."""
        self._terms.setdefault(name, {}).setdefault(
            leader_epoch, _Term(broker_id=broker_id, log_end_offset=log_end_offset)
        )

    def forget(self, name: TopicPartition) -> None:
        """A partition is gone, and what it promised."""
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
        """Yields what is lost by now; of partitions in ``unread`` nobody is the last leader who could be read from."""
        for name, truth in truths.items():
            state = states.get(name)
            if state is None:
                continue
            holders = [node for node in nodes.values() if self._has_log(node, name, state)]
            leader = None if name in unread else self._last_leader(name)
            for promise in truth.ever_acked.values():
                if truth.is_deleted(promise, promise.last_offset):
                    continue
                lacking = self._lacking(name, promise)
                if lacking is None and not _is_missing(promise, name, leader, holders):
                    continue
                yield LostBatch(
                    partition=name,
                    base_offset=promise.base_offset,
                    crc=promise.crc,
                    records=promise.last_offset - promise.base_offset + 1,
                    is_covered=_is_covered(truth, promise, state.leader_epoch if lacking is None else lacking),
                )

    def _lacking(self, name: TopicPartition, promise: PromisedBatch) -> LeaderEpoch | None:
        """Returns the epoch of the first leader after the acknowledgement that took over without a record."""
        acked_in = promise.leader_epoch
        if acked_in is None:
            return None
        lacking = (
            epoch
            for epoch, term in self._terms.get(name, {}).items()
            if epoch > acked_in and term.log_end_offset <= promise.last_offset
        )
        return min(lacking, default=None)

    def _has_log(self, node: BrokerNode, name: TopicPartition, state: PartitionState) -> bool:
        """Whether a broker has a log that is the topic's, or that it last used as such."""
        log = node.disk.logs.get(name)
        return log is not None and state.topic_id in (log.topic_id, self._used.get(name, {}).get(node.broker_id))

    def _last_leader(self, name: TopicPartition) -> BrokerId | None:
        terms = self._terms.get(name)
        return terms[max(terms)].broker_id if terms else None


def _is_missing(
    promise: PromisedBatch, name: TopicPartition, leader: BrokerId | None, holders: Iterable[BrokerNode]
) -> bool:
    """Whether the last leader lacks a record; where there is none, whether nobody has it."""
    having = {node.broker_id for node in holders if _holds(node, name, promise)}
    return not having if leader is None else leader not in having


def _holds(node: BrokerNode, name: TopicPartition, promise: PromisedBatch) -> bool:
    return any(
        batch.base_offset == promise.base_offset and batch.crc == promise.crc for batch in node.disk.logs[name].batches
    )


def _is_covered(truth: PartitionTruth, promise: PromisedBatch, leader_epoch: LeaderEpoch) -> bool:
    """Whether the guarantee held from the acknowledgement to the election of that epoch's leader."""
    until = truth.ledger.elected_at.get(leader_epoch)
    since = promise.moment
    if promise.leader_epoch is not None:
        since = min(since, truth.ledger.deposed_at(promise.leader_epoch))
    end = since if until is None else until
    return truth.ledger.held(min(since, end), end)
