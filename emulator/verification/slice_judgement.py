"""Judges a run that was read in slices, partition by partition, and puts together what was found.

Each step is a plain function, whoever has it done where.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from emulator.verification.census import FileCensus, HistoryCensus, PartCensus
from emulator.verification.judge import put_together, report_unjudged
from emulator.verification.line_reader import LineReader
from emulator.verification.lines_digest import FileContent
from emulator.verification.log_reader import logged_partitions
from emulator.verification.partition_judgement import PartitionJudgement, judge_partition
from emulator.verification.run_directory import RunDirectory
from emulator.verification.run_facts import RunFacts
from emulator.verification.run_plan import ReadLedger, RunPlan, differences
from emulator.verification.run_reader import RunEvidence, read_final_logs
from emulator.verification.run_slices import (
    FileKind,
    PartitionName,
    Slice,
    SliceCensus,
    SliceSummary,
    UnfitError,
)
from emulator.verification.verdict import VerdictReport


class MergedSlices(msgspec.Struct, frozen=True, kw_only=True):
    """A run without its partitions' own lines.

    Attributes:
        rare: lines that are no partition's alone, by the path of their file.
        files: what each event file was found to be; ``history``: the clients' histories, but for their sends.
        names: of all partitions that anything tells of, in order.
        lines: that each partition has; ``line_bytes``: bytes of them.
        sizes: bytes that were read of each file.
    """

    rare: dict[str, bytes]
    files: tuple[FileCensus, ...]
    history: HistoryCensus
    names: tuple[PartitionName, ...]
    lines: dict[PartitionName, int]
    line_bytes: dict[PartitionName, int]
    sizes: dict[str, int]


class PartitionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the lines of one partition.

    Attributes:
        lines: that were judged, rare events apart; ``line_bytes``: bytes of them.
        sent: records by acks; ``acked``: those that were acknowledged.
        sizes: bytes that were read of each file of its final logs.
    """

    judgement: PartitionJudgement
    lines: int
    line_bytes: int
    sent: dict[int, int]
    acked: dict[int, int]
    sizes: dict[str, int]


def merge_slices(run: RunDirectory, summaries: Iterable[SliceSummary]) -> MergedSlices:
    """Returns what all partitions of a run are judged beside.

    Raises:
        UnfitError: the slices of a file do not go on where those before end.
    """
    ordered = sorted(summaries, key=lambda each: each.census.slice.number)
    files, history = _censuses(run, [each.census for each in ordered])
    rare: dict[str, list[bytes]] = {}
    lines: Counter[PartitionName] = Counter()
    line_bytes: Counter[PartitionName] = Counter()
    sizes: Counter[str] = Counter()
    names = {name for _, directory in run.node_directories() for name in logged_partitions(directory)}
    for each in ordered:
        rare.setdefault(each.census.slice.path, []).append(each.rare)
        lines.update(each.lines)
        line_bytes.update(each.sizes)
        sizes[each.census.slice.path] += each.census.size
        names.update(each.mentioned)
    return MergedSlices(
        rare={path: b"".join(texts) for path, texts in rare.items()},
        files=files,
        history=history,
        names=tuple(sorted(names | lines.keys())),
        lines=dict(lines),
        line_bytes=dict(line_bytes),
        sizes=dict(sizes),
    )


def _censuses(run: RunDirectory, slices: Iterable[SliceCensus]) -> tuple[tuple[FileCensus, ...], HistoryCensus]:
    files = {path.name: FileCensus(file_name=path.name) for path in run.event_files()}
    history = HistoryCensus(seals={path.name: None for path in run.histories})
    next_numbers: Counter[str] = Counter()
    for found in sorted(slices, key=lambda census: census.slice.number):
        path = found.slice.path
        if found.lines and found.first != next_numbers[path]:
            raise UnfitError(f"{path} is not numbered in steps of one")
        next_numbers[path] += found.lines
        match found.slice.kind:
            case FileKind.EVENTS:
                _add_slice(files[Path(path).name], found)
            case FileKind.HISTORY:
                history.lines += found.lines
                if found.lines:
                    history.last = found.last
                    history.seals[Path(path).name] = found.seal
    return tuple(files.values()), history


def _add_slice(census: FileCensus, found: SliceCensus) -> None:
    census.lines += found.lines
    census.torn = found.torn if found.torn is not None else census.torn
    if found.process is None:
        return
    part = census.parts.setdefault(found.process, PartCensus(first=found.first, first_type=found.first_type))
    if len(census.parts) > 1:
        raise UnfitError(f"{census.file_name} has several processes' events")
    part.count += found.lines
    census.runs |= found.runs
    part.last, part.is_sealed = found.last, found.is_sealed
    part.last_type = found.last_type or part.last_type


def _read_rare(run: RunDirectory, rare: Mapping[str, bytes]) -> tuple[RunFacts, LineReader]:
    """Returns the facts that every partition is judged beside, and what read them.

    Args:
        run: the run.
        rare: lines that are no partition's alone, by the path of their file.
    """
    facts = RunFacts()
    reader = LineReader(facts)
    for path in run.event_files():
        reader.read_events(path.name, [rare.get(str(path.relative_to(run.path)), b"")])
    facts.cluster.node_directories.update(node for node, _ in run.node_directories())
    return facts, reader


def judge_lines(
    run: RunDirectory, name: PartitionName, rare: Mapping[str, bytes], lines: Sequence[tuple[Slice, bytes]]
) -> PartitionOutcome:
    """Judges one partition.

    Args:
        run: the run.
        name: of the partition.
        rare: lines that are no partition's alone, by the path of their file.
        lines: the partition's own, in any order.

    Raises:
        UnfitError: a line is not what it should be, or a send has no outcome.
        OSError: a final log cannot be read.
    """
    facts, reader = _read_rare(run, rare)
    ordered = sorted(lines, key=lambda each: each[0].number)
    for piece, text in ordered:
        if piece.kind is FileKind.EVENTS:
            reader.read_events(Path(piece.path).name, [text])
    for path in run.histories:
        reader.read_history(path.name, list(_of_file(str(path.relative_to(run.path)), ordered)))
    _check_fit(reader)
    timeline = facts.order_events()
    ledger = ReadLedger(run.path)
    read_final_logs(run, facts, timeline, ledger, only=name)
    return PartitionOutcome(
        judgement=judge_partition(facts.partition(*name), timeline, frozenset()),
        lines=sum(text.count(b"\n") for _, text in lines),
        line_bytes=sum(len(text) for _, text in lines),
        sent=reader.history.sent,
        acked=reader.history.acked,
        sizes=ledger.sizes,
    )


def _of_file(path: str, lines: Sequence[tuple[Slice, bytes]]) -> Iterator[bytes]:
    return (text for piece, text in lines if piece.path == path)


def _check_fit(reader: LineReader) -> None:
    history = reader.history
    if any(f.corrupt or f.torn is not None or f.incomplete or f.unknown_types for f in reader.files):
        raise UnfitError("a line is no event of the vocabulary")
    if history.corrupt or history.invoked.keys() != history.completed:
        raise UnfitError("a line is no operation, or a send has no outcome")


def finish(
    plan: RunPlan,
    merged: MergedSlices,
    outcomes: Sequence[PartitionOutcome],
    contents: Mapping[str, FileContent],
) -> VerdictReport:
    """Returns the report on a run.

    Args:
        plan: what was to be read.
        merged: what was read in slices.
        outcomes: of all partitions, in order.
        contents: how many lines each file of lines has, and their digest.

    Raises:
        UnfitError: a rare event is not what it should be.
    """
    unread = tuple(_unread(plan, merged, outcomes))
    if unread:
        return report_unjudged(plan.run, unread)
    facts, reader = _read_rare(plan.run, merged.rare)
    for path in plan.run.histories:
        reader.read_history(path.name, [merged.rare.get(str(path.relative_to(plan.run.path)), b"")])
    _check_fit(reader)
    sent, acked = Counter[int](), Counter[int]()
    for outcome in outcomes:
        sent.update(outcome.sent)
        acked.update(outcome.acked)
    history = msgspec.structs.replace(merged.history, sent=dict(sent), acked=dict(acked))
    evidence = RunEvidence(
        facts=facts,
        timeline=facts.order_events(),
        files=merged.files,
        history=history,
        contradictions=tuple(reader.contradictions),
        sizes=merged.sizes,
        contents=dict(contents),
    )
    return put_together(plan.run, evidence, [outcome.judgement for outcome in outcomes])


def _unread(plan: RunPlan, merged: MergedSlices, outcomes: Sequence[PartitionOutcome]) -> Iterator[str]:
    sizes = dict(merged.sizes)
    for outcome in outcomes:
        sizes.update(outcome.sizes)
    yield from differences(plan, sizes)
    judged = {(outcome.judgement.topic, outcome.judgement.partition): outcome for outcome in outcomes}
    for name in merged.names:
        lines, size = merged.lines.get(name, 0), merged.line_bytes.get(name, 0)
        found = judged.get(name)
        if found is None or (found.lines, found.line_bytes) != (lines, size):
            told = "none" if found is None else f"{found.lines} of {found.line_bytes} bytes"
            yield f"verification was to judge {lines} lines of {size} bytes of {name[0]}-{name[1]}, and judged {told}"
