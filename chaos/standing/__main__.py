"""``python -m laststand.chaos.standing DIRECTORY READY_FD``: the supervisor of a standing cluster.

``laststand up`` starts it in a session of its own, with ``run.log`` as its output, and reads one line from the pipe
``READY_FD``: empty once the cluster serves, else why there is none. From then on it has no owner; SIGTERM, as at a
machine's shutdown, stops the cluster in order, or kills a cluster that is still starting. SIGKILL ends every process of
the cluster, too, but no container: ``laststand down`` and ``start`` remove those.
"""

import asyncio
import fcntl
import gc
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from laststand.chaos.play.waiting import StepError
from laststand.chaos.standing.order import SOCKET_FILE, StandingOrder, read_order
from laststand.emulator.core.errors import EmulatorError, causes_of

if TYPE_CHECKING:
    from laststand.chaos.standing.server import Server

_LOG_FORMAT: Final = "[%(asctime)s] %(levelname)s %(name)s %(message)s"
_EXIT_NOT_STARTED: Final = 1
_OBJECTS_OF_IMPORTS: Final = 100_000
"""About so many objects are left by what a cluster imports; no garbage is among them."""

_log: Final = logging.getLogger("laststand.chaos.standing")


class _Launcher:
    """The process at the other end of the pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def report(self, problem: str) -> None:
        """Reports why there is no cluster, or nothing if there is one. Only the first call counts."""
        if self._descriptor is None:
            return
        try:
            os.write(self._descriptor, problem.encode() + b"\n")
        except BrokenPipeError:
            _log.info("whoever started this is gone")
        os.close(self._descriptor)
        self._descriptor = None


def main() -> int:
    """Runs the supervisor to its end; returns its exit code."""
    directory, launcher = Path(sys.argv[1]), _Launcher(int(sys.argv[2]))
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=_LOG_FORMAT)
    gc.set_threshold(_OBJECTS_OF_IMPORTS)  # to look through them again and again takes a fifth of the start
    order = read_order(directory)
    with order.lock_path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            launcher.report(f"a cluster is up in {directory.parent} already")
            return _EXIT_NOT_STARTED
        return asyncio.run(_run(order, launcher))


async def _run(order: StandingOrder, launcher: _Launcher) -> int:
    from laststand.chaos.standing.server import stand

    loop, starting = asyncio.get_running_loop(), asyncio.current_task()
    assert starting is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, starting.cancel)

    def on_serving(server: "Server") -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.ask_for_end, None)
        gc.freeze()
        _log.info("the cluster serves directory=%s", order.directory)
        launcher.report("")

    problem = None
    try:
        await stand(order, on_serving=on_serving)
    except* asyncio.CancelledError:
        problem = "it was interrupted while it came up"
    except* (EmulatorError, StepError, OSError) as errors:
        problem = "; ".join(str(error) for error in causes_of(errors))
    finally:
        (order.path / SOCKET_FILE).unlink(missing_ok=True)
    if problem is None:
        return 0
    _log.error("%s", problem)
    first, *more = problem.splitlines()
    launcher.report(": ".join([first, *(line.strip() for line in more[-1:])]))
    return _EXIT_NOT_STARTED


if __name__ == "__main__":
    sys.exit(main())
