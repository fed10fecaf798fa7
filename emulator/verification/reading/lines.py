"""Reads every line of a run once: checks it against the vocabulary, takes stock of each file, and sorts it into facts.

Lines that are no events, or break the numbering, are counted in the ``FileCensus`` and ``HistoryCensus`` that
``doubts.evidence`` judges.

A controller that starts again may record its committed changes a second time: the first line about a metadata offset
counts, and one that contradicts it is noted.
"""

from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import Final

import msgspec
import numpy as np

from laststand.emulator.core import events as e
from laststand.emulator.core.history import (
    CommittedReadOperation,
    FinalReadOperation,
    GroupCommitOperation,
    GroupMemberOperation,
    GroupPositionOperation,
    GroupReadOperation,
    HistoryLine,
    HistorySealed,
    Operation,
    OperationType,
    PollOperation,
    SendOperation,
    SessionOperation,
    TransactionOperation,
)
from laststand.emulator.core.packed.reading import LineReader as UnpackedLines
from laststand.emulator.core.packed.reading import is_packed, whole_end
from laststand.emulator.verification.facts.run import RunFacts
from laststand.emulator.verification.reading.census import Envelope, FileCensus, HistoryCensus
from laststand.emulator.verification.reading.line_blocks import (
    EVENTS,
    HISTORY_LINES,
    DecodedEvents,
    check_numbers,
    decode_block,
    decode_events,
)
from laststand.emulator.verification.reading.packed_lines import PackedOperations, read_events, read_operations
from laststand.emulator.verification.tables.client_history import (
    Begin,
    BegunSend,
    EndedSend,
    poll,
    received_batch,
    sent_batch,
)
from laststand.emulator.verification.tables.columns import NONE, table_of
from laststand.emulator.verification.tables.event_lines import FREQUENT, LINES, Line
from laststand.emulator.verification.tables.timeline import CollectedEvent
from laststand.emulator.verification.tables.vocabulary import COMMITTED, EVENT_TYPES, tag

_SAMPLES_MAX: Final = 3

_ENVELOPE: Final = msgspec.json.Decoder(Envelope)
_KNOWN: Final = frozenset(tag(kind) for kind in EVENT_TYPES)
_RECORDS: Final = frozenset(COMMITTED)
_NO_BEGIN: Final = Begin(NONE, NONE)


class LineReader:
    """Reads the lines of one run into its facts.

    Attributes:
        files: the census of each event file.
        history: the census of the clients' histories together.
        contradictions: sentences about records that two controller processes report differently, with their offsets.
    """

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts
        self._committed: dict[tuple[type[e.Event], int, str, int], e.Event] = {}
        self.files: list[FileCensus] = []
        self.history = HistoryCensus()
        self.contradictions: list[tuple[int, str]] = []

    def read_events(self, name: str, blocks: Iterable[bytes]) -> None:
        """Reads an event file with that name, in blocks of complete lines; of a packed file these are segments."""
        self._read_blocks(name, blocks, self._read_packed if is_packed(name) else self._read_lines)

    def read_event_lines(self, name: str, lines: bytes) -> None:
        """Reads JSON lines of an event file with that name, packed or not."""
        self._read_blocks(name, [lines], self._read_lines)

    def _read_blocks(self, name: str, blocks: Iterable[bytes], read: Callable[[bytes, FileCensus], None]) -> None:
        census = FileCensus(file_name=name)
        self.files.append(census)
        for block in blocks:
            read(block, census)
        self._facts.cluster.event_files.update(dict.fromkeys(census.parts, name))

    def _read_packed(self, block: bytes, census: FileCensus) -> None:
        end = whole_end(block)
        try:
            packed = read_events(block[:end])
        except (ValueError, msgspec.MsgspecError):
            unpacked = UnpackedLines()
            for text in unpacked.lines(block):
                self._read_event(text + b"\n", census)
            if unpacked.rest:
                self._read_event(unpacked.rest, census)
            return
        census.add_run(*packed.writer, packed.lines)
        self._facts.rows.add_columns(packed.rows)
        self._add_decoded(packed.texts)
        if end < len(block):
            _add_corrupt(block[end:], census)

    def _read_lines(self, block: bytes, census: FileCensus) -> None:
        try:
            found = decode_events(block)
        except (msgspec.DecodeError, UnicodeDecodeError):
            for text in _lines(block):
                self._read_event(text, census)
            return
        census.add_all(found.lines)
        self._add_decoded(found)

    def _add_decoded(self, found: DecodedEvents) -> None:
        self._facts.rows.add_lines(found.lines)
        for line, event in zip(found.rare, found.events, strict=True):
            self._add_event(line, event)

    def _read_event(self, line: bytes, census: FileCensus) -> None:
        try:
            envelope = _ENVELOPE.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            _add_corrupt(line, census)
            return
        try:
            event = EVENTS.decode(line)
            check_numbers((envelope, event))
        except msgspec.ValidationError:
            census.add(envelope)
            (census.incomplete if envelope.type in _KNOWN else census.unknown_types).add(envelope.type)
            return
        census.add(envelope)
        if isinstance(event, FREQUENT):
            self._facts.rows.add_lines([LINES.decode(line)])
        else:
            self._add_event(envelope, event)

    def _add_event(self, envelope: Envelope | Line, event: e.AnyEvent) -> None:
        if type(event) not in _RECORDS or self._is_new(event):
            self._facts.add_event(
                CollectedEvent(
                    node=envelope.node,
                    incarnation=envelope.incarnation,
                    sequence=envelope.sequence,
                    time_ns=envelope.time_ns,
                    event=event,
                )
            )

    def read_history(self, name: str, blocks: Iterable[bytes]) -> None:
        """Reads a history file of that name, in blocks of whole lines."""
        self.history.seals[name] = None
        next_index = 0
        for block in blocks:
            packed = self._packed_operations(block, history=name) if is_packed(name) else None
            if packed is not None:
                self.history.is_gapless = self.history.is_gapless and packed.first == next_index
                next_index += packed.count
                self.history.seals[name] = packed.seal
                self.history.lines += packed.count
                self.history.last = packed.first + packed.count - len(packed.seals) - 1
                self._add_packed(packed)
                continue
            for line in self._history_lines(_unpacked(block) if is_packed(name) else block):
                self.history.is_gapless = self.history.is_gapless and line.index == next_index
                next_index += 1
                if isinstance(line, HistorySealed):
                    self.history.seals[name] = line
                    continue
                self.history.last = line.index
                self.history.seals[name] = None
                self._add_operation(line, history=name)

    def _packed_operations(self, block: bytes, *, history: str) -> PackedOperations | None:
        """Returns the operations of a segment; ``None`` if they have to be decoded line by line."""
        try:
            found = read_operations(block, history=history)
        except (ValueError, msgspec.MsgspecError):
            return None
        is_plain = found.seals == [] or (len(found.seals) == 1 and found.seal is not None and found.count > 1)
        return found if is_plain else None

    def _add_packed(self, found: PackedOperations) -> None:
        rows = self._facts.rows
        if found.begun is not None:
            for begun in table_of(BegunSend, found.begun):
                self.history.add_invocation(begun)
        if found.ended is not None and found.sent is not None:
            ended = list(table_of(EndedSend, found.ended))
            for send in ended:
                self.history.add_completion(send)
            begins = [self.history.invoked.get(send.operation_id, _NO_BEGIN) for send in ended]
            invoked, begun_ns = np.array(begins, np.int64).reshape(-1, 2).T
            found.sent.columns.update(invoked=invoked, begun_ns=begun_ns)
            rows.sent.append_columns(found.sent)
        if found.received is not None:
            rows.received.append_columns(found.received)
        for each in found.polls:
            self._facts.partition(each.topic, each.partition).polls.append(each)
        for read in found.final_reads:
            self._facts.partition(read.topic, read.partition).final_reads.append(read)

    def _history_lines(self, block: bytes) -> list[HistoryLine]:
        try:
            found = decode_block(HISTORY_LINES, block)
            self.history.lines += len(found)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = []
            for line in _lines(block):
                self.history.lines += 1
                try:
                    operation = HISTORY_LINES.decode(line)
                    check_numbers(operation)
                    found.append(operation)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    self.history.corrupt += 1
        return found

    def _add_operation(self, operation: Operation, *, history: str) -> None:
        rows = self._facts.rows
        match operation:
            case SessionOperation():
                self._facts.cluster.transactions.sessions.append(operation)
            case GroupPositionOperation():
                self._facts.cluster.group_positions.append(operation)
            case TransactionOperation():
                self._facts.cluster.transactions.operations[operation.operation_id] = operation
            case CommittedReadOperation():
                self._facts.cluster.transactions.reads.append(operation)
            case GroupMemberOperation():
                self._facts.cluster.memberships.lines.append(operation)
            case GroupReadOperation() if operation.member_id:
                self._facts.cluster.memberships.reads.append(operation)
            case GroupCommitOperation() if operation.member_id:
                self._facts.cluster.memberships.commits.append(operation)
            case GroupReadOperation():
                self._facts.cluster.transactions.group_reads.append(operation)
            case GroupCommitOperation():
                self._facts.cluster.transactions.group_commits.append(operation)
            case SendOperation(type=OperationType.INVOKE):
                self.history.add_invocation(operation)
            case SendOperation():
                self.history.add_completion(operation)
                begin = self.history.invoked.get(operation.operation_id)
                rows.sent.append(sent_batch(operation, history=history, begin=begin))
            case PollOperation():
                self._facts.partition(operation.topic, operation.partition).polls.append(poll(operation))
                rows.received.extend([received_batch(operation, batch) for batch in operation.batches])
            case FinalReadOperation():
                self._facts.partition(operation.topic, operation.partition).final_reads.append(operation)

    def _is_new(self, event: e.Event) -> bool:
        """Returns whether an event is the first that reports its metadata record."""
        offset = getattr(event, "metadata_offset", 0)
        # A transaction of ZooKeeper, all of one zxid, may write a node after others, and the same one twice.
        about = f"{event.write} {event.path}" if isinstance(event, e.ZnodeWritten) else getattr(event, "topic_id", "")
        key = (type(event), offset, about, getattr(event, "partition", 0))
        before = self._committed.setdefault(key, event)
        if before is event:
            return True
        if isinstance(event, e.PartitionChanged) and _state(event) != _state(before):
            sentence = (
                f"the controller noted two different changes of {event.topic}-{event.partition} "
                f"at metadata offset {offset}"
            )
            self.contradictions.append((offset, sentence))
            return True  # a later leader of the quorum may have lacked one of them
        return False


def _unpacked(block: bytes) -> bytes:
    reader = UnpackedLines()
    return b"".join([line + b"\n" for line in reader.lines(block)]) + reader.rest


def _lines(block: bytes) -> Iterator[bytes]:
    return iter(BytesIO(block))


def _add_corrupt(line: bytes, census: FileCensus) -> None:
    text = line.decode(errors="replace")
    if not line.endswith(b"\n"):
        census.torn = text
        return
    census.lines += 1
    census.corrupt += 1
    if len(census.samples) < _SAMPLES_MAX:
        census.samples.append(text.rstrip("\n"))


def _state(event: e.Event) -> tuple[object, ...]:
    names = ("leader", "leader_epoch", "partition_epoch", "replicas", "isr", "elr")
    return tuple(getattr(event, name, None) for name in names)
