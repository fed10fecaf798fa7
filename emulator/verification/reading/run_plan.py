"""Plans the reading of a run by the listing of its directory: files, and the size of each.

The driver plans; a task reads, and reports how many bytes of each file it read. Any difference makes the verdict
``unknown``: a worker that sees another directory, or a part of it, would otherwise find no loss.
"""

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from laststand.emulator.core.packed.reading import is_packed
from laststand.emulator.user_files import open_file
from laststand.emulator.verification.reading.digest import FileContent, LinesDigest, ReadFile, read_file
from laststand.emulator.verification.reading.logs import log_files
from laststand.emulator.verification.reading.packed_columns import segments
from laststand.emulator.verification.reading.run_directory import RunDirectory

_BLOCK_BYTES: Final = 1 << 20
"""Large enough for the cost per block not to matter, small enough to read a block again line by line."""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The part of one run that a task has to read.

    Attributes:
        number: of the run among those that are verified together.
        sizes: bytes of each file, by its path in the run's directory.
    """

    number: int
    run: RunDirectory
    sizes: Mapping[str, int]


class ReadLedger:
    """Reads files of a run, and keeps count.

    Attributes:
        sizes: bytes of each file that was read, by its path in the run's directory.
        contents: the digest of each file, by the same path.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self.sizes: dict[str, int] = {}
        self.contents: dict[str, FileContent] = {}

    def read(self, path: Path) -> ReadFile:
        """Returns the content of a file.

        Raises:
            OSError: the file cannot be read.
        """
        file = read_file(path)
        name = str(path.relative_to(self._run))
        self.sizes[name] = len(file.content)
        self.contents[name] = FileContent(None, file.digest)
        return file

    def blocks(self, path: Path) -> Iterator[bytes]:
        """Yields a file in blocks of complete lines, the last of which may be torn; nothing if the file is missing.

        Blocks of a packed file are its segments.
        """
        size = 0
        digest = LinesDigest(is_packed_file=is_packed(path))
        try:
            with open_file(path) as file:
                for block in segments(file) if is_packed(path) else _blocks_of_lines(file):
                    size += len(block)
                    digest.add(block)
                    yield block
        except FileNotFoundError:
            return
        name = str(path.relative_to(self._run))
        self.sizes[name] = size
        self.contents[name] = digest.finish()


def _blocks_of_lines(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_BLOCK_BYTES):
        yield block + file.readline()


def plan_run(number: int, run: RunDirectory) -> RunPlan:
    """Lists what there is to read of a run."""
    files = [*run.descriptions(), *run.event_files(), *run.histories]
    for _, directory in run.node_directories():
        files.extend(log_files(directory))
    return RunPlan(number=number, run=run, sizes={str(p.relative_to(run.path)): p.stat().st_size for p in files})


def differences(plan: RunPlan, read: Mapping[str, int]) -> Iterator[str]:
    """Yields a sentence for each file of which not all was read, or more than was planned."""
    if plan.sizes and not read:
        yield f"{socket.gethostname()}, which was to verify the run, sees no file of it"
        return
    for name in sorted(plan.sizes.keys() | read.keys()):
        planned, found = plan.sizes.get(name), read.get(name)
        if planned != found:
            yield f"verification was to read {_size(planned)} of {name}, and read {_size(found)}"


def _size(size: int | None) -> str:
    return "nothing" if size is None else f"{size} bytes"
