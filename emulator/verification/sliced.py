"""Has Spark judge one large run in many tasks: its slices first, then its partitions (``run_slices``)."""

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from emulator.verification.acks_comparison import REPORT
from emulator.verification.lines_digest import FileContent
from emulator.verification.run_directory import RunDirectory
from emulator.verification.run_plan import ReadLedger, RunPlan
from emulator.verification.run_slices import (
    SLICE_BYTES,
    PartitionName,
    Slice,
    SortedSlice,
    UnfitError,
    slices_of,
    sort_slice,
    summary_of,
)
from emulator.verification.slice_judgement import PartitionOutcome, finish, judge_lines, merge_slices
from emulator.verification.verdict import VerdictReport

if TYPE_CHECKING:
    from pyspark.core.broadcast import Broadcast
    from pyspark.sql import SparkSession

SLICED_FROM_BYTES: Final = 64 << 20
"""Size of events and histories from which on two jobs cost less than they save."""

_Result = TypeVar("_Result")
_Lines = tuple[PartitionName, tuple[Slice, bytes]]


def is_large(plan: RunPlan) -> bool:
    """Whether a run is worth slices. A comparison of acks looks at all partitions together, and is read whole."""
    lines = sum(size for path, size in plan.sizes.items() if path.endswith(".jsonl"))
    return lines >= SLICED_FROM_BYTES and plan.run.report != REPORT


def judge_sliced(plan: RunPlan, *, spark: "SparkSession", slice_bytes: int = SLICE_BYTES) -> VerdictReport | None:
    """Returns the report on a run, or ``None`` where one process has to say what is wrong with it.

    Raises:
        PySparkException: a task failed; ``Py4JJavaError``, too.
    """
    from pyspark import StorageLevel

    run, context = plan.run, spark.sparkContext
    slices = slices_of(plan, slice_bytes=slice_bytes)
    found = context.parallelize(slices, max(len(slices), 1)).map(lambda piece: _fit(lambda: sort_slice(run, piece)))
    found.persist(StorageLevel.DISK_ONLY)
    try:
        summaries = found.map(lambda each: None if each is None else summary_of(each)).collect()
        fit = [summary for summary in summaries if summary is not None]
        merged = _fit(lambda: merge_slices(run, fit)) if len(fit) == len(summaries) else None
        if merged is None:
            return None
        names, rare = merged.names, context.broadcast(merged.rare)
        places = {name: place for place, name in enumerate(names)}
        outcomes = (
            found.flatMap(_lines)
            .partitionBy(max(len(names), 1), places.__getitem__)
            .mapPartitionsWithIndex(lambda place, lines: _judged(run, names[place : place + 1], rare, lines))
            .collect()
        )
        judged = [outcome for outcome in outcomes if outcome is not None]
        if len(judged) < len(outcomes):
            return None
        paths = sorted({piece.path for piece in slices})
        contents = dict(
            context.parallelize(paths, len(paths)).map(lambda path: (path, content_of(run, path))).collect()
        )
        final = context.parallelize([0], 1).map(lambda _: _fit(lambda: finish(plan, merged, judged, contents)))
        return final.collect()[0]
    finally:
        found.unpersist()


def _lines(found: SortedSlice | None) -> Iterator[_Lines]:
    if found is not None:
        for name, text in found.partitions.items():
            yield name, (found.census.slice, text)


def _judged(
    run: RunDirectory, names: tuple[PartitionName, ...], rare: "Broadcast[dict[str, bytes]]", lines: Iterable[_Lines]
) -> Iterator[PartitionOutcome | None]:
    own = [text for _, text in lines]
    for name in names:
        yield _fit(partial(judge_lines, run, name, rare.value, own))


def content_of(run: RunDirectory, path: str) -> FileContent:
    """Returns what a file of lines holds, whole: a slice has only a part of it."""
    ledger = ReadLedger(run.path)
    deque(ledger.blocks(run.path / path), maxlen=0)
    return ledger.contents[path]


def _fit(step: Callable[[], _Result]) -> _Result | None:
    """Returns what a step gives, without looking for cycles meanwhile, or ``None`` where the run is unfit for it."""
    gc.disable()
    try:
        return step()
    except UnfitError:
        return None
    finally:
        gc.enable()
