"""Runs as files of other programs."""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from emulator.core.errors import ConfigError
from emulator.core.history import HistoryLine
from emulator.report.jepsen import jepsen_lines
from emulator.report.perfetto import trace_events
from emulator.verification.run_directory import open_run_directory
from emulator.verification.story_file import read_story


class TraceFormat(Enum):
    """Formats of which each run is a file."""

    JEPSEN = "jepsen"
    PERFETTO = "perfetto"


_HISTORY: Final[msgspec.json.Decoder[HistoryLine]] = msgspec.json.Decoder(HistoryLine)


def write_trace(run: Path, target: Path, trace_format: TraceFormat) -> None:
    """Writes a run as one file.

    Raises:
        ConfigError: there is no run, a line of its history is no operation, or, for Perfetto, it was not verified.
        OSError: a file cannot be read, or the target cannot be written.
    """
    match trace_format:
        case TraceFormat.JEPSEN:
            with target.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in jepsen_lines(_operations(run)))
        case TraceFormat.PERFETTO:
            document = {"displayTimeUnit": "ms", "traceEvents": list(trace_events(read_story(run)))}
            target.write_bytes(msgspec.json.encode(document))


def _operations(run: Path) -> Iterator[HistoryLine]:
    for path in open_run_directory(run).histories:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield _HISTORY.decode(line)
                except msgspec.MsgspecError as error:
                    raise ConfigError(
                        key="history", value=f"{path}:{number}", expected=f"an operation ({error})"
                    ) from None
