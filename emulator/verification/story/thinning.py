"""Curves of a run with as many points as a picture can show, however many the run has."""

from typing import Final

import numpy as np

from laststand.emulator.verification.tables.integers import Ints

POINTS_MAX: Final = 96
"""Points that a curve keeps, half of them even in time, half of them even in value; beside those around pauses."""


def thinned(times: Ints, values: Ints, *, points_max: int = POINTS_MAX) -> Ints:
    """Returns the indexes of a rising curve's points to keep: the first, the last, and some in between.

    Between two kept points, the dropped ones cover at most about two parts in ``points_max`` of the whole curve, in
    time and in value. Both ends of a longer pause are kept.

    Args:
        times: never falling.
        values: never falling.
        points_max: maximal number of points besides the last one and those around pauses, which are at most as many.
    """
    count = len(times)
    if count <= points_max:
        return np.arange(count)
    half = points_max // 2
    by_time = np.searchsorted(times, np.linspace(times[0], times[-1], half))
    by_value = np.searchsorted(values, np.linspace(values[0], values[-1], half))
    pauses = np.flatnonzero(np.diff(times) > (times[-1] - times[0]) / half)
    return np.unique(np.concatenate([by_time, by_value, pauses, pauses + 1, [0, count - 1]]))
