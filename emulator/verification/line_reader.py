"""Reads every line of a run once: checks it against the vocabulary, takes stock of each file, and sorts it by kind.

What Spark gets is valid and small: one file of lines per frequent kind of fact, and one for everything rare. So no
query parses a line twice or carries the columns of other events. What is no event, or breaks the numbering, ends up in
the ``FileCensus`` and ``HistoryCensus`` that ``evidence`` judges. What controller and harness decided, and what logs
lost, is kept in the vocabulary's own structs, as the run's ``Timeline``.

A controller that starts again may write down once more what it had committed before: the first line about a metadata
offset counts, and one that contradicts it is noted.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from emulator.core import events as e
from emulator.core.history import (
    FinalReadOperation,
    Operation,
    OperationType,
    PolledBatch,
    PollOperation,
    SendOperation,
)
from emulator.verification.premise_census import PremiseCensus
from emulator.verification.run_directory import RunDirectory
from emulator.verification.timeline import COLLECTED, CollectedEvent, Timeline
from emulator.verification.vocabulary import EVENT_TYPES, tag

Put = Callable[[str, bytes], None]
"""Receives the name of a kind of fact and a JSON object."""

_SAMPLES_MAX: Final = 3


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What the writer adds to each event, as far as the oracle looks at it (never at the clock)."""

    node: int
    incarnation: int
    sequence: int
    type: str


class PartCensus(msgspec.Struct, kw_only=True):
    """The lines of one incarnation in a file. ``is_gapless``: they are numbered from 0 in steps of one."""

    count: int = 0
    first: int | None = None
    last: int | None = None
    is_gapless: bool = True
    first_type: str | None = None
    last_type: str | None = None

    def add(self, envelope: Envelope) -> None:
        """Counts a line."""
        if self.first is None:
            self.first, self.first_type = envelope.sequence, envelope.type
        self.is_gapless = self.is_gapless and envelope.sequence == self.count
        self.last, self.last_type = envelope.sequence, envelope.type
        self.count += 1


class FileCensus(msgspec.Struct, kw_only=True):
    """One event file.

    Attributes:
        file_name: its name.
        lines: all lines but a torn last one.
        corrupt: how many of them are no JSON objects with an envelope; ``samples`` has the first of them.
        unknown_types: event types outside the vocabulary.
        incomplete: types of events with missing or impossible fields.
        torn: text after the last line end that is no event; a killed process may leave some.
        parts: by node and incarnation.
    """

    file_name: str
    lines: int = 0
    corrupt: int = 0
    samples: list[str] = msgspec.field(default_factory=list)
    unknown_types: set[str] = msgspec.field(default_factory=set)
    incomplete: set[str] = msgspec.field(default_factory=set)
    torn: str | None = None
    parts: dict[tuple[int, int], PartCensus] = msgspec.field(default_factory=dict)


class HistoryCensus(msgspec.Struct, kw_only=True):
    """The clients' histories together.

    Attributes:
        files: their names.
        lines: of all of them; ``corrupt`` are no operations.
        last: number of the last line.
        is_gapless: whether each is numbered from 0 in steps of one.
        invoked: sends that were begun, and where; ``completed``: those with an outcome.
        sent: records by acks; ``acked``: those that were acknowledged.
    """

    files: set[str] = msgspec.field(default_factory=set)
    lines: int = 0
    last: int | None = None
    corrupt: int = 0
    is_gapless: bool = True
    invoked: dict[str, int] = msgspec.field(default_factory=dict)
    completed: set[str] = msgspec.field(default_factory=set)
    sent: dict[int, int] = msgspec.field(default_factory=dict)
    acked: dict[int, int] = msgspec.field(default_factory=dict)


class RunLines(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read of one run beside the lines that were sorted."""

    files: tuple[FileCensus, ...]
    history: HistoryCensus
    timeline: Timeline
    contradictions: tuple[str, ...]
    census: PremiseCensus


class SentBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A completed send: where it was acknowledged to be, by whom, and every CRC that was tried.

    Attributes:
        history: the file that tells of it: positions are of that file.
        invoked: position in the history at which it was begun; ``completed`` at which its outcome is told.
        attempts: how often it was sent.
    """

    process: str
    operation_id: str
    type: OperationType
    topic: str
    topic_id: str | None
    partition: int
    acks: int
    first_record_id: int
    record_count: int
    base_offset: int | None
    node: int | None
    leader_epoch: int | None
    crc: int | None
    crcs: tuple[int, ...]
    history: str
    invoked: int | None
    completed: int
    attempts: int


class ReceivedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that a consumer received; ``served_epoch`` is that of the leader that served it, if known."""

    process: str
    phase: str
    topic: str
    topic_id: str | None
    partition: int
    node: int
    served_epoch: int | None
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    producer: str
    first_record_id: int
    record_count: int


class Poll(msgspec.Struct, frozen=True, kw_only=True):
    """One fetch of a consumer: where it asked, and the offsets of what it got."""

    index: int
    process: str
    topic: str
    topic_id: str | None
    partition: int
    position: int
    seek: bool
    phase: str
    error: str | None
    log_start_offset: int | None
    spans: tuple[tuple[int, int], ...]


_ENCODER: Final = msgspec.json.Encoder()
_ENVELOPE: Final = msgspec.json.Decoder(Envelope)
_EVENT: Final[msgspec.json.Decoder[e.AnyEvent]] = msgspec.json.Decoder(e.AnyEvent)
_OPERATION: Final[msgspec.json.Decoder[Operation]] = msgspec.json.Decoder(Operation)
_KNOWN: Final = frozenset(tag(kind) for kind in EVENT_TYPES)
_COLLECTED: Final = frozenset(COLLECTED)
_HARNESS_OFFSETS: Final = (e.FaultInjected, e.FaultHealed, e.IncarnationEnded)
"""Events whose metadata offset is what the harness saw, not the place of a record."""


def read_run(run: RunDirectory, *, put: Put) -> RunLines:
    """Reads a run's event files and history.

    Args:
        run: where they are; missing ones are missing from the result.
        put: gets each valid event under its tag, and each ``SentBatch``, ``ReceivedBatch``, ``Poll`` and
            ``FinalReadOperation`` under its name.
    """
    collected: list[CollectedEvent] = []
    committed, premises = _Committed(), PremiseCensus()
    files = tuple(
        _read_events(path, put=put, collected=collected, committed=committed, premises=premises)
        for path in run.event_files()
    )
    history = _read_histories(run.histories, put=put, premises=premises)
    collected.sort(key=lambda t: (t.node, t.incarnation, t.sequence))
    return RunLines(
        files=files,
        history=history,
        timeline=Timeline(events=tuple(collected)),
        contradictions=tuple(committed.contradictions),
        census=premises,
    )


class _Committed:
    """What the controller's incarnations wrote about each metadata offset."""

    def __init__(self) -> None:
        self._seen: dict[tuple[type[e.Event], int, str, int], e.Event] = {}
        self.contradictions: list[str] = []

    def is_new(self, event: e.Event) -> bool:
        """Whether no line about this record came before."""
        offset = getattr(event, "metadata_offset", None)
        if offset is None or isinstance(event, _HARNESS_OFFSETS):
            return True
        key = (type(event), offset, getattr(event, "topic_id", ""), getattr(event, "partition", 0))
        before = self._seen.setdefault(key, event)
        if before is event:
            return True
        if isinstance(event, e.PartitionChanged) and _state(event) != _state(before):
            self.contradictions.append(
                f"the controller noted two different changes of {event.topic}-{event.partition} "
                f"at metadata offset {offset}"
            )
        return False


def _state(event: e.Event) -> tuple[object, ...]:
    names = ("leader", "leader_epoch", "partition_epoch", "replicas", "isr", "elr")
    return tuple(getattr(event, name, None) for name in names)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except FileNotFoundError:
        return


def _read_events(
    path: Path, *, put: Put, collected: list[CollectedEvent], committed: _Committed, premises: PremiseCensus
) -> FileCensus:
    census = FileCensus(file_name=path.name)
    for line in _lines(path):
        try:
            envelope = _ENVELOPE.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            if line.endswith(b"\n"):
                census.lines += 1
                census.corrupt += 1
                if len(census.samples) < _SAMPLES_MAX:
                    census.samples.append(line.decode(errors="replace").rstrip("\n"))
            else:
                census.torn = line.decode(errors="replace")
            continue
        census.lines += 1
        part = census.parts.setdefault((envelope.node, envelope.incarnation), PartCensus())
        part.add(envelope)
        try:
            event = _EVENT.decode(line)
        except msgspec.ValidationError:
            (census.incomplete if envelope.type in _KNOWN else census.unknown_types).add(envelope.type)
            continue
        if not committed.is_new(event):
            continue
        put(envelope.type, line)
        premises.add_event(event, node=envelope.node, incarnation=envelope.incarnation)
        if type(event) in _COLLECTED:
            collected.append(
                CollectedEvent(
                    node=envelope.node, incarnation=envelope.incarnation, sequence=envelope.sequence, event=event
                )
            )
    return census


def _read_histories(paths: tuple[Path, ...], *, put: Put, premises: PremiseCensus) -> HistoryCensus:
    census = HistoryCensus()
    for path in paths:
        census.files.add(path.name)
        _read_history(path, census, put=put, premises=premises)
    return census


def _read_history(path: Path, census: HistoryCensus, *, put: Put, premises: PremiseCensus) -> None:
    next_index = 0
    for line in _lines(path):
        census.lines += 1
        try:
            operation = _OPERATION.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            census.corrupt += 1
            continue
        census.is_gapless = census.is_gapless and operation.index == next_index
        census.last = operation.index
        next_index += 1
        premises.add_operation(operation, history=path.name)
        match operation:
            case SendOperation():
                _count_send(operation, census)
                if operation.type is not OperationType.INVOKE:
                    invoked = census.invoked.get(operation.operation_id)
                    put(SentBatch.__name__, _ENCODER.encode(_sent(operation, history=path.name, invoked=invoked)))
            case PollOperation():
                put(Poll.__name__, _ENCODER.encode(_poll(operation)))
                for batch in operation.batches:
                    put(ReceivedBatch.__name__, _ENCODER.encode(_received(operation, batch)))
            case FinalReadOperation():
                put(FinalReadOperation.__name__, line)


def _count_send(send: SendOperation, census: HistoryCensus) -> None:
    if send.type is OperationType.INVOKE:
        census.invoked[send.operation_id] = send.index
        census.sent[send.acks] = census.sent.get(send.acks, 0) + send.record_count
        return
    census.completed.add(send.operation_id)
    if send.type is OperationType.OK:
        census.acked[send.acks] = census.acked.get(send.acks, 0) + send.record_count


def _sent(send: SendOperation, *, history: str, invoked: int | None) -> SentBatch:
    last = send.attempts[-1] if send.attempts else None
    return SentBatch(
        process=send.process,
        operation_id=send.operation_id,
        type=send.type,
        topic=send.topic,
        topic_id=send.topic_id,
        partition=send.partition,
        acks=send.acks,
        first_record_id=send.first_record_id,
        record_count=send.record_count,
        base_offset=send.base_offset,
        node=None if last is None else last.node,
        leader_epoch=None if last is None else last.leader_epoch,
        crc=None if last is None else last.crc,
        crcs=tuple(dict.fromkeys(attempt.crc for attempt in send.attempts)),
        history=history,
        invoked=invoked,
        completed=send.index,
        attempts=len(send.attempts),
    )


def _poll(poll: PollOperation) -> Poll:
    return Poll(
        index=poll.index,
        process=poll.process,
        topic=poll.topic,
        topic_id=poll.topic_id,
        partition=poll.partition,
        position=poll.position,
        seek=poll.seek,
        phase=poll.phase,
        error=poll.error,
        log_start_offset=poll.log_start_offset,
        spans=tuple((batch.base_offset, batch.last_offset) for batch in poll.batches),
    )


def _received(poll: PollOperation, batch: PolledBatch) -> ReceivedBatch:
    return ReceivedBatch(
        process=poll.process,
        phase=poll.phase,
        topic=poll.topic,
        topic_id=poll.topic_id,
        partition=poll.partition,
        node=poll.node,
        served_epoch=poll.leader_epoch,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        crc=batch.crc,
        producer=batch.producer,
        first_record_id=batch.first_record_id,
        record_count=batch.record_count,
    )
