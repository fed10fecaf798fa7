"""Makes everything that a command starts die with it, and the command die with its parent.

The module is a program of its own, put in front of the real command line::

    python -I -S descendant_death.py COMMAND ARGUMENT...

It runs the command as its child, and adopts the processes that the command's descendants leave behind (``prctl(2)``,
``PR_SET_CHILD_SUBREAPER``), including those in their own sessions. When the command ends, or the parent does
(``PR_SET_PDEATHSIG``), it kills the remaining ones. It ends with the command's exit code, or with 128 and the number of
its signal. A signal for its process group is for the command alone, except SIGKILL. Linux only.
"""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PARENT_ENDED = signal.SIGUSR2
_LEFT_TO_THE_COMMAND = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
_EXIT_ORPHANED = 125
_EXIT_NOT_EXECUTABLE = 127
_SIGNALLED = 128


def with_descendants(argv: Sequence[str]) -> list[str]:
    """Returns the command line that runs ``argv``, and kills its descendants when it or the calling process ends."""
    return [sys.executable, "-I", "-S", __file__, *argv]


def run(argv: Sequence[str]) -> int:
    """Runs a command; returns the exit code, once all its descendants are gone."""
    parent_pid = os.getppid()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, _PARENT_ENDED, *_LEFT_TO_THE_COMMAND})
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, _PARENT_ENDED)
    if os.getppid() != parent_pid:  # it ended before the kernel was asked
        return _EXIT_ORPHANED
    command_pid = os.fork()
    if command_pid == 0:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _become(argv)
    status: int | None = None
    while status is None and signal.sigwait({signal.SIGCHLD, _PARENT_ENDED}) == signal.SIGCHLD:
        status = _reap(command_pid)
    _kill_all()
    if status is None:
        return _EXIT_ORPHANED
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNALLED - code


def _become(argv: Sequence[str]) -> None:
    try:
        os.execvp(argv[0], list(argv))
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(_EXIT_NOT_EXECUTABLE)


def _reap(command_pid: int) -> int | None:
    """Collects all children that have ended; returns the status of the command if it is one of them."""
    found: int | None = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if ended[0] == command_pid:
                found = ended[1]
    return found


def _kill_all() -> None:
    """Kills the children until there are none; the processes that they leave behind become children, too."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in children.read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
