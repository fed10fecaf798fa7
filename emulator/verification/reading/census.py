"""The content of each file of a run's evidence, for ``doubts.evidence`` to judge whether it is whole."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.history import HistorySealed, OperationType, SendOperation
from laststand.emulator.verification.tables.client_history import Begin, BegunSend, EndedSend
from laststand.emulator.verification.tables.event_lines import Line
from laststand.emulator.verification.tables.vocabulary import tag

SEAL: Final = tag(events.FileSealed)


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that the writer adds to each event, as far as the oracle reads them."""

    node: int
    incarnation: int
    sequence: int
    type: str
    run: str = ""
    time_ns: int = 0


class ConsecutiveLines(msgspec.Struct, frozen=True, kw_only=True):
    """A non-empty stretch of lines that are numbered in steps of one.

    Attributes:
        first: number of the first line; ``first_type`` its type.
        last_type: of the last line that is no seal, if there is one.
        is_sealed: whether the last line is a seal.
    """

    first: int
    count: int
    first_type: str
    last_type: str | None
    is_sealed: bool


def consecutive(lines: Sequence[Line]) -> ConsecutiveLines:
    """Returns the facts about lines that are numbered in steps of one."""
    last_types = (tag(type(line)) for line in reversed(lines))
    return ConsecutiveLines(
        first=lines[0].sequence,
        count=len(lines),
        first_type=tag(type(lines[0])),
        last_type=next((name for name in last_types if name != SEAL), None),
        is_sealed=tag(type(lines[-1])) == SEAL,
    )


class PartCensus(msgspec.Struct, kw_only=True):
    """The lines of one incarnation in a file.

    Attributes:
        first: number of the first line; ``last`` is that of the last line.
        is_gapless: whether they are numbered from 0 in steps of one.
        first_type: of the first event; ``last_type`` of the last one that is no seal.
        is_sealed: whether the last line is the seal.
    """

    count: int = 0
    first: int | None = None
    last: int | None = None
    is_gapless: bool = True
    first_type: str | None = None
    last_type: str | None = None
    is_sealed: bool = False

    def add(self, envelope: Envelope) -> None:
        """Counts a line."""
        if self.first is None:
            self.first, self.first_type = envelope.sequence, envelope.type
        self.is_gapless = self.is_gapless and envelope.sequence == self.count
        self.last = envelope.sequence
        self.is_sealed = envelope.type == SEAL
        if not self.is_sealed:
            self.last_type = envelope.type
        self.count += 1

    def add_all(self, lines: "ConsecutiveLines") -> None:
        """Counts lines."""
        if self.first is None:
            self.first, self.first_type = lines.first, lines.first_type
        self.is_gapless = self.is_gapless and lines.first == self.count
        self.last = lines.first + lines.count - 1
        self.is_sealed = lines.is_sealed
        self.last_type = lines.last_type or self.last_type
        self.count += lines.count


class FileCensus(msgspec.Struct, kw_only=True):
    """One event file.

    Attributes:
        file_name: name of the file.
        lines: all lines except a torn last one.
        corrupt: number of lines that are no JSON objects with an envelope; ``samples`` has the first of them.
        unknown_types: event types outside the vocabulary.
        incomplete: types of events with missing or impossible fields.
        torn: text after the last line end that is no event; a killed process may leave some.
        runs: ids of the runs that lines name.
        parts: by node and incarnation.
    """

    file_name: str
    lines: int = 0
    corrupt: int = 0
    samples: list[str] = msgspec.field(default_factory=list)
    unknown_types: set[str] = msgspec.field(default_factory=set)
    incomplete: set[str] = msgspec.field(default_factory=set)
    torn: str | None = None
    runs: set[str] = msgspec.field(default_factory=set)
    parts: dict[tuple[int, int], PartCensus] = msgspec.field(default_factory=dict)

    def add(self, envelope: Envelope) -> None:
        """Counts a line."""
        self.lines += 1
        self.runs.add(envelope.run)
        self._part(envelope.node, envelope.incarnation).add(envelope)

    def add_all(self, lines: Sequence[Line]) -> None:
        """Counts lines, which usually belong to one process and are numbered in steps of one."""
        writers = {(line.run, line.node, line.incarnation) for line in lines}
        if len(writers) == 1 and is_consecutive([line.sequence for line in lines]):
            [(run, node, incarnation)] = writers
            self.add_run(run, node, incarnation, consecutive(lines))
            return
        for line in lines:
            self.add(
                Envelope(
                    node=line.node,
                    incarnation=line.incarnation,
                    sequence=line.sequence,
                    type=tag(type(line)),
                    run=line.run,
                )
            )

    def add_run(self, run: str, node: int, incarnation: int, lines: ConsecutiveLines) -> None:
        """Counts lines of one process."""
        self.lines += lines.count
        self.runs.add(run)
        self._part(node, incarnation).add_all(lines)

    def _part(self, node: int, incarnation: int) -> PartCensus:
        return self.parts.setdefault((node, incarnation), PartCensus())


def is_consecutive(numbers: Sequence[int]) -> bool:
    """Returns whether each number follows directly on the previous one."""
    return not numbers or numbers == list(range(numbers[0], numbers[0] + len(numbers)))


class SendStream(NamedTuple):
    """The sends of one producer to one partition with one kind of acks."""

    topic: str
    partition: int
    process: str
    acks: int


def by_acks(records: Mapping[SendStream, int]) -> dict[int, int]:
    """Returns records by acks."""
    found: Counter[int] = Counter()
    for stream, count in records.items():
        found[stream.acks] += count
    return dict(found)


class HistoryCensus(msgspec.Struct, kw_only=True):
    """The clients' histories together.

    Attributes:
        seals: by file, its last line if that is its seal.
        lines: number of all lines; ``corrupt`` of those that are no operations.
        last: number of the last line.
        is_gapless: whether each is numbered from 0 in steps of one.
        invoked: begun sends by operation id, with line and time; ``completed``: those with an outcome.
        repeated: lines that repeat the begin or the outcome of a send.
        sent: records of each producer, partition and acks; ``acked``: those that were acknowledged.
    """

    seals: dict[str, HistorySealed | None] = msgspec.field(default_factory=dict)
    lines: int = 0
    last: int | None = None
    corrupt: int = 0
    is_gapless: bool = True
    invoked: dict[str, Begin] = msgspec.field(default_factory=dict)
    completed: set[str] = msgspec.field(default_factory=set)
    repeated: int = 0
    sent: dict[SendStream, int] = msgspec.field(default_factory=dict)
    acked: dict[SendStream, int] = msgspec.field(default_factory=dict)

    def add_invocation(self, send: SendOperation | BegunSend) -> None:
        """Counts a send that was begun."""
        self.repeated += send.operation_id in self.invoked
        self.invoked[send.operation_id] = Begin(send.index, send.time_ns)
        stream = _stream(send)
        self.sent[stream] = self.sent.get(stream, 0) + send.record_count

    def add_completion(self, send: SendOperation | EndedSend) -> None:
        """Counts the outcome of a send."""
        self.repeated += send.operation_id in self.completed
        self.completed.add(send.operation_id)
        if send.type is OperationType.OK:
            stream = _stream(send)
            self.acked[stream] = self.acked.get(stream, 0) + send.record_count


def _stream(send: SendOperation | BegunSend | EndedSend) -> SendStream:
    return SendStream(send.topic, send.partition, send.process, send.acks)
