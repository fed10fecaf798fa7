"""What was found in each file of a run's evidence, for ``evidence`` to judge whether it is whole."""

from typing import Final

import msgspec

from emulator.core.events import FileSealed
from emulator.core.history import HistorySealed, OperationType, SendOperation
from emulator.verification.vocabulary import tag

SEAL: Final = tag(FileSealed)
HISTORY_SEAL: Final = tag(HistorySealed)


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What the writer adds to each event, as far as the oracle looks at it."""

    node: int
    incarnation: int
    sequence: int
    type: str
    run: str = ""
    time_ns: int = 0


class PartCensus(msgspec.Struct, kw_only=True):
    """The lines of one incarnation in a file.

    Attributes:
        first: number of the first line; ``last`` that of the last one.
        is_gapless: whether they are numbered from 0 in steps of one.
        first_type: of the first event; ``last_type`` of the last one but for the seal.
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


class FileCensus(msgspec.Struct, kw_only=True):
    """One event file.

    Attributes:
        file_name: its name.
        lines: all lines but a torn last one.
        corrupt: how many of them are no JSON objects with an envelope; ``samples`` has the first of them.
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
        part = self.parts.get((envelope.node, envelope.incarnation))
        if part is None:
            part = self.parts[envelope.node, envelope.incarnation] = PartCensus()
        part.add(envelope)


class HistoryCensus(msgspec.Struct, kw_only=True):
    """The clients' histories together.

    Attributes:
        seals: by file, its last line if that is its seal.
        lines: of all of them; ``corrupt`` are no operations.
        last: number of the last line.
        is_gapless: whether each is numbered from 0 in steps of one.
        invoked: sends that were begun, and where; ``completed``: those with an outcome.
        sent: records by acks; ``acked``: those that were acknowledged.
    """

    seals: dict[str, HistorySealed | None] = msgspec.field(default_factory=dict)
    lines: int = 0
    last: int | None = None
    corrupt: int = 0
    is_gapless: bool = True
    invoked: dict[str, int] = msgspec.field(default_factory=dict)
    completed: set[str] = msgspec.field(default_factory=set)
    sent: dict[int, int] = msgspec.field(default_factory=dict)
    acked: dict[int, int] = msgspec.field(default_factory=dict)

    def add_invocation(self, send: SendOperation) -> None:
        """Counts a send that was begun."""
        self.invoked[send.operation_id] = send.index
        self.sent[send.acks] = self.sent.get(send.acks, 0) + send.record_count

    def add_completion(self, send: SendOperation) -> None:
        """Counts the outcome of a send."""
        self.completed.add(send.operation_id)
        if send.type is OperationType.OK:
            self.acked[send.acks] = self.acked.get(send.acks, 0) + send.record_count
