"""Checks of transactions, by responses to clients and by the logs of the last leaders: X1-X10.

A transaction is known from its producer's history: the batches that it sent, and the outcome that the coordinator
answered. In a log, the next marker of the producer decides each batch. Coordinators' own events and state do not count.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from laststand.emulator.core.batch import BatchDescriptor, TransactionResult
from laststand.emulator.core.client import steps
from laststand.emulator.core.history import OperationType, PolledBatch
from laststand.emulator.core.topic_names import INTERNAL_TOPICS
from laststand.emulator.core.types import CauseId, Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.finding import Guarantee
from laststand.emulator.simulator.oracle.group_positions import GroupPositions
from laststand.emulator.simulator.oracle.groups import GroupChecks
from laststand.emulator.simulator.oracle.truth import PartitionTruth, deleted_below


class _Stored(NamedTuple):
    """A batch in the last leader's log: the outcome of its transaction (``None`` if open), and its number of copies.

    ``end_epoch`` is the producer epoch in the marker that ends the transaction, and ``end_offset`` where that is.
    """

    result: TransactionResult | None
    copies: int
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_offset: Offset
    end_epoch: ProducerEpoch | None = None
    end_offset: Offset | None = None


class _Session(NamedTuple):
    """A session of a transactional producer, and when it began."""

    record: steps.SessionRecorded
    moment: int


class TransactionChecks:
    """Checks of one run's transactions."""

    def __init__(
        self, alarm_log: AlarmLog, truths: Mapping[TopicPartition, PartitionTruth], positions: GroupPositions
    ) -> None:
        self._alarm_log = alarm_log
        self._truths = truths
        self._transactions: dict[CauseId, steps.TransactionRecorded] = {}
        self._sends: dict[CauseId, steps.SendRecorded] = {}
        self._sessions: list[_Session] = []
        self._begun_at: dict[CauseId, int] = {}
        self._ended_at: dict[CauseId, int] = {}
        self._reads: list[tuple[str, steps.CommittedReadRecorded]] = []
        self._reads_of_groups: list[tuple[str, steps.GroupReadRecorded]] = []
        self._given_first_at: dict[int, tuple[int, str]] = {}
        self._positions: dict[tuple[str, TopicPartition, TopicId | None], Offset] = {}
        self._group_positions = positions
        self._groups = GroupChecks(self._report, truths, positions)

    def forget(self, name: TopicPartition) -> None:
        """Notes that a partition was deleted; a later one of the same name starts without records."""
        self._groups.forget(name)
        self._group_positions.forget(name)
        for operation_id in [each for each, send in self._sends.items() if send.partition == name]:
            del self._sends[operation_id]
        for key in [key for key in self._positions if key[1] == name]:
            del self._positions[key]

    # --- Answers to clients ---------------------------------------------------------------------------------------

    def transacted(self, client: str, record: steps.TransactionRecorded) -> None:
        """A transaction began or ended."""
        self._transactions[record.operation_id] = record
        self._group_positions.transacted(client, record)

    def session_begun(self, record: steps.SessionRecorded) -> None:
        """Notes that a transactional producer was given an identity."""
        self._sessions.append(_Session(record, self._alarm_log.moment))

    def sent(self, record: steps.SendRecorded) -> None:
        """A batch of a transaction is sent, or has its outcome."""
        if record.type is OperationType.INVOKE:
            self._begun_at[record.operation_id] = self._alarm_log.moment
        else:
            self._sends[record.operation_id] = record
            self._ended_at[record.operation_id] = self._alarm_log.moment

    def acked(self, record: steps.SendRecorded) -> None:
        """A batch of any producer was acknowledged."""
        self._groups.acked(record)

    def read_for_group(self, client: str, record: steps.GroupReadRecorded) -> None:
        """An operation, or a member, read for a group."""
        reader = client if record.member_id else record.group_id
        self._given(reader, record.batches)
        self._reads_of_groups.append((reader, record))
        if record.member_id:
            self._groups.read_by_member(record)
        else:
            self._groups.read(client, record, undone=self._sends_without(self._acknowledged()))
        self._group_positions.read(client, record)

    def position_committed(self, client: str, record: steps.GroupCommitRecorded) -> None:
        """A commit of a group's position was sent or answered."""
        is_in_transaction = record.operation_id in self._transactions
        self._group_positions.committed(client, record, is_in_transaction=is_in_transaction)
        self._groups.committed(record)

    def read(self, client: str, record: steps.CommittedReadRecorded) -> None:
        """A read_committed consumer received records: X10 on its position before."""
        key = (client, record.partition, record.topic_id)
        expected = self._positions.get(key)
        if expected is not None and not record.seek and record.position != expected:
            sentence = f"{client} went from {expected} to {record.position} of {record.partition}"
            self._report("X10", record.partition, sentence)
        self._positions[key] = record.next_position
        self._reads.append((client, record))
        self._given(client, record.batches)

    def _given(self, reader: str, batches: Sequence[PolledBatch]) -> None:
        for batch in batches:
            self._given_first_at.setdefault(batch.crc, (self._alarm_log.moment, reader))

    # --- When all is over -----------------------------------------------------------------------------------------

    def check(self, logs: Mapping[TopicPartition, Sequence[BatchDescriptor]]) -> None:
        """X1-X6, X10, R3, R5 by the logs of the last leaders; a partition without a leader is left out."""
        for name, log in logs.items():
            self._check_epochs(name, log)
        stored = {name: _ends(log) for name, log in logs.items()}
        aborted: dict[int, CauseId] = {}
        committed = self._acknowledged()
        for operation_id, transaction in self._transactions.items():
            ends = self._check_ends(transaction, stored)
            if TransactionResult.COMMIT in ends:
                committed.add(operation_id)
            is_aborted = transaction.type is OperationType.FAIL or (
                transaction.type is OperationType.OK and transaction.result is TransactionResult.ABORT
            )
            if is_aborted or TransactionResult.ABORT in ends:
                for send in self._sends_of(transaction):
                    aborted.update({attempt.crc: operation_id for attempt in send.attempts})
        self._check_reads(aborted, stored)
        self._check_bounds(stored)
        for transaction in self._transactions.values():
            self._check_early_reads(transaction)
            self._check_answered_end(transaction, stored)
            self._check_fences(transaction, stored)
        undone = self._sends_without(committed)
        self._groups.check(committed, undone=undone, transactions=self._transactions.keys())

    def _acknowledged(self) -> set[CauseId]:
        """Returns the transactions whose commit was acknowledged to the producer."""
        return {name for name, transaction in self._transactions.items() if _is_committed(transaction)}

    def _sends_without(self, committed: Set[CauseId]) -> set[CauseId]:
        """Returns the sends of all transactions but these."""
        return {
            send
            for name, transaction in self._transactions.items()
            if name not in committed
            for send in transaction.sends
        }

    def _sends_of(self, transaction: steps.TransactionRecorded) -> list[steps.SendRecorded]:
        return [self._sends[each] for each in transaction.sends if each in self._sends]

    def _check_ends(
        self, transaction: steps.TransactionRecorded, stored: Mapping[TopicPartition, Mapping[int, _Stored]]
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
                if (send.base_offset or 0) < deleted_below(self._truths, "X3", send.partition) and not copies:
                    continue
                is_there = [copy for copy in copies if copy.result is TransactionResult.COMMIT and copy.copies == 1]
                if len(is_there) != 1:
                    origin = f"{send.operation_id} of {name}, which was committed"
                    self._report("X3", send.partition, f"{send.partition}: {origin}, is {_fate(copies)}")
        if len(ends) > 1:
            places = " and ".join(
                f"{result.name} in {ends[result]}" for result in sorted(ends, key=lambda each: each.name)
            )
            self._report("X2", next(iter(ends.values())), f"{name} has {places}")
        return set(ends)

    def _check_epochs(self, name: TopicPartition, log: Sequence[BatchDescriptor]) -> None:
        """R3, R5."""
        producer_epochs: dict[ProducerId, int] = {}
        coordinator_epochs: dict[ProducerId, int] = {}
        for batch in log:
            if batch.producer_id is None:
                continue
            where = f"{name} {batch.base_offset} of producer {batch.producer_id}"
            before = producer_epochs.get(batch.producer_id, -1)
            if batch.producer_epoch < before:
                self._alarm_log.report("R5", name, f"{where} has epoch {batch.producer_epoch} behind epoch {before}")
            producer_epochs[batch.producer_id] = batch.producer_epoch
            if batch.marker is not None:
                epoch, before = batch.marker.coordinator_epoch, coordinator_epochs.get(batch.producer_id, -1)
                if epoch < before:
                    self._alarm_log.report("R3", name, f"{where} has coordinator epoch {epoch} behind {before}")
                coordinator_epochs[batch.producer_id] = epoch

    def _check_early_reads(self, transaction: steps.TransactionRecorded) -> None:
        """X4."""
        sends = self._sends_of(transaction)
        last = max((self._ended_at[send.operation_id] for send in sends), default=0)
        for send in sends:
            for attempt in send.attempts:
                moment, reader = self._given_first_at.get(attempt.crc, (last, ""))
                if moment < last:
                    name = transaction.operation_id
                    sentence = f"{reader} was given {send.operation_id} of {send.partition} while {name} was written"
                    self._report("X4", send.partition, sentence)

    def _check_bounds(self, stored: Mapping[TopicPartition, Mapping[int, _Stored]]) -> None:
        """Checks X4 by the last stable offsets that readers got.

        A batch below the last stable offset is of a transaction that is over, and its end is committed by then.
        """
        told: dict[tuple[TopicPartition, TopicId | None], list[tuple[Offset, Offset]]] = {}
        for _, read in self._reads:
            if read.high_watermark is not None:
                stable = read.high_watermark if read.last_stable_offset is None else read.last_stable_offset
                told.setdefault((read.partition, read.topic_id), []).append((stable, read.high_watermark))
        for transaction in self._transactions.values():
            for send in self._sends_of(transaction):
                bounds = told.get((send.partition, send.topic_id), ())
                copies = stored.get(send.partition, {})
                for copy in (copies[each.crc] for each in send.attempts if each.crc in copies):
                    ended = copy.end_offset if copy.result is TransactionResult.ABORT else None
                    if ended is not None and any(copy.base_offset < each and end <= ended for each, end in bounds):
                        where = f"{copy.base_offset} of {send.partition}, of {transaction.operation_id}"
                        sentence = (
                            f"readers were told that {where}, is stable, and it was aborted at {ended} afterwards"
                        )
                        self._report("X4", send.partition, sentence)

    def _check_answered_end(
        self, transaction: steps.TransactionRecorded, stored: Mapping[TopicPartition, Mapping[int, _Stored]]
    ) -> None:
        """X5 as the run directory shows it; ``open_transactions`` also finds transactions without an answered end."""
        for send in self._sends_of(transaction) if transaction.type is OperationType.OK else ():
            copies = stored.get(send.partition, {})
            if any(attempt.crc in copies and copies[attempt.crc].result is None for attempt in send.attempts):
                answer = f"was told of its {transaction.result.name.lower()}"
                sentence = f"{send.operation_id} of {send.partition} has no end, though its producer {answer}"
                self._report("X5", send.partition, sentence)

    def _check_fences(
        self, transaction: steps.TransactionRecorded, stored: Mapping[TopicPartition, Mapping[int, _Stored]]
    ) -> None:
        """X6."""
        for send in self._sends_of(transaction):
            copies = stored.get(send.partition, {})
            for crc in {attempt.crc for attempt in send.attempts} & copies.keys():
                fence = self._fence(transaction, self._begun_at.get(send.operation_id, 0), copies[crc])
                if fence is not None and copies[crc].result is TransactionResult.COMMIT:
                    sent = f"{send.operation_id} of {send.partition}, of producer {copies[crc].producer_id} in epoch"
                    by = f"by epoch {fence.producer_epoch} of {fence.producer_id}"
                    sentence = f"{sent} {copies[crc].producer_epoch}, is committed, and was fenced {by}"
                    self._report("X6", send.partition, sentence)

    def _fence(
        self, transaction: steps.TransactionRecorded, begun_at: int, copy: _Stored
    ) -> steps.SessionRecorded | None:
        """Returns a session that fences a batch's producer, and that began before the batch or aborted it."""
        has_begun = False
        found: steps.SessionRecorded | None = None
        for record, moment in self._sessions:
            if record.transactional_id != transaction.transactional_id:
                continue
            if record.producer_id == copy.producer_id and record.producer_epoch <= copy.producer_epoch:
                has_begun, found = True, None
            elif has_begun and found is None:
                has_ended_it = (
                    record.producer_id == copy.producer_id
                    and copy.end_epoch is not None
                    and record.producer_epoch <= copy.end_epoch
                )
                found = record if moment < begun_at or has_ended_it else None
        return found

    def _check_reads(
        self, aborted: Mapping[int, CauseId], stored: Mapping[TopicPartition, Mapping[int, _Stored]]
    ) -> None:
        given: dict[TopicPartition, set[int]] = {}
        for _, committed_read in self._reads:
            crcs = [batch.crc for batch in committed_read.batches]
            given.setdefault(committed_read.partition, set()).update(crcs)
        reads: list[tuple[str, steps.CommittedReadRecorded | steps.GroupReadRecorded]]
        reads = [*self._reads, *self._reads_of_groups]
        for client, read in reads:
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
        self, name: TopicPartition, send: steps.SendRecorded, ends: Mapping[int, _Stored], given: set[int]
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
        """Yields X5 for each open transaction."""
        if self._transactions:
            for name, log in logs.items():
                for producer_id, first_offset in _open(log).items():
                    yield "X5", name, f"{name}: a transaction of producer {producer_id} is open since {first_offset}"

    def guarantee(self, name: TopicPartition) -> Guarantee:
        """Returns whether a promise about a transaction had to hold: for its records and for internal topics."""
        about = [each for each in self._truths if each == name or each.topic in INTERNAL_TOPICS]
        moment = self._alarm_log.moment
        held = all(self._truths[each].ledger.held(0, moment) for each in about)
        return Guarantee.HOLDS if held else Guarantee.EXCEEDED

    def _report(self, check_id: str, name: TopicPartition, sentence: str) -> None:
        self._alarm_log.report(check_id, name, sentence, guarantee=self.guarantee(name))


def _is_committed(transaction: steps.TransactionRecorded) -> bool:
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
            copies = found[batch.crc].copies + 1 if batch.crc in found else 1
            found[batch.crc] = _Stored(None, copies, batch.producer_id, batch.producer_epoch, batch.base_offset)
        else:
            for crc in undecided.pop(batch.producer_id, ()):
                found[crc] = found[crc]._replace(
                    result=batch.marker.result, end_epoch=batch.producer_epoch, end_offset=batch.base_offset
                )
    return found


def _open(log: Sequence[BatchDescriptor]) -> dict[ProducerId, Offset]:
    """Returns the first offset of each open transaction, by producer id."""
    found: dict[ProducerId, Offset] = {}
    for batch in log:
        if batch.producer_id is not None and batch.is_transactional:
            if batch.marker is None:
                found.setdefault(batch.producer_id, batch.base_offset)
            else:
                found.pop(batch.producer_id, None)
    return found
