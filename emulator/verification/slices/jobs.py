"""Lets Spark judge one large run in many tasks: its slices first, then its partitions (``slices.reading``)."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeVar

from laststand.emulator.core.packed.layout import SUFFIX
from laststand.emulator.core.packed.reading import is_packed
from laststand.emulator.verification.judge import Judgement, report_unjudged
from laststand.emulator.verification.reading.run_plan import RunPlan
from laststand.emulator.verification.slices.exchange import NamedRows, exchange
from laststand.emulator.verification.slices.judgement import (
    PartitionOutcome,
    RareEvidence,
    finish,
    judge_rows,
    merge_slices,
)
from laststand.emulator.verification.slices.reading import (
    SLICE_BYTES,
    Slice,
    SortedSlice,
    UnfitError,
    slices_of,
    sort_slice,
)
from laststand.emulator.verification.verdict.requested import ACKS_COMPARISON

if TYPE_CHECKING:
    from laststand.emulator.verification.spark.tasks import SparkTasks

SLICED_FROM_BYTES: Final = 64 << 20
"""Size of events and histories from which on slices are faster than a single task."""

_SUFFIXES: Final = (SUFFIX, ".jsonl")
_PACKED_WEIGHT: Final = 2
"""A packed line takes a quarter of the bytes of its JSON, and reading it half the time."""

_Result = TypeVar("_Result")


def is_large(plan: RunPlan) -> bool:
    """Returns whether a run is large enough to be judged in slices.

    A run with a comparison of acks is read whole, because the comparison needs all partitions together.
    """
    lines = sum(
        size * (_PACKED_WEIGHT if is_packed(path) else 1)
        for path, size in plan.sizes.items()
        if PurePath(path).suffix in _SUFFIXES
    )
    return lines >= SLICED_FROM_BYTES and plan.run.report != ACKS_COMPARISON


def judge_sliced(
    plan: RunPlan, *, spark: "SparkTasks", slice_bytes: int = SLICE_BYTES, shares_disk: bool | None = None
) -> Judgement | None:
    """Returns the report on a run and its story, or ``None`` if one process has to judge the run.

    Args:
        plan: the files to read.
        spark: the session.
        slice_bytes: size of a slice.
        shares_disk: whether workers can read files that other workers wrote; determined by a test if not given.

    Raises:
        PySparkException: a task failed; ``Py4JJavaError``, too.
    """
    run, context = plan.run, spark.sparkContext
    slices = slices_of(plan, slice_bytes=slice_bytes)

    def sort(piece: Slice) -> SortedSlice | None:
        return _fit(lambda: sort_slice(run, piece))

    with exchange(context, slices, sort, shares_disk=shares_disk) as moved:
        summaries = moved.summaries()
        fit = [summary for summary in summaries if summary is not None]
        merged = _fit(lambda: merge_slices(run, fit)) if len(fit) == len(summaries) else None
        if merged is None:
            return None
        rare = context.broadcast(RareEvidence(run, merged.rare))

        def judged(partitions: Iterator[NamedRows]) -> Iterator[PartitionOutcome | None]:
            # Each garbage collection would visit all objects that the partitions of the task share.
            with _no_collection():
                for name, rows in partitions:
                    yield _fit(partial(judge_rows, name, rare.value, rows))

        outcomes = moved.judged(merged.names, judged)
    known = [outcome for outcome in outcomes if outcome is not None]
    if len(known) < len(outcomes):
        return None
    # Not in a task: the outcomes of thousands of partitions would be sent there, and the report back.
    try:
        return _fit(lambda: finish(plan, merged, known))
    except Exception as error:  # as in a task: other runs are still judged
        problem = f"verification failed: {type(error).__name__}: {error}"
        return Judgement(number=plan.number, report=report_unjudged(run, (problem,)))


def _fit(step: Callable[[], _Result]) -> _Result | None:
    """Runs a step without garbage collection; returns its result, or ``None`` if the run has to be read whole."""
    with _no_collection():
        try:
            return step()
        except UnfitError:
            return None


@contextmanager
def _no_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
