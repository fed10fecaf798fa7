"""Notices that a process, or a descendant, was stopped (SIGSTOP) and is not continued.

A stopped process never ends, and cannot report why, so its callers would wait without end. Time is counted in looks,
not by a clock: if this program was stopped, too, that time does not count.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

LOOK_INTERVAL_S: Final = 2.0
LOOKS_MAX: Final = 5
"""A process that is stopped at so many looks in a row counts as stopped."""

_STOPPED: Final = "T"


def stopped_below(pid: int) -> int | None:
    """Returns a stopped process among a process and its descendants; ``None`` if none is stopped."""
    states: dict[int, str] = {}
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = path.read_text(errors="replace").rpartition(")")[2].split()
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        found = int(path.parent.name)
        states[found] = state
        children.setdefault(int(parent), []).append(found)
    waiting = [pid]
    while waiting:
        each = waiting.pop()
        if states.get(each) == _STOPPED:
            return each
        waiting += children.get(each, [])
    return None


def watch_for_stopped(
    pid: int, *, is_over: threading.Event, on_stopped: Callable[[int], None], look_interval_s: float = LOOK_INTERVAL_S
) -> None:
    """Starts a thread that reports the first process that was stopped (SIGSTOP) and not resumed.

    Args:
        pid: of the process that is watched, with its descendants.
        is_over: set when the process need not be watched any more.
        on_stopped: called once, in that thread, with the process that is stopped.
        look_interval_s: time between two looks.
    """

    def watch() -> None:
        looks, before = 0, None
        while not is_over.wait(look_interval_s):
            stopped = stopped_below(pid)
            looks = looks + 1 if stopped is not None and stopped == before else int(stopped is not None)
            before = stopped
            if stopped is not None and looks >= LOOKS_MAX:
                on_stopped(stopped)
                return

    threading.Thread(target=watch, name="stopped processes", daemon=True).start()
