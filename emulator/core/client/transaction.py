"""One transaction of a producer that is under way, or one reading for a group without a transaction."""

from collections import deque

from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client.group_reading import GroupReading
from laststand.emulator.core.client.steps import ConsumptionOffered, RecordsOffered, TransactionOffered
from laststand.emulator.core.types import CauseId, TopicPartition


class Transaction:
    """The transaction that is under way.

    Attributes:
        result: the end that is wanted by now.
        reading: what it reads, if it does.
        destinations: the partitions that it writes to, in turn.
        unsent: batches that are not finished, in order; none of a transaction that still reads.
        sends: operations of all batches that were sent.
        partitions: that the producer has added itself.
        has_begun: a coordinator may know of it.
        has_committed_offsets: the position behind what it read is part of it.
        may_be_committed: a request to commit it may have been carried out, though nobody said so.
        error: why it is aborted.
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
        """The reading whose position is not part of the transaction yet, and has to be; ``None`` if there is none."""
        is_due = self.error is None and not self.has_committed_offsets
        return self.reading if is_due and self.reading is not None and self.reading.batches else None

    def abort(self, error: str) -> None:
        """Turns it into one that is to be aborted."""
        self.error = error
        self.result = TransactionResult.ABORT


class Consumption:
    """A reading for a group without a transaction; ``may_be_committed`` is as of a transaction."""

    def __init__(self, offered: ConsumptionOffered) -> None:
        self.operation_id = offered.cause_id
        self.reading = GroupReading(offered.source)
        self.may_be_committed = False
