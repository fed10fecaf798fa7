"""Reads every line of a run once: checks it against the vocabulary, takes stock of each file, and sorts it into facts.

What is no event, or breaks the numbering, ends up in the ``FileCensus`` and ``HistoryCensus`` that ``evidence`` judges.

A controller that starts again may write down once more what it had committed before: the first line about a metadata
offset counts, and one that contradicts it is noted.
"""

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Final, TypeVar

import msgspec

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
from emulator.verification.run_facts import RunFacts
from emulator.verification.timeline import CollectedEvent
from emulator.verification.vocabulary import COMMITTED, EVENT_TYPES, tag

_Line = TypeVar("_Line")

_SAMPLES_MAX: Final = 3

_ENVELOPE: Final = msgspec.json.Decoder(Envelope)
_EVENT: Final[msgspec.json.Decoder[e.AnyEvent]] = msgspec.json.Decoder(e.AnyEvent)
_HISTORY: Final[msgspec.json.Decoder[HistoryLine]] = msgspec.json.Decoder(HistoryLine)
_KNOWN: Final = frozenset(tag(kind) for kind in EVENT_TYPES)
_RECORDS: Final = frozenset(COMMITTED)


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
                envelopes, events = decode_block(_ENVELOPE, block), decode_block(_EVENT, block)
            except (msgspec.DecodeError, UnicodeDecodeError):
                for line in _lines(block):
                    self._read_event(line, census)
                continue
            for envelope, event in zip(envelopes, events, strict=True):
                self._add_event(envelope, event, census)

    def _read_event(self, line: bytes, census: FileCensus) -> None:
        try:
            envelope = _ENVELOPE.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            _add_corrupt(line, census)
            return
        try:
            event = _EVENT.decode(line)
        except msgspec.ValidationError:
            census.add(envelope)
            (census.incomplete if envelope.type in _KNOWN else census.unknown_types).add(envelope.type)
            return
        self._add_event(envelope, event, census)

    def _add_event(self, envelope: Envelope, event: e.AnyEvent, census: FileCensus) -> None:
        census.add(envelope)
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
            found = decode_block(_HISTORY, block)
            self.history.lines += len(found)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = []
            for line in _lines(block):
                self.history.lines += 1
                try:
                    found.append(_HISTORY.decode(line))
                except (msgspec.DecodeError, UnicodeDecodeError):
                    self.history.corrupt += 1
        return found

    def _add_operation(self, operation: Operation, *, history: str) -> None:
        facts = self._facts.partition(operation.topic, operation.partition)
        match operation:
            case SendOperation(type=OperationType.INVOKE):
                self.history.add_invocation(operation)
            case SendOperation():
                self.history.add_completion(operation)
                invoked = self.history.invoked.get(operation.operation_id)
                facts.sent.append(sent_batch(operation, history=history, invoked=invoked))
            case PollOperation():
                facts.polls.append(poll(operation))
                facts.received.extend(received_batch(operation, batch) for batch in operation.batches)
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
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    if not len(decoded) == lines == block.count(b"}\n{") + 1:
        raise msgspec.DecodeError("lines and values do not pair up")
    return decoded


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
