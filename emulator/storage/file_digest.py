"""The digest by which a file of evidence is sealed: SHA-256 over the SHA-256 of each MiB of it, in order.

Parts of a large file can so be checked side by side. ``laststand.emulator.verification`` has an implementation of its
own.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from laststand.emulator.core.packed import reading as packed

PART_BYTES: Final = 1 << 20
"""Length of all parts but the last."""

_TAIL_BYTES: Final = 1 << 12
_SEALS: Final = (b'"type":"FileSealed"', b'"type": "FileSealed"', b'"f":"sealed"', b'"f": "sealed"')


def line_count_of(path: Path) -> Callable[[bytes], int]:
    """Returns the counter of lines for a file of that name: lines of text, or packed ones."""
    return packed.count_lines if packed.is_packed(path) else _count_line_ends


def _count_line_ends(content: bytes) -> int:
    return content.count(b"\n")


class FileDigest:
    """The digest of the bytes written so far, and the number of their lines.

    Args:
        count: counts the lines in content.
    """

    def __init__(self, count: Callable[[bytes], int] = _count_line_ends) -> None:
        self.lines = 0
        self._count = count
        self._parts = hashlib.sha256()
        self._part = hashlib.sha256()
        self._room = PART_BYTES

    def update(self, content: bytes) -> None:
        """Adds further content."""
        self.lines += self._count(content)
        rest = memoryview(content)
        while rest:
            self._part.update(rest[: self._room])
            taken = min(self._room, len(rest))
            rest, self._room = rest[taken:], self._room - taken
            if not self._room:
                self._parts.update(self._part.digest())
                self._part, self._room = hashlib.sha256(), PART_BYTES

    def hexdigest(self) -> str:
        """Returns the digest as text."""
        whole = self._parts.copy()
        if self._room < PART_BYTES:
            whole.update(self._part.digest())
        return whole.hexdigest()


class FileContent(NamedTuple):
    """The number of lines of a file, and their digest."""

    lines: int
    digest: str


def digest_of(path: Path) -> str:
    """Returns the digest of all bytes of a file.

    Raises:
        OSError: the file cannot be read.
    """
    digest = FileDigest(count=len)
    with path.open("rb") as file:
        while block := file.read(PART_BYTES):
            digest.update(block)
    return digest.hexdigest()


def content_of(path: Path) -> FileContent:
    """Returns the content of a file of lines, without its seal and without a torn last line.

    Raises:
        OSError: the file cannot be read.
    """
    digest = FileDigest(line_count_of(path))
    with path.open("rb") as file:
        end = _content_end(file, is_packed=packed.is_packed(path))
        file.seek(0)
        while block := file.read(min(PART_BYTES, end - file.tell())):
            digest.update(block)
    return FileContent(digest.lines, digest.hexdigest())


def _content_end(file: BinaryIO, *, is_packed: bool) -> int:
    size = file.seek(0, os.SEEK_END)
    begin, length = size, _TAIL_BYTES
    while begin:
        begin = max((size - length) // _TAIL_BYTES * _TAIL_BYTES, 0)
        file.seek(begin)
        tail = file.read()
        end = packed.content_end(tail) if is_packed else _text_end(tail, is_whole=not begin)
        if end is not None:
            return begin + end
        length *= 4
    return 0


def _text_end(tail: bytes, *, is_whole: bool) -> int | None:
    """Returns where complete lines end, without the seal; ``None`` if the last one may begin before the tail."""
    whole = tail[: tail.rfind(b"\n") + 1]
    last = whole.rfind(b"\n", 0, -1) + 1
    if not last and not is_whole:
        return None
    return last if any(seal in whole[last:] for seal in _SEALS) else len(whole)
