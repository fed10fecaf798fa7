"""Judges a run that was read in slices, partition by partition, and combines the results.

Each step is a plain function that can run in any process.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from laststand.emulator.core.history import OperationType
from laststand.emulator.verification.facts.run import RunFacts
from laststand.emulator.verification.judge import Judgement, compose_report, join_stories, report_unjudged, story_of
from laststand.emulator.verification.reading.census import FileCensus, HistoryCensus, PartCensus, SendStream
from laststand.emulator.verification.reading.digest import DigestPart, FileContent, join_parts
from laststand.emulator.verification.reading.lines import LineReader
from laststand.emulator.verification.reading.logs import logged_partitions
from laststand.emulator.verification.reading.run import (
    RunEvidence,
    read_descriptions,
    read_final_logs,
    read_metadata_logs,
    read_owners,
    read_zookeeper_logs,
)
from laststand.emulator.verification.reading.run_directory import RunDirectory
from laststand.emulator.verification.reading.run_plan import ReadLedger, RunPlan, differences
from laststand.emulator.verification.slices.reading import (
    FileKind,
    SliceCensus,
    SliceSummary,
    UnfitError,
)
from laststand.emulator.verification.slices.rows import SliceRows
from laststand.emulator.verification.story.run import PartitionStory, RunStory
from laststand.emulator.verification.tables.client_history import BegunSend, SentBatch
from laststand.emulator.verification.tables.columns import Table
from laststand.emulator.verification.tables.matching import groups_of
from laststand.emulator.verification.tables.rows import PartitionName
from laststand.emulator.verification.tables.timeline import Timeline
from laststand.emulator.verification.verdict.partition_judgement import PartitionJudgement, judge_partition


class MergedSlices(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a run that do not belong to a single partition, and the facts about all slices.

    Attributes:
        rare: lines of rare events, by the path of their file.
        files: the census of each event file; ``history``: that of the clients' histories, without their sends.
        names: of all partitions that any evidence names, in order.
        lines: number of lines of each partition.
        sizes: bytes that were read of each file.
        contents: each file's number of lines and digest.
    """

    rare: dict[str, bytes]
    files: tuple[FileCensus, ...]
    history: HistoryCensus
    names: tuple[PartitionName, ...]
    lines: dict[PartitionName, int]
    sizes: dict[str, int]
    contents: dict[str, FileContent]


class PartitionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of judging the lines of one partition.

    Attributes:
        story: the story of the partition; a run's story with the problem, if there was an error.
        lines: number of lines that were judged, without rare events.
        sent: records of each producer and acks; ``acked``: those that were acknowledged.
        sizes: numbers of bytes read of each file of its final logs; ``contents``: digests of the same files.

    """

    judgement: PartitionJudgement
    story: PartitionStory | RunStory
    lines: int
    sent: dict[SendStream, int]
    acked: dict[SendStream, int]
    sizes: dict[str, int]
    contents: dict[str, FileContent]


class RareEvidence:
    """The rare events of a run, read once by each process that judges partitions.

    Attributes:
        run: the run.
        lines: by the path of their file.
    """

    def __init__(self, run: RunDirectory, lines: Mapping[str, bytes]) -> None:
        self.run = run
        self.lines = lines

    def __reduce__(self) -> tuple[type["RareEvidence"], tuple[RunDirectory, Mapping[str, bytes]]]:
        """Pickles the lines without the facts derived from them."""
        return RareEvidence, (self.run, self.lines)

    @property
    def facts(self) -> RunFacts:
        """The facts from rare events, which every partition is judged with.

        Raises:
            UnfitError: a line is invalid.
        """
        facts, reader = self._read
        _check_fit(reader)
        return facts

    @cached_property
    def _read(self) -> tuple[RunFacts, LineReader]:
        return _read_rare(self.run, self.lines)

    @cached_property
    def timeline(self) -> Timeline:
        """The events of the facts, in order."""
        return self.facts.order_events()


def merge_slices(run: RunDirectory, summaries: Iterable[SliceSummary]) -> MergedSlices:
    """Returns the rare facts of a run, which every partition is judged with.

    Raises:
        UnfitError: the slices of a file do not continue each other.
    """
    ordered = sorted(summaries, key=lambda each: each.census.slice.number)
    files, history = _censuses(run, [each.census for each in ordered])
    rare: dict[str, list[bytes]] = {}
    lines: Counter[PartitionName] = Counter()
    sizes: Counter[str] = Counter()
    digests: dict[str, list[DigestPart]] = {}
    names = {name for _, directory in run.node_directories() for name in logged_partitions(directory)}
    for each in ordered:
        rare.setdefault(each.census.slice.path, []).append(each.rare)
        lines.update(each.lines)
        sizes[each.census.slice.path] += each.census.size
        digests.setdefault(each.census.slice.path, []).append(each.census.digest)
        names.update(each.mentioned)
    return MergedSlices(
        rare={path: b"".join(texts) for path, texts in rare.items()},
        files=files,
        history=history,
        names=tuple(sorted(names | lines.keys())),
        lines=dict(lines),
        sizes=dict(sizes),
        contents={path: join_parts(parts) for path, parts in digests.items()},
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
    """Returns the facts from rare events, which every partition is judged with, and their reader.

    Args:
        run: the run.
        rare: lines of rare events, by the path of their file.
    """
    facts = RunFacts()
    reader = LineReader(facts)
    for path in run.event_files():
        reader.read_event_lines(path.name, rare.get(str(path.relative_to(run.path)), b""))
    facts.cluster.node_directories.update(node for node, _ in run.node_directories())
    return facts, reader


def judge_rows(name: PartitionName, rare: RareEvidence, found: SliceRows) -> PartitionOutcome:
    """Judges one partition.

    Args:
        name: of the partition.
        rare: the rare events of the run.
        found: the rows of the partition in all slices.

    Raises:
        UnfitError: a line is invalid, or a send has no outcome.
        OSError: a final log cannot be read.
    """
    timeline = rare.timeline
    matched = found.matched()
    if matched is None:
        raise UnfitError("a send has no outcome, or several")
    partition = rare.facts.apart(*name)
    partition.add_rows(matched)
    partition.events.sort()
    partition.polls.extend(found.polls)
    partition.replace_late_ids()
    partition.final_reads.extend(found.final_reads)
    ledger = ReadLedger(rare.run.path)
    read_final_logs(rare.run, rare.facts, timeline, ledger, only=partition)
    sent = matched.sent
    judgement = judge_partition(partition, timeline, frozenset())
    return PartitionOutcome(
        judgement=judgement,
        story=story_of(partition, judgement.losses),
        lines=found.lines,
        sent=_records(name, found.begun),
        acked=_records(name, sent.only(sent.has("type", OperationType.OK))),
        sizes=ledger.sizes,
        contents=ledger.contents,
    )


def _records(name: PartitionName, sends: Table[BegunSend] | Table[SentBatch]) -> dict[SendStream, int]:
    """Returns the number of records by producer and acks."""
    producers, acks, counts = sends["process"], sends["acks"], sends["record_count"]
    names = sends.words("process")
    return {
        SendStream(*name, names[producers[places[0]]], int(acks[places[0]])): int(counts[places].sum())
        for places in groups_of(producers, acks)
    }


def _check_fit(reader: LineReader) -> None:
    history = reader.history
    if any(f.corrupt or f.torn is not None or f.incomplete or f.unknown_types for f in reader.files):
        raise UnfitError("a line is no event of the vocabulary")
    if history.corrupt or history.repeated or history.invoked.keys() != history.completed:
        raise UnfitError("a line is no operation, or a send has no outcome")


def finish(
    plan: RunPlan,
    merged: MergedSlices,
    outcomes: Sequence[PartitionOutcome],
) -> Judgement:
    """Returns the report on a run, and its story.

    Args:
        plan: the files to read.
        merged: the content of the slices.
        outcomes: of all partitions, in order.

    Raises:
        UnfitError: a rare event is invalid.
        OSError: the log of a controller, or of a ZooKeeper server, cannot be read.
    """
    ledger = ReadLedger(plan.run.path)
    read_descriptions(plan.run, ledger)
    owners = read_owners(plan.run, ledger)
    metadata_logs = read_metadata_logs(plan.run, ledger)
    zookeeper_logs = read_zookeeper_logs(plan.run, ledger)
    unread = tuple(_unread(plan, {**merged.sizes, **ledger.sizes}, merged, outcomes))
    if unread:
        return Judgement(number=plan.number, report=report_unjudged(plan.run, unread))
    facts, reader = _read_rare(plan.run, merged.rare)
    facts.cluster.metadata_logs = metadata_logs
    _check_fit(reader)
    sent, acked = Counter[SendStream](), Counter[SendStream]()
    contents: dict[str, FileContent] = {}
    for outcome in outcomes:
        sent.update(outcome.sent)
        acked.update(outcome.acked)
        contents.update(outcome.contents)
    contents.update(ledger.contents)
    contents.update(merged.contents)
    history = msgspec.structs.replace(merged.history, sent=dict(sent), acked=dict(acked))
    evidence = RunEvidence(
        run=plan.run,
        facts=facts,
        timeline=facts.order_events(),
        files=merged.files,
        history=history,
        contradictions=facts.cluster.quorum.unexplained(reader.contradictions),
        sizes=merged.sizes,
        contents=contents,
        owners=owners,
        metadata_logs=metadata_logs,
        zookeeper_logs=zookeeper_logs,
    )
    report = compose_report(plan.run, evidence, [outcome.judgement for outcome in outcomes])
    story = join_stories(facts.cluster, [outcome.story for outcome in outcomes])
    return Judgement(number=plan.number, report=report, story=story)


def _unread(
    plan: RunPlan, read: Mapping[str, int], merged: MergedSlices, outcomes: Sequence[PartitionOutcome]
) -> Iterator[str]:
    sizes = dict(read)
    for outcome in outcomes:
        sizes.update(outcome.sizes)
    yield from differences(plan, sizes)
    judged = {(outcome.judgement.topic, outcome.judgement.partition): outcome for outcome in outcomes}
    for name in merged.names:
        lines, found = merged.lines.get(name, 0), judged.get(name)
        if found is None or found.lines != lines:
            counted = "none" if found is None else str(found.lines)
            yield f"verification was to judge {lines} lines of {name[0]}-{name[1]}, and judged {counted}"
