"""Speed of the simulator on one core with every check on, and whether its memory grows."""

import resource
import time
from collections.abc import Iterator
from typing import Final

from benchmarks.figure import Figure
from laststand.emulator.simulator.search.explorer import SweepOptions
from laststand.emulator.simulator.search.sweep import explore_batch

REPETITIONS: Final = 5
SCHEDULES: Final = 100
"""In each repetition."""

_KIB_PER_MB: Final = 1024


def measure() -> Iterator[Figure]:
    """Yields steps/s, schedules/s (both of CPU time) and the growth of memory from the first repetition to the last."""
    options = SweepOptions()
    steps_per_s: list[float] = []
    schedules_per_s: list[float] = []
    memory_mb: list[float] = []
    for repetition in range(REPETITIONS):
        started = time.process_time()
        seeds = range(repetition * SCHEDULES, (repetition + 1) * SCHEDULES)
        steps = sum(schedule.outcome.steps for schedule in explore_batch(seeds, options).schedules)
        seconds = time.process_time() - started
        steps_per_s.append(steps / seconds)
        schedules_per_s.append(SCHEDULES / seconds)
        memory_mb.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MB)
    yield Figure(name="simulator_steps_per_s", unit="steps/s", values=tuple(steps_per_s))
    yield Figure(name="simulator_schedules_per_s", unit="schedules/s", values=tuple(schedules_per_s))
    yield Figure(name="simulator_memory_growth_mb", unit="MB", values=(memory_mb[-1] - memory_mb[0],))
