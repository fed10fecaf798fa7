"""Notices runs that end below a directory.

A run has ended when its harness has recorded ``RunEnded`` and writes nothing more; a run whose harness was killed never
ends. A run that has a ``verdict.json`` was judged before.
"""

import os
from pathlib import Path
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.user_files import open_file
from laststand.emulator.verification.reading.run_directory import runs_below
from laststand.emulator.verification.tables.vocabulary import tag
from laststand.emulator.verification.verdict.forms import VERDICT_FILE

_TAIL_BYTES: Final = 1 << 16
"""More than the bytes that a harness writes after ``RunEnded``."""
_END: Final = tag(events.RunEnded).encode()

_Signature = tuple[tuple[str, int, int], ...]
"""Name, size and time of change of each event file."""


class EndedRuns:
    """The runs below a directory; each is listed once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: dict[Path, _Signature] = {}
        self._listed: set[Path] = set()

    def poll(self) -> list[Path]:
        """Returns the runs that have ended and have not changed since the previous poll."""
        ended = []
        for run in runs_below(self._directory):
            if run in self._listed or (run / VERDICT_FILE).exists():
                continue
            signature = _signature(run)
            if self._seen.get(run) == signature and _has_end(run):
                ended.append(run)
                self._listed.add(run)
            self._seen[run] = signature
        return ended


def _signature(run: Path) -> _Signature:
    try:
        with os.scandir(run / "events") as entries:
            return tuple(sorted((e.name, e.stat().st_size, e.stat().st_mtime_ns) for e in entries))
    except OSError:
        return ()


def _has_end(run: Path) -> bool:
    return any(_END in _tail(path) for path in (run / "events").glob("*.jsonl"))


def _tail(path: Path) -> bytes:
    try:
        with open_file(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return file.read()
    except OSError:
        return b""
