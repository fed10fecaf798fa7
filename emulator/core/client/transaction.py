"""A producer's ongoing operation: a transaction, or a reading for a group outside transactions."""

from collections import deque

from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client.group_reading import GroupReading
from laststand.emulator.core.client.steps import ConsumptionOffered, RecordsOffered, TransactionOffered
from laststand.emulator.core.types import CauseId, TopicPartition


class Transaction:
    """The transaction that is under way.

    Attributes:
        result: commit or abort, as wanted now; an error turns commit into abort.
        reading: the input that it reads, if any.
        destinations: the partitions that it writes to, in turn.
        unsent: batches to be sent, in order; empty while the transaction still reads.
        sends: operations of all batches that were sent.
        partitions: partitions that the producer itself has added to the transaction.
        has_begun: the coordinator may know of the transaction.
        has_committed_offsets: the position after its input is part of the transaction.
        may_be_committed: an unanswered request to commit it may have taken effect.
        error: the reason why it is aborted.
    """

    def __init__(self, offered: TransactionOffered) -> None:
        self.operation_id = offered.cause_id
        self.result = offered.result
        self.reading = None if offered.source is None else GroupReading(offered.source)
        self.destinations = offered.partitions
        self.unsent: deque[RecordsOffered] = deque()
        self.sends: list[CauseId] = []
        self.partitions: set[TopicPartition] = set()
        self.has_begun = False
        self.has_committed_offsets = False
        self.may_be_committed = False
        self.error: str | None = None

    @property
    def offsets_to_commit(self) -> GroupReading | None:
        """The reading whose end position has yet to become part of the transaction; ``None`` if there is none."""
        is_due = self.error is None and not self.has_committed_offsets
        return self.reading if is_due and self.reading is not None and self.reading.batches else None

    def abort(self, error: str) -> None:
        """Turns the transaction into one to be aborted."""
        self.error = error
        self.result = TransactionResult.ABORT


class Consumption:
    """A reading for a group outside transactions; ``may_be_committed`` is as for a transaction."""

    def __init__(self, offered: ConsumptionOffered) -> None:
        self.operation_id = offered.cause_id
        self.reading = GroupReading(offered.source)
        self.may_be_committed = False
