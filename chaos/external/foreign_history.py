"""Converts foreign histories to Laststand's operations: each record is a batch, with the CRC of the value.

Nothing is guessed. If no operation says when a send began, all sends of its process begin at its first one. If the
format has no cause of a consumer's jump, the jump counts as the consumer's own (``seek``). Offsets without a known
record may be those of transaction markers, so a consumer may skip them. A last reader stands for the final log of a
partition: a process that read, after the last send, from the lowest known offset. Acknowledged records after its last
record count as lost only if the user states that it had read to the end. For lists that are read as a whole, see
``appended_lists``.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from laststand.chaos.external.appended_lists import LastRead, ListRead, last_reads
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.history import (
    UNKNOWN_PRODUCER,
    Attempt,
    FinalReadOperation,
    Operation,
    OperationType,
    PolledBatch,
    PollOperation,
    SendOperation,
)
from laststand.emulator.core.types import CauseId, LeaderEpoch, NodeId, Offset, TopicId, TopicPartition
from laststand.emulator.storage.record_batch import checksum

NODE: Final = NodeId(0)
"""Stands for all brokers: such histories do not say which one answered."""

_EPOCH: Final = LeaderEpoch(0)
_LAST_READER: Final = "last-reader"
_OUTCOMES: Final = {OperationType.OK: "NONE", OperationType.FAIL: "FAILED", OperationType.INFO: "UNKNOWN"}


class ForeignSend(NamedTuple):
    """The invocation of a send of one record, or its outcome.

    Attributes:
        type: of the operation.
        process: the producer.
        operation: pairs invocation and outcome.
        partition: the partition that it was sent to.
        value: of the record, as text.
        offset: its offset, if the history has it.
        acks: of the producer; -1 for all.
        time_ns: by the clock of its host.
        after_ns: time on that clock, after which the send began; ``None`` if not known.
        transaction: the transaction that it is part of, if it appends to a list.
    """

    type: OperationType
    process: str
    operation: str
    partition: TopicPartition
    value: str
    offset: int | None = None
    acks: int = -1
    time_ns: int = 0
    after_ns: int | None = None
    transaction: int | None = None


class ForeignPoll(NamedTuple):
    """Records of one partition that a consumer got.

    Attributes:
        process: the consumer.
        partition: the partition that it was read from.
        records: offsets and values, in the order of the poll.
        is_seek: whether the consumer jumped to this offset.
        time_ns: by the clock of its host.
    """

    process: str
    partition: TopicPartition
    records: tuple[tuple[int, str], ...]
    is_seek: bool = False
    time_ns: int = 0


class ForeignEnd(NamedTuple):
    """The last reader of a partition reached its end, which is ``end_offset``."""

    partition: TopicPartition
    end_offset: int


ForeignOperation: TypeAlias = ForeignSend | ForeignPoll | ListRead | ForeignEnd


class ConvertedHistory(NamedTuple):
    """A history in Laststand's form.

    Attributes:
        operations: the history's operations.
        has_ends: whether the end of every partition that has a last reader is known.
        problem: an anomaly that no check judges; ``None`` if there is none.
    """

    operations: list[Operation]
    has_ends: bool
    problem: str | None


def converted(history: Sequence[ForeignOperation], *, is_ordered: bool) -> ConvertedHistory:
    """Returns a history in Laststand's form.

    Args:
        history: the foreign history.
        is_ordered: whether operations of all processes are ordered by time. Otherwise each send may have begun before
            everything else, and no read is known to come after the last send.

    Raises:
        ConfigError: an outcome belongs to no invocation.
    """
    finals = _Finals(history if is_ordered else ())
    conversion = _Conversion(history, finals)
    operations = list(conversion.operations(is_ordered=is_ordered))
    operations += finals.reads(conversion.positions)
    numbered = [msgspec.structs.replace(operation, index=index) for index, operation in enumerate(operations)]
    return ConvertedHistory(numbered, is_ordered and finals.has_ends, _moved_in_a_transaction(history, finals.lists))


def _moved_in_a_transaction(
    history: Sequence[ForeignOperation], lists: Mapping[TopicPartition, LastRead]
) -> str | None:
    """Describes elements of one transaction that a list has in another order than they were appended in.

    D14 does not find them: it orders sends by acknowledgements, and all appends of a transaction share one.
    """
    before: dict[tuple[TopicPartition, int], tuple[str, int]] = {}
    for each in history:
        if not isinstance(each, ForeignSend) or each.transaction is None or each.type is not OperationType.OK:
            continue
        offset = lists[each.partition].offset(each.value) if each.partition in lists else None
        if offset is None:
            continue
        key = each.partition, each.transaction
        other, reached = before.get(key, (each.value, -1))
        if offset < reached:
            return (
                f"{each.partition} has {each.value} before {other}, which the same transaction appended first; "
                "no check judges the order within a transaction"
            )
        before[key] = each.value, offset
    return None


class _Reader(NamedTuple):
    places: tuple[int, ...]
    record_count: int
    end: int
    has_jumped: bool


class _Finals:
    """Finds the last reader of each partition."""

    def __init__(self, history: Sequence[ForeignOperation]) -> None:
        self.lists = last_reads(history)
        self._said: dict[TopicPartition, int] = {}
        lowest: dict[TopicPartition, int] = {}
        last_send: dict[TopicPartition, int] = {}
        for place, each in enumerate(history):
            match each:
                case ForeignSend(offset=offset):
                    last_send[each.partition] = place
                    if offset is not None:
                        lowest[each.partition] = min(offset, lowest.get(each.partition, offset))
                case ForeignPoll():
                    for offset, _ in each.records:
                        lowest[each.partition] = min(offset, lowest.get(each.partition, offset))
                case ForeignEnd():
                    self._said[each.partition] = each.end_offset
                case ListRead():
                    pass
        readers: dict[tuple[TopicPartition, str], _Reader] = {}
        for place, each in enumerate(history):
            if not isinstance(each, ForeignPoll) or not each.records or place <= last_send.get(each.partition, -1):
                continue
            key = (each.partition, each.process)
            first, after = each.records[0][0], each.records[-1][0] + 1
            if key in readers:
                known = readers[key]
                has_jumped = known.has_jumped or (each.is_seek and first > known.end)
                places, record_count = (*known.places, place), known.record_count + len(each.records)
                readers[key] = _Reader(places, record_count, max(known.end, after), has_jumped)
            elif first <= lowest[each.partition]:
                readers[key] = _Reader((place,), len(each.records), after, has_jumped=False)
        found: dict[TopicPartition, _Reader] = {}
        for (partition, _), reader in readers.items():
            if not reader.has_jumped and (
                partition not in found or reader.record_count > found[partition].record_count
            ):
                found[partition] = reader
        self.polls = {place for reader in found.values() for place in reader.places}
        self.polls |= {read.ended for read in self.lists.values()}
        self._spans = {partition: (lowest[partition], reader.end) for partition, reader in found.items()}

    @property
    def has_ends(self) -> bool:
        """The end of every partition that has a last reader is known."""
        return self._spans.keys() <= self._said.keys()

    def reads(self, positions: Mapping[int, int]) -> Iterator[FinalReadOperation]:
        """Yields the final reads: the offsets that the last readers passed.

        Args:
            positions: in the converted history, by the positions in the foreign one.
        """
        spans = {
            partition: (start, max(end, self._said.get(partition, end)), None)
            for partition, (start, end) in self._spans.items()
        }
        lists = {partition: (0, len(read.elements), positions[read.begun]) for partition, read in self.lists.items()}
        for partition, (start, end, begun) in sorted([*spans.items(), *lists.items()]):
            yield FinalReadOperation(
                index=0,
                time_ns=0,
                type=OperationType.OK,
                process=_LAST_READER,
                operation_id=CauseId(f"{_LAST_READER}-{partition}"),
                topic=partition.topic,
                topic_id=TopicId(partition.topic),
                partition=partition.partition,
                start_offset=Offset(start),
                end_offset=Offset(end),
                begun=begun,
            )


class _Conversion:
    """Converts a history.

    Attributes:
        positions: in the converted history, of the places at which reads of lists began.
    """

    def __init__(self, history: Sequence[ForeignOperation], finals: _Finals) -> None:
        self._history = history
        self._finals = finals
        self._position = 0
        self.positions: dict[int, int] = {}
        self._counts: dict[str, int] = defaultdict(int)
        self._begun: dict[str, tuple[SendOperation, ForeignSend]] = {}
        self._sender: dict[tuple[TopicPartition, str], tuple[str, int]] = {}
        self._next: dict[tuple[str, TopicPartition], int] = {}

        self._known: set[tuple[TopicPartition, int]] = set()
        for each in history:
            if isinstance(each, ForeignPoll):
                self._known.update((each.partition, offset) for offset, _ in each.records)
            elif isinstance(each, ForeignSend) and each.offset is not None:
                self._known.add((each.partition, each.offset))

    def operations(self, *, is_ordered: bool) -> Iterator[Operation]:
        """Yields the operations; where their order is not known, all sends begin first."""
        for operation in self._operations(is_ordered=is_ordered):
            self._position += 1
            yield operation

    def _operations(self, *, is_ordered: bool) -> Iterator[Operation]:
        unbegun = self._unbegun()
        if not is_ordered:
            for each in self._history:
                if isinstance(each, ForeignSend) and each.type is OperationType.INVOKE:
                    yield self._begin(each)
            for send in itertools.chain.from_iterable(unbegun.values()):
                yield self._begin(send)
            unbegun.clear()
        for place, each in enumerate(self._history):
            match each:
                case ForeignSend(type=OperationType.INVOKE):
                    if is_ordered:
                        yield self._begin(each)
                case ForeignSend():
                    for send in unbegun.pop(each.process, ()):
                        yield self._begin(send)
                    yield self._end(each)
                case ForeignPoll():
                    yield from self._polls(each, place)
                case ListRead(elements=None):
                    self.positions[place] = self._position
                case ListRead(elements=tuple() as elements):
                    poll = ForeignPoll(each.process, each.partition, tuple(enumerate(elements)), time_ns=each.time_ns)
                    yield self._poll(poll, place, poll.records, is_seek=True)
                case _:
                    pass

    def _unbegun(self) -> dict[str, list[ForeignSend]]:
        """Returns the outcomes without invocation, by process; a process has invocations for all its sends or none."""
        sends = [each for each in self._history if isinstance(each, ForeignSend)]
        invoked = {each.operation for each in sends if each.type is OperationType.INVOKE}
        invoking = {each.process for each in sends if each.type is OperationType.INVOKE}
        found: dict[str, list[ForeignSend]] = defaultdict(list)
        for each in sends:
            if each.operation in invoked:
                continue
            if each.process in invoking:
                raise ConfigError(key="history", value=each.operation, expected="an invocation for each outcome")
            found[each.process].append(each)
        return found

    def _begin(self, send: ForeignSend) -> SendOperation:
        number = self._counts[send.process]
        self._counts[send.process] += 1
        line = SendOperation(
            index=0,
            time_ns=send.time_ns,
            type=OperationType.INVOKE,
            process=send.process,
            operation_id=CauseId(send.operation),
            topic=send.partition.topic,
            topic_id=TopicId(send.partition.topic),
            partition=send.partition.partition,
            acks=send.acks,
            first_record_id=number,
            record_count=1,
            attempts=(_attempt(send.value, "UNKNOWN"),),
        )
        self._begun[send.operation] = line, send
        self._sender.setdefault((send.partition, send.value), (send.process, number))
        return line

    def _end(self, send: ForeignSend) -> SendOperation:
        if send.operation not in self._begun:
            raise ConfigError(key="history", value=send.operation, expected="one outcome for each invocation")
        begun, asked = self._begun.pop(send.operation)
        is_acked = send.type is OperationType.OK
        last_read = self._finals.lists.get(send.partition)
        offset = send.offset if last_read is None else last_read.offset(send.value)
        return SendOperation(
            index=0,
            time_ns=send.time_ns,
            type=send.type,
            process=begun.process,
            operation_id=begun.operation_id,
            topic=begun.topic,
            topic_id=begun.topic_id,
            partition=begun.partition,
            acks=begun.acks,
            first_record_id=begun.first_record_id,
            record_count=1,
            base_offset=Offset(offset) if is_acked and offset is not None else None,
            attempts=(_attempt(asked.value, _OUTCOMES[send.type]),),
            error=None if is_acked else _OUTCOMES[send.type],
        )

    def _polls(self, poll: ForeignPoll, place: int) -> Iterator[PollOperation]:
        """Yields an operation for each sequence of consecutive records."""
        reader = (poll.process, poll.partition)
        run: list[tuple[int, str]] = []
        is_seek = poll.is_seek or reader not in self._next
        for offset, value in poll.records:
            expected = self._next.get(reader, offset)
            if run and offset != expected:
                yield self._poll(poll, place, run, is_seek=is_seek)
                run, is_seek = [], False
            if not run:
                is_seek = is_seek or self._is_unknown(poll.partition, expected, offset)
            run.append((offset, value))
            self._next[reader] = offset + 1
        if run:
            yield self._poll(poll, place, run, is_seek=is_seek)

    def _is_unknown(self, partition: TopicPartition, start: int, end: int) -> bool:
        """Returns whether a gap has only offsets at which no record is known."""
        return start < end and not any((partition, offset) in self._known for offset in range(start, end))

    def _poll(
        self, poll: ForeignPoll, place: int, records: Sequence[tuple[int, str]], *, is_seek: bool
    ) -> PollOperation:
        return PollOperation(
            index=0,
            time_ns=poll.time_ns,
            type=OperationType.OK,
            process=poll.process,
            operation_id=CauseId(f"{poll.process}-{place}"),
            phase="final" if place in self._finals.polls else "live",
            topic=poll.partition.topic,
            topic_id=TopicId(poll.partition.topic),
            partition=poll.partition.partition,
            node=NODE,
            position=Offset(records[0][0] if records else 0),
            seek=is_seek,
            high_watermark=None,
            log_start_offset=None,
            batches=tuple(self._batch(poll.partition, offset, value) for offset, value in records),
        )

    def _batch(self, partition: TopicPartition, offset: int, value: str) -> PolledBatch:
        producer, number = self._sender.get((partition, value), (UNKNOWN_PRODUCER, 0))
        return PolledBatch(
            base_offset=Offset(offset),
            last_offset=Offset(offset),
            leader_epoch=_EPOCH,
            crc=checksum(value.encode()),
            producer=producer,
            first_record_id=number,
            record_count=1,
        )


def _attempt(value: str, outcome: str) -> Attempt:
    return Attempt(
        node=NODE,
        leader_epoch=None,
        producer_id=None,
        producer_epoch=None,
        base_sequence=None,
        crc=checksum(value.encode()),
        outcome=outcome,
    )
