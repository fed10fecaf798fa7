"""A sweep as Spark jobs: tasks play seeds, with the same results as processes of this machine.

Seeds are dealt out in waves, one job each, whose results are added up in the order of the seeds. A task is played again
elsewhere if its executor is lost.
"""

import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from laststand.emulator.simulator.search.sweep import BATCH, Batch, explore_batch

if TYPE_CHECKING:
    from laststand.emulator.simulator.search.explorer import SweepOptions
    from laststand.emulator.verification.spark.tasks import SparkTasks

_TASKS_PER_CORE: Final = 2
_WAVE_S: Final = 10.0
"""Aimed duration of a wave: short enough to show progress, long enough that handing it out costs little."""
_TASK_SEEDS_MAX: Final = 1000


def spark_batches(spark: "SparkTasks", seeds: Iterator[int], options: "SweepOptions") -> Iterator[Batch]:
    """Yields the results of the seeds, in their order."""
    context = spark.sparkContext
    tasks = max(context.defaultParallelism, 1) * _TASKS_PER_CORE
    task_seeds = BATCH
    while wave := [batch for _ in range(tasks) if (batch := list(islice(seeds, task_seeds)))]:
        began = time.monotonic()
        yield from context.parallelize(wave, len(wave)).map(lambda batch: explore_batch(batch, options)).collect()
        if time.monotonic() - began < _WAVE_S / 2:
            task_seeds = min(2 * task_seeds, _TASK_SEEDS_MAX)
