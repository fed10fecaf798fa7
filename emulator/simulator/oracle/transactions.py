"""Checks of transactions, by what clients were told and what the last leaders' logs hold: X1-X3, X5, X7-X10.

A transaction is known by its producer's history: which batches it sent, and which end it was told of. In a log each of
its batches is decided by the next marker of its producer. So nothing of what coordinators say, or believe, counts.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from laststand.emulator.core.batch import BatchDescriptor, TransactionResult
from laststand.emulator.core.client.steps import (
    CommittedReadRecorded,
    GroupCommitRecorded,
    GroupReadRecorded,
    SendRecorded,
    TransactionRecorded,
)
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.topic_names import INTERNAL_TOPICS
from laststand.emulator.core.types import CauseId, Offset, ProducerId, TopicId, TopicPartition
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.finding import Guarantee
from laststand.emulator.simulator.oracle.groups import GroupChecks
from laststand.emulator.simulator.oracle.truth import PartitionTruth


class _Stored(NamedTuple):
    """A batch in the last leader's log: its end there, ``None`` while there is none, and how often it is there."""

    result: TransactionResult | None
    copies: int


class TransactionChecks:
    """Checks of one run's transactions."""

    def __init__(self, alarm_log: AlarmLog, truths: Mapping[TopicPartition, PartitionTruth]) -> None:
        self._alarm_log = alarm_log
        self._truths = truths
        self._transactions: dict[CauseId, TransactionRecorded] = {}
        self._sends: dict[CauseId, SendRecorded] = {}
        self._reads: list[tuple[str, CommittedReadRecorded]] = []
        self._positions: dict[tuple[str, TopicPartition, TopicId | None], Offset] = {}
        self._groups = GroupChecks(self._report, truths)

    def forget(self, name: TopicPartition) -> None:
        """A partition is gone; one of the same name starts from nothing."""
        self._groups.forget(name)
        for key in [key for key in self._positions if key[1] == name]:
            del self._positions[key]

    # --- What clients are told ------------------------------------------------------------------------------------

    def transacted(self, record: TransactionRecorded) -> None:
        """A transaction was begun or is over."""
        self._transactions[record.operation_id] = record
        self._groups.transacted(record)

    def sent(self, record: SendRecorded) -> None:
        """A batch of a transaction has its outcome."""
        self._sends[record.operation_id] = record

    def acked(self, record: SendRecorded) -> None:
        """A batch of any producer was acknowledged."""
        self._groups.acked(record)

    def read_for_group(self, record: GroupReadRecorded) -> None:
        """An operation read for a group."""
        self._groups.read(record, undone=self._sends_without(self._told_committed()))

    def position_committed(self, record: GroupCommitRecorded) -> None:
        """A group's position was to be committed."""
        self._groups.committed(record, is_in_transaction=record.operation_id in self._transactions)

    def read(self, client: str, record: CommittedReadRecorded) -> None:
        """A reader of committed records was given some: X10 on where it was before."""
        key = (client, record.partition, record.topic_id)
        expected = self._positions.get(key)
        if expected is not None and not record.seek and record.position != expected:
            sentence = f"{client} went from {expected} to {record.position} of {record.partition}"
            self._report("X10", record.partition, sentence)
        self._positions[key] = record.next_position
        self._reads.append((client, record))

    # --- When all is over -----------------------------------------------------------------------------------------

    def check(self, logs: Mapping[TopicPartition, Sequence[BatchDescriptor]]) -> None:
        """X1, X2, X3, X10 by the logs of the last leaders; a partition without one is left out."""
        stored = {name: _ends(log) for name, log in logs.items()}
        aborted: dict[int, CauseId] = {}
        committed = self._told_committed()
        for operation_id, transaction in self._transactions.items():
            ends = self._check_ends(transaction, stored)
            if TransactionResult.COMMIT in ends:
                committed.add(operation_id)
            is_told = transaction.type is OperationType.FAIL or (
                transaction.type is OperationType.OK and transaction.result is TransactionResult.ABORT
            )
            if is_told or TransactionResult.ABORT in ends:
                for send in self._sends_of(transaction):
                    aborted.update({attempt.crc: operation_id for attempt in send.attempts})
        self._check_reads(aborted, stored)
        self._groups.check(committed, undone=self._sends_without(committed))

    def _told_committed(self) -> set[CauseId]:
        """Returns the transactions whose producer was told that they are committed."""
        return {name for name, transaction in self._transactions.items() if _is_committed(transaction)}

    def _sends_without(self, committed: Set[CauseId]) -> set[CauseId]:
        """Returns the sends of all transactions but these."""
        return {
            send
            for name, transaction in self._transactions.items()
            if name not in committed
            for send in transaction.sends
        }

    def _sends_of(self, transaction: TransactionRecorded) -> list[SendRecorded]:
        return [self._sends[each] for each in transaction.sends if each in self._sends]

    def _check_ends(
        self, transaction: TransactionRecorded, stored: Mapping[TopicPartition, Mapping[int, _Stored]]
    ) -> set[TransactionResult]:
        """X2, X3; returns the ends that the transaction has."""
        ends: dict[TransactionResult, TopicPartition] = {}
        name = transaction.operation_id
        is_committed = _is_committed(transaction)
        for send in self._sends_of(transaction):
            if send.partition not in stored:
                continue
            copies = [
                copy
                for crc in {attempt.crc for attempt in send.attempts}
                if (copy := stored[send.partition].get(crc)) is not None
            ]
            for copy in copies:
                if copy.result is not None:
                    ends.setdefault(copy.result, send.partition)
            if is_committed and send.type is OperationType.OK:
                is_there = [copy for copy in copies if copy.result is TransactionResult.COMMIT and copy.copies == 1]
                if len(is_there) != 1:
                    told = f"{send.operation_id} of {name}, which was committed"
                    self._report("X3", send.partition, f"{send.partition}: {told}, is {_fate(copies)}")
        if len(ends) > 1:
            places = " and ".join(
                f"{result.name} in {ends[result]}" for result in sorted(ends, key=lambda each: each.name)
            )
            self._report("X2", next(iter(ends.values())), f"{name} has {places}")
        return set(ends)

    def _check_reads(
        self, aborted: Mapping[int, CauseId], stored: Mapping[TopicPartition, Mapping[int, _Stored]]
    ) -> None:
        given: dict[TopicPartition, set[int]] = {}
        for client, read in self._reads:
            given.setdefault(read.partition, set()).update(batch.crc for batch in read.batches)
            for batch in read.batches:
                if batch.crc in aborted:
                    where = f"{batch.base_offset} of {read.partition} (batch {batch.crc})"
                    sentence = f"{client} was given {where}, which belongs to {aborted[batch.crc]}, which is aborted"
                    self._report("X1", read.partition, sentence)
        for name, ends in stored.items():
            end = min((at for (_, of, _), at in self._positions.items() if of == name), default=Offset(0))
            for transaction in self._transactions.values():
                for send in self._sends_of(transaction):
                    if send.partition == name and send.base_offset is not None and send.base_offset < end:
                        self._check_given(name, send, ends, given.get(name, set()))

    def _check_given(
        self, name: TopicPartition, send: SendRecorded, ends: Mapping[int, _Stored], given: set[int]
    ) -> None:
        crc = send.attempts[-1].crc
        copy = ends.get(crc)
        if copy is not None and copy.result is TransactionResult.COMMIT and crc not in given:
            sentence = f"{name} {send.base_offset} (batch {crc}) is committed, and a reader came past it without it"
            self._report("X10", name, sentence)

    # --- Progress -------------------------------------------------------------------------------------------------

    def open_transactions(
        self, logs: Mapping[TopicPartition, Sequence[BatchDescriptor]]
    ) -> Iterator[tuple[str, TopicPartition, str]]:
        """Yields X5 where a transaction is open."""
        if self._transactions:
            for name, log in logs.items():
                for producer_id, first_offset in _open(log).items():
                    yield "X5", name, f"{name}: a transaction of producer {producer_id} is open since {first_offset}"

    def guarantee(self, name: TopicPartition) -> Guarantee:
        """Returns whether a promise about a transaction had to hold: that of its records, and of what decides on it."""
        about = [each for each in self._truths if each == name or each.topic in INTERNAL_TOPICS]
        moment = self._alarm_log.moment
        held = all(self._truths[each].ledger.held(0, moment) for each in about)
        return Guarantee.HOLDS if held else Guarantee.EXCEEDED

    def _report(self, check_id: str, name: TopicPartition, sentence: str) -> None:
        self._alarm_log.report(check_id, name, sentence, guarantee=self.guarantee(name))


def _is_committed(transaction: TransactionRecorded) -> bool:
    return transaction.type is OperationType.OK and transaction.result is TransactionResult.COMMIT


def _fate(copies: Sequence[_Stored]) -> str:
    if not copies:
        return "not there"
    return " and ".join(
        f"there {copy.copies} times, {'without an end' if copy.result is None else copy.result.name}" for copy in copies
    )


def _ends(log: Sequence[BatchDescriptor]) -> dict[int, _Stored]:
    """Returns the transactional batches of a log by CRC."""
    found: dict[int, _Stored] = {}
    undecided: dict[ProducerId, list[int]] = {}
    for batch in log:
        if batch.producer_id is None or not batch.is_transactional:
            continue
        if batch.marker is None:
            undecided.setdefault(batch.producer_id, []).append(batch.crc)
            before = found.get(batch.crc)
            found[batch.crc] = _Stored(None, 1 if before is None else before.copies + 1)
        else:
            for crc in undecided.pop(batch.producer_id, ()):
                found[crc] = found[crc]._replace(result=batch.marker.result)
    return found


def _open(log: Sequence[BatchDescriptor]) -> dict[ProducerId, Offset]:
    """Returns where transactions begin that have no end."""
    found: dict[ProducerId, Offset] = {}
    for batch in log:
        if batch.producer_id is not None and batch.is_transactional:
            if batch.marker is None:
                found.setdefault(batch.producer_id, batch.base_offset)
            else:
                found.pop(batch.producer_id, None)
    return found
