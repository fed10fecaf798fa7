"""Finds what a process left running: its descendants inherit a mark in their environment, however they are related."""

import contextlib
import time
from pathlib import Path

import psutil

MARK = "LASTSTAND_TEST_MARK"
DEADLINE_S = 30.0


def survivors(mark: str) -> list[psutil.Process]:
    """All processes that inherited the mark; a zombie has no environment and is none."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                found.append(process)
        except psutil.Error:
            continue
    return found


def children_of(pid: int) -> list[int]:
    """The children that the first thread of a process has started; none if it has ended."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def await_descendants(mark: str, of: int) -> list[psutil.Process]:
    """Waits until a process with the mark is there besides process ``of``; none if half a minute is not enough."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := [process for process in survivors(mark) if process.pid != of]):
        if time.monotonic() >= deadline:
            break
        time.sleep(0.01)
    return found


def await_end(mark: str) -> list[psutil.Process]:
    """Waits until all processes with the mark are gone; returns those that are not after half a minute."""
    psutil.wait_procs(survivors(mark), timeout=DEADLINE_S)
    return survivors(mark)


def leave_nothing(mark: str) -> None:
    """Kills what still has the mark.

    Raises:
        AssertionError: a process does not end.
    """
    for process in survivors(mark):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert await_end(mark) == []
