"""Plays runs in virtual time in processes of their own.

Such a run never waits: it keeps a core busy from its start to its end, so several at a time need several processes.
"""

import asyncio
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from types import FrameType
from typing import Final

from laststand.chaos.drivers import make_driver
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.runner import Run
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.parent_death import end_with_parent

_CONTEXT: Final = get_context("spawn")
"""A copy of a process with threads may deadlock, and Spark's session has some."""


class PlayerLostError(EmulatorError):
    """A process that played runs ended by itself."""

    def __init__(self, *, run: str) -> None:
        super().__init__(f"a process that plays in virtual time ended by itself, while {run} was to be played")
        self.run = run


class VirtualTimePlayers:
    """Processes that play runs in virtual time; they start when they are needed.

    Args:
        count: number of runs that are played at a time.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool: ProcessPoolExecutor | None = None

    async def play(self, order: RunOrder, *, timeout_s: float | None) -> str | None:
        """Plays a run to its end. Main thread only: the processes end with the thread that started them.

        Args:
            order: the order to play.
            timeout_s: a run that takes longer is stopped, which its record says; ``None`` for no limit.

        Returns:
            The first step that was left out, and why; ``None`` if all were played.

        Raises:
            PlayerLostError: the process ended by itself.
        """
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._count, mp_context=_CONTEXT, initializer=_begin, initargs=(os.getpid(),)
            )
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, _play, order, timeout_s)
        except BrokenProcessPool as error:
            raise PlayerLostError(run=order.directory.name) from error

    def close(self) -> None:
        """Ends the processes, without waiting for runs under way."""
        if self._pool is None:
            return
        processes = list((self._pool._processes or {}).values())  # Python 3.14 has kill_workers() for this
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
            process.join()


def _begin(owner_pid: int) -> None:
    end_with_parent(owner_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner has it, too, and ends this process


def _play(order: RunOrder, timeout_s: float | None) -> str | None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        run.stopped = f"stopped after {timeout_s:g} s"
        raise asyncio.CancelledError

    run = Run(order, make_driver=make_driver, on_status=lambda _: None)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, timeout_s or 0)
    try:
        asyncio.run(run.play())
    except asyncio.CancelledError:
        pass  # its record says so
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return run.left_out
