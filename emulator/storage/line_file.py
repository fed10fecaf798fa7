"""Writes and reads files of lines, events or a history: JSON lines, or packed if the file's name says so.

A flush is one write. A killed process leaves complete lines and at most one torn line.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core.packed.layout import CELL, SUFFIX
from laststand.emulator.core.packed.reading import LineReader, is_packed, json_lines, text_lines, whole_end
from laststand.emulator.core.packed.writing import LinePacker
from laststand.emulator.storage.file_digest import FileDigest, line_count_of
from laststand.emulator.user_files import open_file, read_bytes

SUFFIXES: Final = (SUFFIX, ".jsonl")
"""The suffixes of the names of files of lines."""

_BLOCK_BYTES: Final = 1 << 20


def line_files(directory: Path, stem: str = "*") -> list[Path]:
    """Returns the files of lines in a directory, by name.

    Args:
        directory: may be missing.
        stem: of their names, as a pattern.
    """
    return sorted(path for suffix in SUFFIXES for path in directory.glob(f"{stem}{suffix}"))


def read_lines(path: Path) -> bytes:
    """Returns the whole lines of a file as JSON, each with its line end.

    Raises:
        OSError: the file cannot be read.
    """
    content = read_bytes(path)
    return json_lines(content) if is_packed(path) else content[: content.rfind(b"\n") + 1]


def stream_lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file as JSON, each with its line end; a torn last line has none.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path) as file:
        if not is_packed(path):
            yield from file
            return
        reader = LineReader()
        while block := file.read(_BLOCK_BYTES):
            for line in reader.lines(block):
                yield line + b"\n"
        if reader.rest:
            yield reader.rest


class Texts(NamedTuple):
    """The whole lines of a part of a file that are not packed.

    Attributes:
        content: each with its line end.
        end: the byte from which to continue once more lines are there.
    """

    content: bytes
    end: int


def read_texts(path: Path, *, begin: int = 0) -> Texts:
    """Reads the unpacked lines of a file, from a byte on, which must be an earlier file size or the end of other lines.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path) as file:
        begin = file.seek(begin // CELL * CELL if is_packed(path) else begin)
        content = file.read()
    if is_packed(path):
        whole = content[: whole_end(content)]
        return Texts(text_lines(whole), begin + len(whole))
    whole = content[: content.rfind(b"\n") + 1]
    return Texts(whole, begin + len(whole))


class LineFile:
    """A file of lines in the making.

    Args:
        descriptor: of the file, open for appending.
        path: of the file.
        constants: the values that are the same in all lines, by name.
    """

    def __init__(self, descriptor: int, path: Path, *, constants: Mapping[str, object]) -> None:
        self._descriptor = descriptor
        self._digest = FileDigest(line_count_of(path))
        self._packer = LinePacker(constants) if is_packed(path) else None
        self._texts: list[bytes] = []

    @property
    def digest(self) -> FileDigest:
        """The digest of the flushed lines."""
        return self._digest

    def add(self, line: msgspec.Struct, *, number: int, time_ns: int, text: Callable[[], bytes]) -> None:
        """Adds a line to the next write.

        Args:
            line: an event, or an operation.
            number: position of the line in the file.
            time_ns: when it is written.
            text: makes its JSON.
        """
        if self._packer is None:
            self._texts += (text(), b"\n")
        else:
            self._packer.add(line, number=number, time_ns=time_ns, text=text)

    def flush(self) -> None:
        """Writes the lines that were added since the last call.

        Raises:
            OSError: the write failed.
        """
        if self._packer is None:
            content = b"".join(self._texts)
            self._texts.clear()
        else:
            content = self._packer.pop()
        self._digest.update(content)
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def close(self) -> None:
        """Closes the file, after everything was flushed."""
        os.close(self._descriptor)
