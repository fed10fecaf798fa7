"""Transactions: the outcomes that producers and readers received, and the ends in the settled leaders' logs.

A transaction is described by its producer's history: the batches that it sent, and the outcome that it received. In a
log each batch of a transaction is decided by the next marker of its producer. Coordinators' events do not count here.
The data is small: a run with transactions is read by one process.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple

from laststand.emulator.core.history import (
    CommittedReadOperation,
    GroupCommitOperation,
    GroupReadOperation,
    OperationType,
    SessionOperation,
    TransactionOperation,
)
from laststand.emulator.core.types import Acks
from laststand.emulator.verification.tables.client_history import SentBatch
from laststand.emulator.verification.tables.final_logs import FinalBatch
from laststand.emulator.verification.tables.rows import PartitionName

Marker = tuple[int, int]
"""Producer id and epoch of the end of a transaction."""

_COMMIT: Final = 1
"""Type of the control record that commits a transaction."""


class End(Enum):
    """The end of a transaction in one partition."""

    ABORT = "aborted"
    COMMIT = "committed"
    NONE = "without an end"


class StoredBatch(NamedTuple):
    """A batch of a transaction in a settled log: its end by the next marker, and the number of its copies.

    Attributes:
        producer: id and epoch of its producer.
        base_offset: where it is.
        end_epoch: the producer's epoch in the marker that ends it; ``None`` without one.
        end_offset: where that marker is.
    """

    end: End
    copies: int
    producer: tuple[int, int]
    base_offset: int
    end_epoch: int | None = None
    end_offset: int | None = None


class SentTransaction(NamedTuple):
    """A transaction, its batches whose outcome the producer recorded, and its reads for a group."""

    operation: TransactionOperation
    sends: tuple[SentBatch, ...]
    reads: tuple[GroupReadOperation, ...]

    @property
    def is_committed(self) -> bool:
        """True if the producer got the answer that the transaction is committed."""
        return self.operation.type is OperationType.OK and self.operation.result == "commit"

    @property
    def is_aborted(self) -> bool:
        """True if the producer got the answer that it is aborted, or failed to commit it."""
        is_answered = self.operation.type is OperationType.OK and self.operation.result == "abort"
        return is_answered or self.operation.type is OperationType.FAIL


class Markers:
    """The ends of transactions on their way, counted by partition, producer id and epoch.

    Attributes:
        decided: transactions that a coordinator began to end, not by partition; the decision may be lost.
        sent: markers that a coordinator requested from partition leaders.
        appended: markers that a leader appended.
        kept: markers in settled logs.
    """

    def __init__(self) -> None:
        self.decided: Counter[Marker] = Counter()
        self.sent: Counter[tuple[str, Marker]] = Counter()
        self.appended: Counter[tuple[str, Marker]] = Counter()
        self.kept: Counter[tuple[str, Marker]] = Counter()

    def missing_end(self, partition: str, producer: tuple[int, int]) -> str | None:
        """Returns why a producer's transaction may have no end in a partition; ``None`` without events of coordinators.

        The marker of its end has the producer's epoch, or the next epoch (KIP-890, or if the producer was fenced).
        """
        if not self.decided and not self.sent:
            return None
        producer_id, epoch = producer
        ends = [(producer_id, epoch), (producer_id, epoch + 1)]
        decided = sum(self.decided[each] for each in ends)
        sent, appended, kept = (
            sum(counts[partition, each] for each in ends) for counts in (self.sent, self.appended, self.kept)
        )
        if appended > kept:
            return "its end was written there, and is lost"
        if sent > appended:
            return "its coordinator was to have the end written there, and gave up"
        if decided > sent:
            return "its coordinator began to end it, and lost the decision or the partition"
        return "the ends of its producer there lie before it" if kept else "no coordinator began to end it"


class TransactionFacts:
    """All transactions of a run.

    Attributes:
        operations: by id, the last line of each.
        sessions: of transactional producers, in the order of their histories.
        reads: the batches that read_committed consumers received, in the order of their histories.
        group_reads: the records that were read for groups, in the same order.
        group_commits: the positions that groups were to commit, in the same order.
        stored: batches of transactions in settled logs, by partition and CRC; none of a partition without such a log.
        markers: counts of transaction markers; empty unless coordinators recorded their steps.
        deletions: the offset below which records were deleted on purpose, by partition and topic id.
    """

    def __init__(self) -> None:
        self.operations: dict[str, TransactionOperation] = {}
        self.sessions: list[SessionOperation] = []
        self.reads: list[CommittedReadOperation] = []
        self.group_reads: list[GroupReadOperation] = []
        self.group_commits: list[GroupCommitOperation] = []
        self.stored: dict[PartitionName, Mapping[int, StoredBatch]] = {}
        self.markers = Markers()
        self.deletions: dict[PartitionName, Mapping[str, int]] = {}
        self._sends: dict[str, SentBatch] = {}
        self._acked: dict[PartitionName, list[SentBatch]] = {}

    @property
    def is_empty(self) -> bool:
        """True if there is neither a transaction nor a read for a group."""
        return not self.operations and not self.group_reads

    def add_sends(self, sends: Iterable[SentBatch]) -> None:
        """Adds sends of transactions, and acknowledged sends with acks=all to partitions that groups read."""
        wanted = {each for operation in self.operations.values() for each in operation.sends}
        sources = {(read.topic, read.partition) for read in self.group_reads}
        for send in sends:
            if send.operation_id in wanted:
                self._sends[send.operation_id] = send
            is_acked = send.type is OperationType.OK and send.acks == Acks.ALL
            if is_acked and (send.topic, send.partition) in sources:
                self._acked.setdefault((send.topic, send.partition), []).append(send)

    def acked(self, read: GroupReadOperation) -> Iterator[tuple[SentBatch, range]]:
        """Yields the acknowledged batches that a group must read in the topic of a read, each with its offsets.

        Batches of transactions count if the commit of their transaction was acknowledged to the producer.
        """
        decided = {
            send.operation_id: transaction.is_committed for transaction in self.sent() for send in transaction.sends
        }
        for send in self._acked.get((read.topic, read.partition), ()):
            is_to_be_read = send.topic_id == read.topic_id and decided.get(send.operation_id, True)
            if send.base_offset is not None and is_to_be_read:
                yield send, range(send.base_offset, send.base_offset + send.record_count)

    def acked_offsets(self, read: GroupReadOperation, start: int, end: int) -> list[int]:
        """Returns the offsets of ``acked`` records from one offset up to another one."""
        return sorted(at for _, offsets in self.acked(read) for at in offsets if start <= at < end)

    def deleted_below(self, read: GroupReadOperation) -> int:
        """Returns the offset below which records were deleted on purpose in the topic of a read."""
        return self.deletions.get((read.topic, read.partition), {}).get(read.topic_id or "", 0)

    def sent(self) -> Iterator[SentTransaction]:
        """Yields all transactions."""
        for operation in self.operations.values():
            sends = tuple(self._sends[each] for each in operation.sends if each in self._sends)
            reads = tuple(read for read in self.group_reads if read.operation_id == operation.operation_id)
            yield SentTransaction(operation, sends, reads)

    def copies_of(self, send: SentBatch) -> list[StoredBatch] | None:
        """Returns a batch as the settled log stores it, for each CRC tried; ``None`` without a settled log."""
        stored = self.stored.get((send.topic, send.partition))
        if stored is None:
            return None
        return [stored[each.crc] for each in send.crcs if each.crc in stored]

    def are_deleted(self, send: SentBatch) -> bool:
        """Returns whether an acknowledged batch was deleted on purpose."""
        below = self.deletions.get((send.topic, send.partition), {}).get(send.topic_id or "", 0)
        return send.base_offset is not None and send.base_offset < below

    def ends_of(self, transaction: SentTransaction) -> dict[End, str]:
        """Returns the ends that a transaction has, each with a partition that has it."""
        ends: dict[End, str] = {}
        for send in transaction.sends:
            for copy in self.copies_of(send) or ():
                if copy.end is not End.NONE:
                    ends.setdefault(copy.end, f"{send.topic}-{send.partition}")
        return ends


def stored_batches(batches: Iterable[FinalBatch]) -> dict[int, StoredBatch]:
    """Returns the batches of transactions in a log by CRC, with their end in that log."""
    found: dict[int, StoredBatch] = {}
    undecided: dict[int, list[int]] = {}
    for batch in batches:
        if batch.producer_id is None or not batch.is_transactional:
            continue
        if batch.control_type is None:
            undecided.setdefault(batch.producer_id, []).append(batch.crc)
            copies = found[batch.crc].copies + 1 if batch.crc in found else 1
            found[batch.crc] = StoredBatch(
                End.NONE, copies, (batch.producer_id, batch.producer_epoch), batch.base_offset
            )
        else:
            end = End.COMMIT if batch.control_type == _COMMIT else End.ABORT
            for crc in undecided.pop(batch.producer_id, ()):
                found[crc] = found[crc]._replace(end=end, end_epoch=batch.producer_epoch, end_offset=batch.base_offset)
    return found
