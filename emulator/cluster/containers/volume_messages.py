"""Messages between a harness that cannot see a project's volumes and a program in a container that can.

The program gets orders by standard input and answers by standard output: each message is a length of four bytes,
big-endian, and that many bytes of MessagePack. Every numbered order gets one ``Done`` or ``Failed``; ``Written`` comes
at any time, and before the answer to the order that asked for it.
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.cluster.layout import foreign_history_files
from laststand.emulator.cluster.node_files import AnyFileWork
from laststand.emulator.core.types import NodeId
from laststand.emulator.storage.line_file import line_files

ATTACHED_MARK: Final = "harness-attached"
"""File in the folder of events: a harness was attached from outside, and the record of it is elsewhere."""

_LENGTH: Final = struct.Struct(">I")


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=True):
    """Base of all messages."""


class Begin(_Message, frozen=True, kw_only=True):
    """The first order: send ``shown_files`` as they are written, until the input ends.

    Attributes:
        sizes: sizes of the files that the harness has already, by name.
    """

    sizes: Mapping[str, int]


class CatchUp(_Message, frozen=True, kw_only=True):
    """Send the present content of these files."""

    number: int


class DoWork(_Message, frozen=True, kw_only=True):
    """Do some work on the files of a node."""

    number: int
    work: AnyFileWork


class CopyLogs(_Message, frozen=True, kw_only=True):
    """Send all files of a node that has ended."""

    number: int
    node_id: NodeId


class Begun(_Message, frozen=True, kw_only=True):
    """The answer to ``Begin``: the volumes are the harness's for as long as the input is open."""


class Taken(_Message, frozen=True, kw_only=True):
    """The other answer to ``Begin``, and the last message: another harness has locked the files."""


class Written(_Message, frozen=True, kw_only=True):
    """A part of a file.

    Attributes:
        path: relative to the run's directory.
        offset: offset of the part.
        content: bytes of the part.
    """

    path: str
    offset: int
    content: bytes


class Done(_Message, frozen=True, kw_only=True):
    """An order was obeyed; ``result`` is encoded."""

    number: int
    result: msgspec.Raw


class Failed(_Message, frozen=True, kw_only=True):
    """An order could not be obeyed: ``path`` could not be read or changed."""

    number: int
    path: str
    reason: str


Order: TypeAlias = Begin | CatchUp | DoWork | CopyLogs
Answer: TypeAlias = Begun | Taken | Written | Done | Failed

_ENCODER: Final = msgspec.msgpack.Encoder()
ORDERS: Final[msgspec.msgpack.Decoder[Order]] = msgspec.msgpack.Decoder(Order)
ANSWERS: Final[msgspec.msgpack.Decoder[Answer]] = msgspec.msgpack.Decoder(Answer)


def shown_files(run: Path) -> list[Path]:
    """Returns the files of a run to which nodes add lines: events, and histories of clients of Apache Kafka."""
    return [*line_files(run / "events", "[0-9]*-*"), *foreign_history_files(run)]


def encode(message: Order | Answer) -> bytes:
    """Returns a message with its length."""
    content = _ENCODER.encode(message)
    return _LENGTH.pack(len(content)) + content


class Splitter:
    """Splits a stream into messages, whatever pieces it arrives in."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def messages(self, piece: bytes) -> Iterator[bytes]:
        """Yields the messages that are whole now, still encoded."""
        self._rest += piece
        while len(self._rest) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._rest)[0]
            if len(self._rest) < end:
                return
            message = bytes(self._rest[_LENGTH.size : end])
            del self._rest[:end]
            yield message
