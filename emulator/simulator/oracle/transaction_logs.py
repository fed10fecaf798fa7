"""Checks of logs with transactions and positions, as brokers see them, by a fold of the same batches: R6, R11, R12.

A fold resumes where it ended, so a check after a step only reads the appended batches.
"""

from collections.abc import Mapping
from itertools import takewhile
from typing import Final, TypeVar

from laststand.emulator.core.batch import BatchDescriptor, TransactionResult
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.client.steps import CommittedReadRecorded
from laststand.emulator.core.group_records import GroupRemoved, OffsetCommitted, OffsetRemoved
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import BrokerId, NodeId, Offset, ProducerId, TopicPartition
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.storage.coordinator_records import decode_log
from laststand.emulator.storage.record_batch import stamp

_NOWHERE: Final = Offset(-1)
_BEYOND: Final = Offset(2**63 - 1)
_Key = TypeVar("_Key")

_Position = tuple[str, TopicPartition]
"""A group, and a partition that it reads."""


class _Fold:
    """The open and the aborted transactions of a log's first batches."""

    def __init__(self) -> None:
        self.count = 0
        self.last: BatchDescriptor | None = None
        self.open: dict[ProducerId, Offset] = {}
        self.aborted: dict[tuple[ProducerId, Offset], Offset] = {}

    def goes_on_in(self, batches: list[BatchDescriptor]) -> bool:
        """Returns whether a log begins with the batches that were folded."""
        return self.count == 0 or (self.count <= len(batches) and batches[self.count - 1] is self.last)

    def take(self, batches: list[BatchDescriptor]) -> None:
        """Adds the further batches of a log to the fold."""
        for batch in batches[self.count :]:
            producer_id = batch.producer_id
            if producer_id is None or not batch.is_transactional:
                continue
            if batch.marker is None:
                self.open.setdefault(producer_id, batch.base_offset)
                continue
            first = self.open.pop(producer_id, None)
            if first is not None and batch.marker.result is TransactionResult.ABORT:
                self.aborted[producer_id, batch.last_offset] = first
        self.count = len(batches)
        self.last = batches[-1] if batches else None


class _Positions:
    """The positions of the groups of a log's first batches, each with the offset of the record that set it."""

    def __init__(self) -> None:
        self.count = 0
        self.last: BatchDescriptor | None = None
        self.high_watermark = Offset(0)
        self.of: dict[_Position, Offset] = {}
        self._set_at: dict[_Position, Offset] = {}
        self._pending: dict[ProducerId, dict[_Position, tuple[Offset, Offset]]] = {}

    def goes_on_in(self, batches: list[BatchDescriptor]) -> bool:
        """Returns whether a log begins with the batches that were folded."""
        return self.count == 0 or (self.count <= len(batches) and batches[self.count - 1] is self.last)

    def take(self, record: object, at: Offset) -> None:
        """Adds the next record to the fold."""
        match record:
            case OffsetCommitted(group_id=group_id, partition=partition, offset=offset, producer=None):
                self.of[group_id, partition], self._set_at[group_id, partition] = Offset(offset), at
            case OffsetCommitted(group_id=group_id, partition=partition, offset=offset, producer=producer):
                assert producer is not None
                self._pending.setdefault(producer.producer_id, {})[group_id, partition] = (Offset(offset), at)
            case OffsetRemoved(group_id=group_id, partition=partition):
                self.of.pop((group_id, partition), None)
                for pending in self._pending.values():
                    pending.pop((group_id, partition), None)
            case GroupRemoved(group_id=group_id):
                self.of = {key: offset for key, offset in self.of.items() if key[0] != group_id}
            case TransactionEnded(producer_id=producer_id, marker=marker):
                ended = self._pending.pop(producer_id, {})
                for key, (offset, set_at) in ended.items() if marker.result is TransactionResult.COMMIT else ():
                    if self._set_at.get(key, _NOWHERE) < set_at:
                        self.of[key], self._set_at[key] = offset, set_at
            case _:
                pass


class TransactionLogChecks:
    """Checks of one run.

    Attributes:
        is_asked: whether the run had a transaction so far; before that the checks are skipped.
    """

    def __init__(self, alarm_log: AlarmLog) -> None:
        self._alarm_log = alarm_log
        self._cluster: SimulatedCluster
        self._folds: dict[tuple[NodeId, TopicPartition], _Fold] = {}
        self._positions: dict[tuple[NodeId, TopicPartition], _Positions] = {}
        self.is_asked = False

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster

    def read(self, client: str, record: CommittedReadRecorded) -> None:
        """A read_committed consumer received a last stable offset: R6."""
        high_watermark, held, start = record.high_watermark, record.last_stable_offset, record.log_start_offset
        if held is None or high_watermark is None:
            return
        stored = self._cluster.nodes[BrokerId(record.node)].disk.logs.get(record.partition)
        base = _base_of(stored.batches, start) if stored is not None and start is not None else None
        if held > high_watermark or (base is not None and held < base):
            bounds = f"high watermark {high_watermark}, log start {start}"
            sentence = f"{client} was told the last stable offset {held} of {record.partition} by {record.node}"
            self._alarm_log.report("R6", record.partition, f"{sentence}, with {bounds}")

    def check(self, node: BrokerNode, partition: Partition) -> None:
        """R6, R11 on one replica."""
        name, log, stored = partition.name, partition.log, node.disk.logs.get(partition.name)
        if stored is None:
            return
        held, start = log.last_stable_offset, log.log_start_offset
        base = start if held >= start else _base_of(stored.batches, start)
        if held > log.high_watermark or base is None or held < base:
            bounds = f"high watermark {log.high_watermark}, log start {log.log_start_offset}"
            sentence = f"{name} on broker {node.node_id} is stable up to {held}, with {bounds}"
            self._alarm_log.report("R6", name, sentence, leaves_evidence=False)
        fold = self._folds.get((node.node_id, name))
        if fold is None or not fold.goes_on_in(stored.batches):
            fold = self._folds[node.node_id, name] = _Fold()
        fold.take(stored.batches)
        self._compare(node, partition, "open", log.producers.open_transactions, fold.open)
        aborted = {(each.producer_id, each.last_offset): each.first_offset for each in log.producers.aborted.entries}
        self._compare(node, partition, "aborted", aborted, fold.aborted)

    def _compare(
        self,
        node: BrokerNode,
        partition: Partition,
        what: str,
        believed: Mapping[_Key, Offset],
        there: Mapping[_Key, Offset],
    ) -> None:
        """R11; of a transaction that began before the log start the first offset may be either's."""
        start = partition.log.log_start_offset
        missing = {
            key: first
            for key, first in there.items()
            if first >= start and (known := believed.get(key, _BEYOND)) != first and known >= start
        }
        invented = {key: first for key, first in believed.items() if first >= start and key not in there}
        if missing or invented:
            where = f"{partition.name} on broker {node.node_id} has the {what} transactions {dict(believed)}"
            self._alarm_log.report("R11", partition.name, f"{where}, and by its batches {dict(there)}")

    def check_positions(self, node: BrokerNode, partition: Partition) -> None:
        """R12 on the coordinator of a partition's groups."""
        name, log, stored = partition.name, partition.log, node.disk.logs.get(partition.name)
        answered = None if node.broker is None else node.broker.committed_positions(name)
        if stored is None or answered is None:
            return
        known = self._positions.get((node.node_id, name))
        if known is None or not known.goes_on_in(stored.batches) or log.high_watermark < known.high_watermark:
            known = self._positions[node.node_id, name] = _Positions()
        new = list(takewhile(lambda batch: batch.last_offset < log.high_watermark, stored.batches[known.count :]))
        contents = self._cluster.own_batches
        content = b"".join(stamp(contents[batch.crc], batch) for batch in new)
        for record, next_offset in decode_log(content, topic=OFFSETS_TOPIC) if new else ():
            known.take(record, Offset(next_offset - 1))
        known.count, known.high_watermark = known.count + len(new), log.high_watermark
        known.last = new[-1] if new else known.last
        if answered != known.of:
            differing = {key: (answered.get(key), known.of.get(key)) for key in answered.keys() | known.of.keys()}
            wrong = {f"{group} {source}": pair for (group, source), pair in differing.items() if pair[0] != pair[1]}
            sentence = f"coordinator {node.node_id} of {name} answers other positions than its log has: {wrong}"
            self._alarm_log.report("R12", name, sentence)


def _base_of(batches: list[BatchDescriptor], offset: Offset) -> Offset | None:
    """Returns the base offset of the batch that holds an offset."""
    for batch in batches:
        if batch.base_offset <= offset <= batch.last_offset:
            return batch.base_offset
    return None
