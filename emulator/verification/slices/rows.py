"""Rows of partitions in slices of a large run: frequent events and operations as columns."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

import msgspec
import numpy as np

from laststand.emulator.core.history import (
    CommittedReadOperation,
    FinalReadOperation,
    GroupCommitOperation,
    GroupMemberOperation,
    GroupPositionOperation,
    GroupReadOperation,
    HistoryLine,
    OperationType,
    PollOperation,
    SendOperation,
    SessionOperation,
    TransactionOperation,
)
from laststand.emulator.verification.reading.packed_lines import PackedOperations
from laststand.emulator.verification.tables.client_history import BegunSend, Poll, poll, received_batch, sent_batch
from laststand.emulator.verification.tables.columns import ALL, Table
from laststand.emulator.verification.tables.rows import PartitionName, PartitionRows, RowTables, parts_of


class SliceRows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one partition in slices, in their order."""

    rows: PartitionRows
    begun: Table[BegunSend]
    polls: tuple[Poll, ...] = ()
    final_reads: tuple[FinalReadOperation, ...] = ()

    @classmethod
    def none(cls, name: PartitionName) -> "SliceRows":
        """Returns the rows of a slice without evidence about the partition."""
        topic, partition = name
        return cls(rows=PartitionRows.none(topic, partition), begun=_none_begun(name))

    @property
    def lines(self) -> int:
        """The number of lines of events and operations in these rows."""
        events = sum(map(len, self.rows.events.values()))
        return events + len(self.rows.sent) + len(self.begun) + len(self.polls) + len(self.final_reads)

    def joined(self, others: Sequence["SliceRows"]) -> "SliceRows":
        """Returns these and what later slices have."""
        return SliceRows(
            rows=self.rows.joined([other.rows for other in others]),
            begun=self.begun.joined([other.begun for other in others]),
            polls=sum((other.polls for other in others), self.polls),
            final_reads=sum((other.final_reads for other in others), self.final_reads),
        )

    def matched(self) -> PartitionRows | None:
        """Returns the rows of sends, each with its begin; ``None`` if a begin or an outcome lacks its partner."""
        sent, numbers = self.rows.sent, dict[Hashable, int]()
        begun, ended = self.begun.numbers("operation_id", numbers), sent.numbers("operation_id", numbers)
        order = np.argsort(begun, kind="stable")
        ordered = begun[order]
        if np.any(ordered[1:] == ordered[:-1]) or not np.array_equal(np.sort(ended), ordered):
            return None
        places = order[np.searchsorted(ordered, ended)]
        columns = {"invoked": self.begun["index"][places], "begun_ns": self.begun["time_ns"][places]}
        return msgspec.structs.replace(self.rows, sent=sent.replaced(columns))


class SliceTables:
    """Frequent events and operations of a slice."""

    def __init__(self) -> None:
        self.tables = RowTables()
        self._begun: Table[BegunSend] = Table(BegunSend)
        self._polls: defaultdict[PartitionName, list[Poll]] = defaultdict(list)
        self._final_reads: defaultdict[PartitionName, list[FinalReadOperation]] = defaultdict(list)

    def add_operations(self, operations: Iterable[HistoryLine], *, history: str) -> None:
        """Takes the operations of a history of that name.

        Raises:
            ValueError: one is about a transaction, or a position of a group.
        """
        for operation in operations:
            match operation:
                case SendOperation(type=OperationType.INVOKE):
                    self._begun.append(operation)
                case SendOperation():
                    self.tables.sent.append(sent_batch(operation, history=history, begin=None))
                case PollOperation():
                    self._polls[operation.topic, operation.partition].append(poll(operation))
                    self.tables.received.extend([received_batch(operation, batch) for batch in operation.batches])
                case (
                    SessionOperation()
                    | TransactionOperation()
                    | CommittedReadOperation()
                    | GroupReadOperation()
                    | GroupCommitOperation()
                    | GroupMemberOperation()
                ):
                    raise ValueError("transactions are of several partitions, which one process has to judge together")
                case GroupPositionOperation():
                    raise ValueError("positions of groups are judged by one process")
                case FinalReadOperation():
                    self._final_reads[operation.topic, operation.partition].append(operation)

    def add_columns(self, operations: PackedOperations) -> None:
        """Takes operations of a packed history."""
        if operations.begun is not None:
            self._begun.append_columns(operations.begun)
        if operations.sent is not None:
            self.tables.sent.append_columns(operations.sent)
        if operations.received is not None:
            self.tables.received.append_columns(operations.received)
        for each in operations.polls:
            self._polls[each.topic, each.partition].append(each)
        for read in operations.final_reads:
            self._final_reads[read.topic, read.partition].append(read)

    def by_partition(self) -> dict[PartitionName, SliceRows]:
        """Returns the rows of each partition.

        Raises:
            ValueError: an integer has more than 64 bits.
        """
        rows, begun = self.tables.parts(), dict(parts_of(self._begun))
        names = {*rows, *begun, *self._polls, *self._final_reads}
        return {
            name: SliceRows(
                rows=rows[name] if name in rows else PartitionRows.none(*name),
                begun=begun[name] if name in begun else _none_begun(name),
                polls=tuple(self._polls.get(name, ())),
                final_reads=tuple(self._final_reads.get(name, ())),
            )
            for name in names
        }


def _none_begun(name: PartitionName) -> Table[BegunSend]:
    topic, partition = name
    return Table[BegunSend](BegunSend).part(ALL, {"topic": topic, "partition": partition})
