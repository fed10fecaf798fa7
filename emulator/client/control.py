"""The protocol between the harness and the client process: one JSON line per message, over a loopback connection.

The client dials the harness, sends the cluster's token on a line, then ``Ready``, and waits. ``StartWork`` has the
addresses, and starts producers and consumers. ``ProduceBatch``, ``Transact``, ``Consume`` and ``DoAsMember`` are orders
for one of them. ``StopWork`` lets them finish, and is answered by ``WorkStopped``; ``ReadAll`` reads everything with
new consumers, and is answered by ``AllRead``. When the connection ends, the process ends. ``ClientCounts`` is sent
whenever a count has changed.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from laststand.emulator.core.client.steps import Source
from laststand.emulator.core.types import TopicPartition


class _Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=True):
    """Base of all messages."""


class StartWork(_Line, frozen=True, kw_only=True):
    """Connect to these nodes (``host:port`` by node id) and work."""

    addresses: dict[int, str]


class ProduceBatch(_Line, frozen=True, kw_only=True):
    """Have a producer send a batch of ``records`` records at once, besides those of its rate."""

    producer: str
    topic: str
    partition: int
    record_count: int


class Transact(_Line, frozen=True, kw_only=True):
    """Have a transactional producer carry out a transaction: a batch of ``records`` records for each partition."""

    producer: str
    partitions: tuple[TopicPartition, ...]
    records: int
    is_commit: bool


class Consume(_Line, frozen=True, kw_only=True):
    """Have a transactional producer read for a group; ``into`` is where it writes of it, in a transaction.

    ``member`` is the number of the member on whose behalf, if any; then ``producer`` is its transactional id, too.
    """

    producer: str
    source: Source
    member: int | None
    into: TopicPartition | None
    is_commit: bool


class DoAsMember(_Line, frozen=True, kw_only=True):
    """Let a member of a group do something; fields and ``does`` as in ``plan.actions.Member``."""

    group: str
    number: int
    does: Literal["join", "leave", "die", "pause", "go-on"]
    is_static: bool
    reads: bool


class StopWork(_Line, frozen=True, kw_only=True):
    """Send nothing new, await answers for at most ``timeout_ms``, then give up the remaining requests."""

    timeout_ms: int


class ReadAll(_Line, frozen=True, kw_only=True):
    """Read partitions from log start to high watermark at these addresses, within ``timeout_ms``."""

    partitions: tuple[TopicPartition, ...]
    addresses: dict[int, str]
    timeout_ms: int


class AckedCount(msgspec.Struct, frozen=True, kw_only=True):
    """Records acknowledged so far, by acks level and partition."""

    acks: int
    topic: str
    partition: int
    records: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)


class ErrorCount(msgspec.Struct, frozen=True, kw_only=True):
    """The number of responses with one error so far, by Kafka's name of the error."""

    error: str
    count: int


class ClientCounts(_Line, frozen=True, kw_only=True):
    """All counts so far. ``failed`` and ``unknown`` count records with those outcomes, over all acks levels."""

    acked: tuple[AckedCount, ...]
    failed: int
    unknown: int
    consumed: int
    errors: tuple[ErrorCount, ...] = ()


class Ready(_Line, frozen=True, kw_only=True):
    """The process waits for work."""


class WorkStopped(_Line, frozen=True, kw_only=True):
    """Every operation has its outcome in the history; ``abandoned`` records were still unanswered."""

    abandoned: int


class AllRead(_Line, frozen=True, kw_only=True):
    """The final read is in the history; ``errors`` has the partitions that could not be read."""

    errors: dict[str, str]


Command: TypeAlias = StartWork | ProduceBatch | Transact | Consume | DoAsMember | StopWork | ReadAll
Report: TypeAlias = Ready | ClientCounts | WorkStopped | AllRead

_ENCODER: Final = msgspec.json.Encoder()
_COMMANDS: Final[msgspec.json.Decoder[Command]] = msgspec.json.Decoder(Command)
_REPORTS: Final[msgspec.json.Decoder[Report]] = msgspec.json.Decoder(Report)


def encode_line(message: Command | Report) -> bytes:
    """Returns a message as a line."""
    return _ENCODER.encode(message) + b"\n"


def decode_command(line: bytes) -> Command:
    """Inverse of ``encode_line`` for commands.

    Raises:
        msgspec.DecodeError: the line is no command.
    """
    return _COMMANDS.decode(line)


def decode_report(line: bytes) -> Report:
    """Inverse of ``encode_line`` for reports.

    Raises:
        msgspec.DecodeError: the line is no report.
    """
    return _REPORTS.decode(line)
