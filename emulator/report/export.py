"""Runs as files of other programs."""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.history import HistoryLine
from laststand.emulator.report.jepsen import jepsen_lines
from laststand.emulator.report.perfetto import trace_events
from laststand.emulator.report.shiviz import LoggedEvent, shiviz_lines
from laststand.emulator.storage.line_file import stream_lines
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.story.story_file import read_story
from laststand.emulator.verification.tables.event_lines import Line


class TraceFormat(Enum):
    """Formats of which each run is a file."""

    JEPSEN = "jepsen"
    PERFETTO = "perfetto"
    SHIVIZ = "shiviz"


_EVENT: Final[msgspec.json.Decoder[events.AnyEvent]] = msgspec.json.Decoder(events.AnyEvent)
_ENVELOPE: Final = msgspec.json.Decoder(Line)
_HISTORY: Final[msgspec.json.Decoder[HistoryLine]] = msgspec.json.Decoder(HistoryLine)


def write_trace(run: Path, target: Path, trace_format: TraceFormat) -> None:
    """Writes a run as one file.

    Raises:
        ConfigError: there is no run, a line is not what it should be, or, for Perfetto, it was not verified.
        OSError: a file cannot be read, or the target cannot be written.
    """
    match trace_format:
        case TraceFormat.JEPSEN:
            with target.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in jepsen_lines(_operations(run)))
        case TraceFormat.SHIVIZ:
            with target.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in shiviz_lines(_events(run)))
        case TraceFormat.PERFETTO:
            document = {"displayTimeUnit": "ms", "traceEvents": list(trace_events(read_story(run)))}
            target.write_bytes(msgspec.json.encode(document))


def _events(run: Path) -> Iterator[LoggedEvent]:
    for path in open_run_directory(run).event_files():
        for place, line in _lines(path):
            try:
                envelope, event = _ENVELOPE.decode(line), _EVENT.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise ConfigError(key="events", value=place, expected=f"an event ({error})") from None
            yield LoggedEvent(envelope.time_ns, envelope.node, envelope.incarnation, envelope.sequence, event)


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    for number, line in enumerate(stream_lines(path), start=1):
        yield f"{path}:{number}", line


def _operations(run: Path) -> Iterator[HistoryLine]:
    for path in open_run_directory(run).histories:
        for place, line in _lines(path):
            try:
                yield _HISTORY.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise ConfigError(key="history", value=place, expected=f"an operation ({error})") from None
