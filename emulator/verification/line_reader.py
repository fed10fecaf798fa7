"""Reads every line of a run once: checks it against the vocabulary, takes stock of each file, and sorts it into facts.

What is no event, or breaks the numbering, ends up in the ``FileCensus`` and ``HistoryCensus`` that ``evidence`` judges.

A controller that starts again may write down once more what it had committed before: the first line about a metadata
offset counts, and one that contradicts it is noted.
"""

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Final, TypeVar

import msgspec
import numpy as np

from emulator.core import events as e
from emulator.core.history import (
    FinalReadOperation,
    HistoryLine,
    HistorySealed,
    Operation,
    OperationType,
    PollOperation,
    SendOperation,
)
from emulator.verification.census import Envelope, FileCensus, HistoryCensus
from emulator.verification.client_history import poll, received_batch, sent_batch
from emulator.verification.event_lines import FREQUENT, FREQUENT_LINES, LINES, Line
from emulator.verification.run_facts import RunFacts
from emulator.verification.timeline import CollectedEvent
from emulator.verification.vocabulary import COMMITTED, EVENT_TYPES, tag

_Line = TypeVar("_Line")

_SAMPLES_MAX: Final = 3
_LINE_END, _VALUE_BEGIN, _VALUE_END = b"\n{}"

_ENVELOPE: Final = msgspec.json.Decoder(Envelope)
_EVENT: Final[msgspec.json.Decoder[e.AnyEvent]] = msgspec.json.Decoder(e.AnyEvent)
HISTORY_LINES: Final[msgspec.json.Decoder[HistoryLine]] = msgspec.json.Decoder(HistoryLine)
_KNOWN: Final = frozenset(tag(kind) for kind in EVENT_TYPES)
_RECORDS: Final = frozenset(COMMITTED)
_64_BITS: Final = msgspec.msgpack.Encoder()
"""Has no form for longer numbers."""
_SCRATCH: Final = bytearray()


class LineReader:
    """Reads the lines of one run into its facts.

    Attributes:
        files: what each event file was found to be.
        history: the same of the clients' histories together.
        contradictions: what controller processes said of one record, where they disagree.
    """

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts
        self._committed: dict[tuple[type[e.Event], int, str, int], e.Event] = {}
        self.files: list[FileCensus] = []
        self.history = HistoryCensus()
        self.contradictions: list[str] = []

    def read_events(self, name: str, blocks: Iterable[bytes]) -> None:
        """Reads an event file of that name, in blocks of whole lines."""
        census = FileCensus(file_name=name)
        self.files.append(census)
        for block in blocks:
            try:
                lines = decode_block(LINES, block)
                rare, texts = rare_lines(lines, block)
                events = decode_block(_EVENT, b"\n".join(texts))
            except (msgspec.DecodeError, UnicodeDecodeError):
                for text in _lines(block):
                    self._read_event(text, census)
                continue
            census.add_all(lines)
            self._facts.rows.add_lines(lines)
            for line, event in zip(rare, events, strict=True):
                self._add_event(line, event)
        self._facts.cluster.event_files.update(dict.fromkeys(census.parts, name))

    def _read_event(self, line: bytes, census: FileCensus) -> None:
        try:
            envelope = _ENVELOPE.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            _add_corrupt(line, census)
            return
        try:
            event = _EVENT.decode(line)
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
            for line in self._history_lines(block):
                self.history.is_gapless = self.history.is_gapless and line.index == next_index
                next_index += 1
                if isinstance(line, HistorySealed):
                    self.history.seals[name] = line
                    continue
                self.history.last = line.index
                self.history.seals[name] = None
                self._add_operation(line, history=name)

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
        facts, rows = self._facts.partition(operation.topic, operation.partition), self._facts.rows
        match operation:
            case SendOperation(type=OperationType.INVOKE):
                self.history.add_invocation(operation)
            case SendOperation():
                self.history.add_completion(operation)
                invoked = self.history.invoked.get(operation.operation_id)
                rows.sent.append(sent_batch(operation, history=history, invoked=invoked))
            case PollOperation():
                facts.polls.append(poll(operation))
                rows.received.extend([received_batch(operation, batch) for batch in operation.batches])
            case FinalReadOperation():
                facts.final_reads.append(operation)

    def _is_new(self, event: e.Event) -> bool:
        """Whether no line came before about the record that an event tells of."""
        offset = getattr(event, "metadata_offset", 0)
        key = (type(event), offset, getattr(event, "topic_id", ""), getattr(event, "partition", 0))
        before = self._committed.setdefault(key, event)
        if before is event:
            return True
        if isinstance(event, e.PartitionChanged) and _state(event) != _state(before):
            self.contradictions.append(
                f"the controller noted two different changes of {event.topic}-{event.partition} "
                f"at metadata offset {offset}"
            )
        return False


def rare_lines(lines: Sequence[Line], block: bytes) -> tuple[list[Line], list[bytes]]:
    """Returns those lines of a block that are not of a frequent kind, and their text."""
    places = [place for place, line in enumerate(lines) if type(line) not in FREQUENT_LINES]
    texts = block.split(b"\n") if places else []
    return [lines[place] for place in places], [texts[place] for place in places]


def decode_block(decoder: "msgspec.json.Decoder[_Line]", block: bytes) -> list[_Line]:
    """Decodes a block of lines at once, which costs half of line by line.

    Raises:
        msgspec.DecodeError: a line is not what it should be, or a value is not one line.
        UnicodeDecodeError: a line is no text.
    """
    if not block:
        return []
    decoded = decoder.decode_lines(block)
    # The decoder skips empty lines, and takes several values on a line or one on several.
    text = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(text[:-1] == _LINE_END)
    between_values = (text[ends - 1] == _VALUE_END) & (text[ends + 1] == _VALUE_BEGIN)
    if len(decoded) != len(ends) + 1 or not np.all(between_values):
        raise msgspec.DecodeError("lines and values do not pair up")
    check_numbers(decoded)
    return decoded


def check_numbers(values: object) -> None:
    """Checks that all numbers have 64 bits at most: nobody writes others, and tables could not hold them.

    Raises:
        msgspec.ValidationError: one has more.
    """
    try:
        _64_BITS.encode_into(values, _SCRATCH)
    except OverflowError as error:
        raise msgspec.ValidationError(str(error)) from error


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
