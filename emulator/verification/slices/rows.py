"""Rows of partitions in slices of a large run: frequent events and operations as columns."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

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
from laststand.emulator.verification.tables.columns import Table
from laststand.emulator.verification.tables.rows import (
    PartitionName,
    PartitionRows,
    RowTables,
    count_rows,
    parts_of,
    rows_of_none,
    share_of,
    share_rows,
)

_Operation = TypeVar("_Operation", Poll, FinalReadOperation)


class SliceRows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one partition in all slices, in their order."""

    rows: PartitionRows
    begun: Table[BegunSend]
    polls: tuple[Poll, ...] = ()
    final_reads: tuple[FinalReadOperation, ...] = ()

    @classmethod
    def none(cls, name: PartitionName) -> "SliceRows":
        """Returns the rows of a partition of which no slice has evidence."""
        return cls(rows=PartitionRows.none(*name), begun=rows_of_none(BegunSend, name))

    @property
    def lines(self) -> int:
        """The number of lines of events and operations in these rows."""
        events = sum(map(len, self.rows.events.values()))
        return events + len(self.rows.sent) + len(self.begun) + len(self.polls) + len(self.final_reads)

    def matched(self) -> PartitionRows | None:
        """Returns the rows with each send's begin; ``None`` if a send has not exactly one begin and one outcome."""
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
    """Frequent events and operations of any number of partitions, of one slice or of several; empty at first."""

    def __init__(
        self,
        tables: RowTables | None = None,
        begun: Table[BegunSend] | None = None,
        polls: Iterable[Poll] = (),
        final_reads: Iterable[FinalReadOperation] = (),
    ) -> None:
        self.tables = RowTables() if tables is None else tables
        self._begun: Table[BegunSend] = Table(BegunSend) if begun is None else begun
        self._polls = list(polls)
        self._final_reads = list(final_reads)

    def add_operations(self, operations: Iterable[HistoryLine], *, history: str) -> None:
        """Adds operations of a history.

        Raises:
            ValueError: an operation is about a transaction, or a position of a group.
        """
        for operation in operations:
            match operation:
                case SendOperation(type=OperationType.INVOKE):
                    self._begun.append(operation)
                case SendOperation():
                    self.tables.sent.append(sent_batch(operation, history=history, begin=None))
                case PollOperation():
                    self._polls.append(poll(operation))
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
                    self._final_reads.append(operation)

    def add_columns(self, operations: PackedOperations) -> None:
        """Adds operations of a packed history."""
        if operations.begun is not None:
            self._begun.append_columns(operations.begun)
        if operations.sent is not None:
            self.tables.sent.append_columns(operations.sent)
        if operations.received is not None:
            self.tables.received.append_columns(operations.received)
        self._polls.extend(operations.polls)
        self._final_reads.extend(operations.final_reads)

    def count_lines(self) -> Counter[PartitionName]:
        """Returns the number of lines of each partition.

        Raises:
            ValueError: an integer has more than 64 bits.
        """
        found: Counter[PartitionName] = Counter()
        tables: list[Table[Any]] = [*self.tables.events.values(), self.tables.sent, self._begun]
        for table in tables:
            for name, count in count_rows(table):
                found[name] += count
        self.tables.received.words("topic")  # of polls, whose integers are checked, too
        found.update(map(_name, self._polls))
        found.update(map(_name, self._final_reads))
        return found

    def shares(self, count: int) -> dict[int, "SliceTables"]:
        """Divides the rows into a number of shares, and returns the non-empty ones."""
        rows, begun = self.tables.shares(count), share_rows(self._begun, count)
        polls, final_reads = _shared(self._polls, count), _shared(self._final_reads, count)
        return {
            share: SliceTables(rows.get(share), begun.get(share), polls.get(share, ()), final_reads.get(share, ()))
            for share in {*rows, *begun, *polls, *final_reads}
        }

    def joined(self, others: Sequence["SliceTables"]) -> "SliceTables":
        """Returns these rows followed by those of later slices."""
        return SliceTables(
            self.tables.joined([other.tables for other in others]),
            self._begun.joined([other._begun for other in others]),
            chain(self._polls, *(other._polls for other in others)),
            chain(self._final_reads, *(other._final_reads for other in others)),
        )

    def by_partition(self) -> dict[PartitionName, SliceRows]:
        """Returns the rows of each partition."""
        rows, begun = self.tables.parts(), dict(parts_of(self._begun))
        polls, final_reads = _by_name(self._polls), _by_name(self._final_reads)
        return {
            name: SliceRows(
                rows=rows[name] if name in rows else PartitionRows.none(*name),
                begun=begun[name] if name in begun else rows_of_none(BegunSend, name),
                polls=tuple(polls.get(name, ())),
                final_reads=tuple(final_reads.get(name, ())),
            )
            for name in {*rows, *begun, *polls, *final_reads}
        }


def _name(row: Poll | FinalReadOperation) -> PartitionName:
    return row.topic, row.partition


def _by_name(rows: Iterable[_Operation]) -> dict[PartitionName, list[_Operation]]:
    found: defaultdict[PartitionName, list[_Operation]] = defaultdict(list)
    for row in rows:
        found[_name(row)].append(row)
    return found


def _shared(rows: Iterable[_Operation], count: int) -> dict[int, list[_Operation]]:
    found: defaultdict[int, list[_Operation]] = defaultdict(list)
    for row in rows:
        found[share_of(_name(row), count)].append(row)
    return found
