"""Has Spark judge one large run in many tasks: its slices first, then its partitions (``run_slices``)."""

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from emulator.core.packed.layout import SUFFIX
from emulator.core.packed.reading import is_packed
from emulator.verification.acks_comparison import REPORT
from emulator.verification.judge import Judgement
from emulator.verification.row_tables import PartitionName
from emulator.verification.run_directory import RunDirectory
from emulator.verification.run_plan import RunPlan
from emulator.verification.run_slices import (
    SLICE_BYTES,
    Slice,
    SliceSummary,
    UnfitError,
    slices_of,
    sort_slice,
    summary_of,
)
from emulator.verification.slice_judgement import PartitionOutcome, finish, judge_rows, merge_slices
from emulator.verification.slice_rows import SliceRows

if TYPE_CHECKING:
    from pyspark.core.broadcast import Broadcast
    from pyspark.sql import SparkSession

SLICED_FROM_BYTES: Final = 64 << 20
"""Size of events and histories from which on two jobs cost less than they save."""

_SUFFIXES: Final = (SUFFIX, ".jsonl")
_PACKED_WEIGHT: Final = 2
"""A packed line takes a quarter of the bytes of its JSON, and reading it half the time."""

_PICKLED: Final = 5

_Result = TypeVar("_Result")
_Rows = tuple[PartitionName, tuple[Slice, bytes]]


class _Sorted(NamedTuple):
    """A sorted slice on its way: ``partitions`` has the ``SliceRows`` of each, pickled once for the whole way."""

    summary: SliceSummary
    partitions: dict[PartitionName, bytes]


def is_large(plan: RunPlan) -> bool:
    """Whether a run is worth slices. A comparison of acks looks at all partitions together, and is read whole."""
    lines = sum(
        size * (_PACKED_WEIGHT if is_packed(path) else 1)
        for path, size in plan.sizes.items()
        if PurePath(path).suffix in _SUFFIXES
    )
    return lines >= SLICED_FROM_BYTES and plan.run.report != REPORT


def judge_sliced(plan: RunPlan, *, spark: "SparkSession", slice_bytes: int = SLICE_BYTES) -> Judgement | None:
    """Returns the report on a run and its story, or ``None`` where one process has to say what is wrong with it.

    Raises:
        PySparkException: a task failed; ``Py4JJavaError``, too.
    """
    from pyspark import StorageLevel

    run, context = plan.run, spark.sparkContext
    slices = slices_of(plan, slice_bytes=slice_bytes)
    found = context.parallelize(slices, max(len(slices), 1)).map(lambda piece: _fit(lambda: _sorted(run, piece)))
    found.persist(StorageLevel.DISK_ONLY)
    try:
        summaries = found.map(lambda each: None if each is None else each.summary).collect()
        fit = [summary for summary in summaries if summary is not None]
        merged = _fit(lambda: merge_slices(run, fit)) if len(fit) == len(summaries) else None
        if merged is None:
            return None
        names, rare = merged.names, context.broadcast(merged.rare)
        places = {name: place for place, name in enumerate(names)}
        outcomes = (
            found.flatMap(_rows)
            .partitionBy(max(len(names), 1), places.__getitem__)
            .mapPartitionsWithIndex(lambda place, pieces: _judged(run, names[place : place + 1], rare, pieces))
            .collect()
        )
        judged = [outcome for outcome in outcomes if outcome is not None]
        if len(judged) < len(outcomes):
            return None
        final = context.parallelize([0], 1).map(lambda _: _fit(lambda: finish(plan, merged, judged)))
        return final.collect()[0]
    finally:
        found.unpersist()


def _sorted(run: RunDirectory, piece: Slice) -> _Sorted:
    found = sort_slice(run, piece)
    return _Sorted(summary_of(found), {name: pickle.dumps(rows, _PICKLED) for name, rows in found.partitions.items()})


def _rows(found: _Sorted | None) -> Iterator[_Rows]:
    if found is not None:
        for name, rows in found.partitions.items():
            yield name, (found.summary.census.slice, rows)


def _judged(
    run: RunDirectory, names: tuple[PartitionName, ...], rare: "Broadcast[dict[str, bytes]]", pieces: Iterable[_Rows]
) -> Iterator[PartitionOutcome | None]:
    own: list[tuple[Slice, SliceRows]] = [(piece, pickle.loads(rows)) for _, (piece, rows) in pieces]
    for name in names:
        yield _fit(partial(judge_rows, run, name, rare.value, own))


def _fit(step: Callable[[], _Result]) -> _Result | None:
    """Returns what a step gives, without looking for cycles meanwhile, or ``None`` where the run is unfit for it."""
    gc.disable()
    try:
        return step()
    except UnfitError:
        return None
    finally:
        gc.enable()
