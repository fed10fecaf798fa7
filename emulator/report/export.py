"""Writes runs as files for other programs."""

from collections.abc import Iterator, Sequence
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
from laststand.emulator.report.tla import MODULE, RULES, tla_configuration, tla_module
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
        ConfigError: there is no run, a line is invalid, or, for Perfetto, the run was not verified.
        OSError: a file cannot be read, or the target cannot be written.
    """
    match trace_format:
        case TraceFormat.JEPSEN:
            with target.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in jepsen_lines(_operations(run)))
        case TraceFormat.SHIVIZ:
            with target.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in shiviz_lines(logged_events(run)))
        case TraceFormat.PERFETTO:
            document = {"displayTimeUnit": "ms", "traceEvents": list(trace_events(read_story(run)))}
            target.write_bytes(msgspec.json.encode(document))


def write_tla(runs: Sequence[Path], directory: Path) -> None:
    """Writes runs as traces for the specification in ``docs/tla``: one module and TLC's configuration for all of them.

    Raises:
        ConfigError: there is no run, a line is invalid, the runs have different rules, or the specification does not
            cover one of them.
        OSError: a file cannot be read or written.
    """
    rules = {run: dict(open_run_directory(run).switches) for run in runs}
    first = rules[runs[0]]
    for run, own in rules.items():
        missing = [name for name in RULES if name not in own]
        if missing:
            raise ConfigError(
                key=str(run), value=None, expected=f"a run with rule {missing[0]}: the specification has it"
            )
        differing = [name for name in RULES if own[name] != first[name]]
        if differing:
            raise ConfigError(
                key=str(run), value=f"{differing[0]}={own[differing[0]]}", expected=f"the rules of {runs[0]}"
            )
    module = "\n".join(tla_module(map(logged_events, runs)))
    directory.mkdir(parents=True)
    (directory / f"{MODULE}.tla").write_text(module, encoding="utf-8")
    (directory / f"{MODULE}.cfg").write_text("\n".join(tla_configuration(first)), encoding="utf-8")


def logged_events(run: Path) -> Iterator[LoggedEvent]:
    """Yields the events of a run's nodes, file by file.

    Raises:
        ConfigError: there is no run, or a line is invalid.
        OSError: a file cannot be read.
    """
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
