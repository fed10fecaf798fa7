"""Whether the evidence is whole: everything that makes a verdict ``unknown``.

A check can only say what the logs say. If a file is missing, has a gap, holds a line that is no event, or if the run
did not go as planned, then silence proves nothing. Each reason is a sentence; where it concerns one kind of evidence
it says which, so that checks which lean on that kind are ``unknown`` too instead of raising a false alarm.

One tear is normal: the last line of a process that was killed while it wrote. Everything else counts.
"""

from collections import Counter
from collections.abc import Iterator
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from emulator.core.events import (
    FaultInjected,
    IncarnationEnd,
    IncarnationEnded,
    IncarnationStarted,
    NodeStarted,
    NodeStopped,
    RunEnded,
)
from emulator.verification.check import Evidence
from emulator.verification.chronicle import Chronicle
from emulator.verification.fencings import unexplained_fencings
from emulator.verification.run_directory import RunDirectory
from emulator.verification.vocabulary import (
    CORRUPT,
    EVENT_TYPES,
    OPERATION_TYPES,
    required_columns,
    tag,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN_CHARACTERS: Final = 80
_TAIL_BYTES: Final = 4096
_State = TypeVar("_State", bound=msgspec.Struct)

_KILLED: Final = frozenset({IncarnationEnd.KILLED, IncarnationEnd.POWER_LOST})


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why a run proves nothing. ``about`` is ``None`` where no single kind of evidence is concerned."""

    about: Evidence | None
    sentence: str


class _FileState(msgspec.Struct, frozen=True, kw_only=True):
    file_name: str
    node: int | None
    incarnation: int | None
    lines: int
    first: int | None
    last: int | None
    distinct: int
    corrupt: tuple[str, ...]
    strangers: tuple[str, ...]
    incomplete: tuple[str, ...]
    first_type: str | None
    last_type: str | None


class _HistoryState(msgspec.Struct, frozen=True, kw_only=True):
    lines: int
    last: int | None
    distinct: int
    corrupt: int
    invoked: int
    completed: int
    acked: int


class _ReadState(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    is_read: bool
    error: str | None


class _Gap(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    replica: int


def find_doubts(
    runs: tuple[RunDirectory, ...], chronicles: tuple[Chronicle, ...], *, spark: "SparkSession"
) -> tuple[tuple[Doubt, ...], ...]:
    """Returns the doubts about each run, in a fixed order.

    Args:
        runs: what was loaded.
        chronicles: of the same runs.
        spark: session with the tables and facts.
    """
    files = _by_run(spark, _FILES, _FileState, len(runs))
    histories = _by_run(spark, _HISTORY, _HistoryState, len(runs))
    reads = _by_run(spark, _READS, _ReadState, len(runs))
    gaps = _by_run(spark, _GAPS, _Gap, len(runs))
    return tuple(
        (
            *_about_harness(chronicle),
            *_about_files(run, chronicle, files[number]),
            *_about_history(histories[number]),
            *_about_reads(reads[number], gaps[number]),
            *(Doubt(about=None, sentence=sentence) for sentence in unexplained_fencings(chronicle)),
        )
        for number, (run, chronicle) in enumerate(zip(runs, chronicles, strict=True))
    )


def _about_harness(chronicle: Chronicle) -> Iterator[Doubt]:
    started = list(chronicle.of(IncarnationStarted))
    ended = {(end.ended_node, end.ended_incarnation): end for end in chronicle.of(IncarnationEnded)}
    if not started:
        yield Doubt(about=Evidence.EVENTS, sentence="the harness's event file is missing or names no process")
        return
    finish = list(chronicle.of(RunEnded))
    if not finish:
        yield Doubt(about=None, sentence="the harness did not reach the end of the run")
    for end in finish:
        if end.problem is not None:
            yield Doubt(about=None, sentence=f"the plan did not reach its end: {end.problem}")
    for fault in chronicle.of(FaultInjected):
        if fault.bit is None:
            yield Doubt(about=None, sentence=f"fault {fault.fault} on {fault.target} did not bite")
    for process in started:
        end_of_it = ended.get((process.started_node, process.started_incarnation))
        name = f"incarnation {process.started_incarnation} of node {process.started_node}"
        if end_of_it is None:
            yield Doubt(about=Evidence.EVENTS, sentence=f"nobody noted how {name} ended")
        elif end_of_it.end is IncarnationEnd.UNEXPECTED:
            yield Doubt(about=None, sentence=f"{name} ended by itself with exit code {end_of_it.exit_code}")
    rules = {msgspec.json.encode(node.switches, order="sorted") for node in chronicle.of(NodeStarted) if node.switches}
    if len(rules) > 1:
        yield Doubt(about=None, sentence="the nodes of the run did not all have the same switches")


def _about_files(run: RunDirectory, chronicle: Chronicle, files: list[_FileState]) -> Iterator[Doubt]:
    states: dict[str, list[_FileState]] = {}
    for state in files:
        states.setdefault(state.file_name, []).append(state)
    ends = {(end.ended_node, end.ended_incarnation): end.end for end in chronicle.of(IncarnationEnded)}
    announced = {process.event_file.rpartition("/")[2]: process for process in chronicle.of(IncarnationStarted)}
    for name in sorted(announced.keys() - states.keys()):
        yield Doubt(about=Evidence.EVENTS, sentence=f"event file {name} is missing or empty")
    torn = {path.name: _torn_tail(path) for path in run.event_files()}
    for name, parts in sorted(states.items()):
        process = announced.get(name)
        end = None if process is None else ends.get((process.started_node, process.started_incarnation))
        tear = torn.get(name) if end in _KILLED else None
        for sentence in _file_problems(parts, tear=tear, is_stopped=end is IncarnationEnd.STOPPED):
            yield Doubt(about=Evidence.EVENTS, sentence=f"event file {name} {sentence}")


def _file_problems(parts: list[_FileState], *, tear: str | None, is_stopped: bool) -> Iterator[str]:
    corrupt = [line for part in parts for line in part.corrupt]
    if tear is not None and tear in corrupt:
        corrupt.remove(tear)
    if corrupt:
        yield f"has {len(corrupt)} lines that are no events, such as {corrupt[0][:_SHOWN_CHARACTERS]!r}"
    for part in parts:
        if part.strangers:
            yield f"has events of unknown type {', '.join(part.strangers)}"
        if part.incomplete:
            yield f"has events with missing fields: {', '.join(part.incomplete)}"
    whole = [part for part in parts if part.lines > len(part.corrupt)]
    if len(whole) > 1:
        yield "mixes lines of several incarnations"
    for part in whole:
        count = part.lines - len(part.corrupt)
        if part.first != 0 or part.last != count - 1 or part.distinct != count:
            yield f"has gaps: {count} events, numbered {part.first} to {part.last}"
        if part.first_type != tag(NodeStarted):
            yield f"begins with {part.first_type} instead of {tag(NodeStarted)}"
        if is_stopped and part.last_type != tag(NodeStopped):
            yield f"ends with {part.last_type}, though the process was not killed"


def _torn_tail(path: Path) -> str | None:
    """Returns the text after the last line end; ``None`` if the file ends with one."""
    with path.open("rb") as file:
        size = file.seek(0, SEEK_END)
        tail = b""
        while size > 0 and b"\n" not in tail:
            step = min(size, _TAIL_BYTES)
            size -= step
            file.seek(size)
            tail = file.read(step) + tail
    return tail.rpartition(b"\n")[2].decode(errors="replace") or None


def _about_history(states: list[_HistoryState]) -> Iterator[Doubt]:
    state = states[0] if states else None
    if state is None or state.lines == 0:
        yield Doubt(about=Evidence.HISTORY, sentence="the history is missing or empty")
        return
    if state.corrupt:
        yield Doubt(about=Evidence.HISTORY, sentence=f"the history has {state.corrupt} lines that are no operations")
    whole = state.lines - state.corrupt
    if state.distinct != whole or (state.last is not None and state.last != whole - 1):
        yield Doubt(
            about=Evidence.HISTORY, sentence=f"the history has gaps: {whole} lines, numbered up to {state.last}"
        )
    if state.invoked != state.completed:
        yield Doubt(
            about=Evidence.HISTORY,
            sentence=f"{state.invoked} sends were begun and {state.completed} completed",
        )
    if state.acked == 0:
        yield Doubt(about=None, sentence="no record was acknowledged with acks=all")


def _about_reads(reads: list[_ReadState], gaps: list[_Gap]) -> Iterator[Doubt]:
    for read in sorted(reads, key=lambda r: (r.topic, r.partition)):
        if not read.is_read:
            why = "" if read.error is None else f": {read.error}"
            yield Doubt(about=None, sentence=f"the final consumer did not read {read.topic}-{read.partition}{why}")
    for node, count in sorted(Counter(gap.replica for gap in gaps).items()):
        yield Doubt(
            about=Evidence.FINAL_LOGS, sentence=f"the logs of broker {node} are missing ({count} partitions' replicas)"
        )


_INCOMPLETE = " ".join(
    f"WHEN '{tag(kind)}' THEN {' OR '.join(f'`{name}` IS NULL' for name in required_columns(kind))}"
    for kind in EVENT_TYPES
)

_FILES = f"""
    SELECT run, file_name, node, incarnation, count(*) AS lines, min(sequence) AS first, max(sequence) AS last,
           count(DISTINCT sequence) AS distinct, collect_list({CORRUPT}) AS corrupt,
           array_distinct(collect_list(IF({CORRUPT} IS NULL AND type IS NULL OR type NOT IN (
               {", ".join(f"'{tag(kind)}'" for kind in EVENT_TYPES)}), coalesce(type, 'none'), NULL))) AS strangers,
           array_distinct(collect_list(IF({CORRUPT} IS NULL AND CASE type {_INCOMPLETE} ELSE FALSE END, type, NULL)))
               AS incomplete,
           min_by(type, sequence) AS first_type, max_by(type, sequence) AS last_type
    FROM event_line
    GROUP BY run, file_name, node, incarnation
"""

_OPERATION_INCOMPLETE = " ".join(
    f"WHEN '{tag(kind)}' THEN {' OR '.join(f'`{name}` IS NULL' for name in required_columns(kind))}"
    for kind in OPERATION_TYPES
)

_HISTORY = f"""
    SELECT run, count(*) AS lines, max(index) AS last,
           count(DISTINCT IF(is_bad, NULL, index)) AS distinct, count_if(is_bad) AS corrupt,
           count(DISTINCT IF(NOT is_bad AND f = 'send' AND type = 'invoke', operation_id, NULL)) AS invoked,
           count(DISTINCT IF(NOT is_bad AND f = 'send' AND type <> 'invoke', operation_id, NULL)) AS completed,
           count_if(NOT is_bad AND f = 'send' AND type = 'ok' AND acks = -1) AS acked
    FROM (SELECT *, {CORRUPT} IS NOT NULL OR CASE f {_OPERATION_INCOMPLETE} ELSE TRUE END AS is_bad FROM history_line)
    GROUP BY run
"""

_READS = """
    SELECT a.run, a.topic, a.partition, count_if(f.type = 'ok') > 0 AS is_read, max(f.error) AS error
    FROM (SELECT DISTINCT run, topic, partition FROM acked_batch WHERE acks = -1) a
    LEFT JOIN final_read_operation f ON f.run = a.run AND f.topic = a.topic AND f.partition = a.partition
    GROUP BY a.run, a.topic, a.partition
"""

_GAPS = """
    SELECT p.run, p.topic, p.partition, p.replica
    FROM (SELECT run, topic, partition, explode(replicas) AS replica FROM partition_state) p
    LEFT ANTI JOIN node_directory n ON n.run = p.run AND n.node = p.replica
"""


def _by_run(spark: "SparkSession", query: str, kind: type[_State], runs: int) -> list[list[_State]]:
    found: list[list[_State]] = [[] for _ in range(runs)]
    for row in spark.sql(query).collect():
        found[row["run"]].append(msgspec.convert(row.asDict(recursive=True), kind))
    return found
