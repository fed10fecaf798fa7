"""The digest of a file, as in its seal and the harness's record: the oracle's own implementation.

SHA-256 over the SHA-256 of each MiB of the file, in order. In a file of lines, the digest leaves out the seal, and an
incomplete last line.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from laststand.emulator.core.packed.layout import CELL
from laststand.emulator.core.packed.reading import content_end, count_lines, is_packed
from laststand.emulator.user_files import open_file, read_bytes

_PART_BYTES: Final = 1 << 20
_TAIL_BYTES: Final = 1 << 12
_SEALS: Final = (b'"type":"FileSealed"', b'"type": "FileSealed"', b'"f":"sealed"', b'"f": "sealed"')


class FileContent(NamedTuple):
    """The number of lines of a file, and their digest; a file without lines has the digest of all its bytes."""

    lines: int | None
    digest: str


class ReadFile(NamedTuple):
    """All bytes of a file, and their digest."""

    content: bytes
    digest: str


def read_file(path: Path) -> ReadFile:
    """Returns the content of a file.

    Raises:
        OSError: the file cannot be read.
    """
    content = read_bytes(path)
    view = memoryview(content)
    parts = (hashlib.sha256(view[start : start + _PART_BYTES]) for start in range(0, len(view), _PART_BYTES))
    return ReadFile(content, hashlib.sha256(b"".join(part.digest() for part in parts)).hexdigest())


class DigestPart(NamedTuple):
    """The part of a file's digest that one range adds."""

    lines: int
    digests: bytes


def digest_range(path: Path, begin: int, end: int) -> DigestPart:
    """Digests those parts of a file that begin in a range of its bytes.

    Raises:
        OSError: the file cannot be read.
    """
    lines, digests = 0, []
    count = count_lines if is_packed(path) else _count_line_ends
    with open_file(path) as file:
        content_end = _packed_end(file) if is_packed(path) else _content_end(file)
        for start in range(-(-begin // _PART_BYTES) * _PART_BYTES, min(end, content_end), _PART_BYTES):
            file.seek(start)
            part = file.read(min(_PART_BYTES, content_end - start))
            lines += count(part)
            digests.append(hashlib.sha256(part).digest())
    return DigestPart(lines, b"".join(digests))


def _count_line_ends(content: bytes) -> int:
    return content.count(b"\n")


def join_parts(parts: Iterable[DigestPart]) -> FileContent:
    """Joins the parts of a file's digest, in the order of its ranges."""
    found = list(parts)
    return FileContent(
        sum(part.lines for part in found), hashlib.sha256(b"".join(part.digests for part in found)).hexdigest()
    )


def _packed_end(file: BinaryIO) -> int:
    """Returns the end of the part of a packed file that its seal covers."""
    size = file.seek(0, os.SEEK_END)
    length = _TAIL_BYTES
    while True:
        start = max((size - length) // CELL * CELL, 0)
        file.seek(start)
        end = content_end(file.read())
        if end is not None or not start:
            return start + (end or 0)
        length *= 8


def _content_end(file: BinaryIO) -> int:
    """Returns the end of the part of a file that its seal covers."""
    size = file.seek(0, os.SEEK_END)
    start, tail = size, b""
    while start and tail.count(b"\n") < 3:
        length = min(start, max(_TAIL_BYTES, len(tail)))
        start -= length
        file.seek(start)
        tail = file.read(length) + tail
    return start + _text_end(tail)


class LinesDigest:
    """Takes a file block by block; blocks end at line ends, except the last one.

    Args:
        is_packed_file: whether lines are packed.
    """

    def __init__(self, *, is_packed_file: bool = False) -> None:
        self._is_packed = is_packed_file
        self._count = count_lines if is_packed_file else _count_line_ends
        self._lines = 0
        self._parts: list[bytes] = []
        self._rest = b""
        self._held = b""

    def add(self, block: bytes) -> None:
        """Takes the next block. Only the last block may be torn, or end with a seal, so it is held back."""
        self._add_content(self._held)
        self._held = block

    def finish(self) -> FileContent:
        """Returns the content of the file."""
        self._add_content(self._held[: (content_end(self._held) or 0) if self._is_packed else _text_end(self._held)])
        if self._rest:
            self._parts.append(hashlib.sha256(self._rest).digest())
        return FileContent(self._lines, hashlib.sha256(b"".join(self._parts)).hexdigest())

    def _add_content(self, content: bytes) -> None:
        self._lines += self._count(content)
        content = self._rest + content
        view = memoryview(content)
        end = len(content) - len(content) % _PART_BYTES
        self._parts.extend(
            hashlib.sha256(view[start : start + _PART_BYTES]).digest() for start in range(0, end, _PART_BYTES)
        )
        self._rest = content[end:]


def _text_end(held: bytes) -> int:
    """Returns the end of the lines that a seal covers: before the seal itself, and before an incomplete last line."""
    whole = held[: held.rfind(b"\n") + 1]
    start_of_last = whole.rfind(b"\n", 0, -1) + 1
    return start_of_last if any(seal in whole[start_of_last:] for seal in _SEALS) else len(whole)
