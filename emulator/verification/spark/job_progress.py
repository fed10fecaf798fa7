"""Reports the progress of this process's Spark jobs, by Spark's own count of tasks."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from laststand.emulator.verification.spark.tasks import SparkTasks

_LOOK_INTERVAL_S: Final = 1.0


@contextlib.contextmanager
def reported_progress(spark: "SparkTasks", on_progress: Callable[[int, int], None]) -> Iterator[None]:
    """Reports, about every second, the numbers of completed and of all tasks of the running stages.

    Args:
        spark: the session that runs them.
        on_progress: called in a separate thread.
    """
    is_over = threading.Event()
    thread = threading.Thread(target=_watch, args=(spark, on_progress, is_over), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _watch(spark: "SparkTasks", on_progress: Callable[[int, int], None], is_over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not is_over.wait(_LOOK_INTERVAL_S):
        # If the JVM ends meanwhile, the caller that waits for the job reports it.
        with contextlib.suppress(Exception):
            stages = [info for each in tracker.getActiveStageIds() if (info := tracker.getStageInfo(each)) is not None]
            if stages:
                on_progress(sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages))
