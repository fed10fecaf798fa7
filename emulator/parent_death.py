"""Makes a child process die with its parent, however the parent ends: the kernel kills it.

The module is a program of its own, put in front of the real command line::

    python -I -S parent_death.py PARENT_PID COMMAND ARGUMENT...

It asks the kernel for SIGKILL on the parent's death (``prctl(2)``, ``PR_SET_PDEATHSIG``) and then becomes the command,
so that the setting also holds for programs such as toxiproxy-server or a JVM. The kernel keeps it over ``execve`` but
not over ``fork``; it also kills a stopped process. A ``preexec_fn`` would do the same inside a forked copy of a
threaded interpreter, which may deadlock.

A process that is started without a command line, such as a worker of a pool, asks for itself: ``end_with_parent``.

The kernel means the *thread* that started the child: start children from the main thread only. Linux only.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_EXIT_ORPHANED = 125
_EXIT_NOT_EXECUTABLE = 127


def die_with_parent(argv: Sequence[str]) -> list[str]:
    """Returns the command line that runs ``argv`` for as long as the calling process lives, and no longer.

    Args:
        argv: program and arguments; the program is looked up in ``PATH`` of the child.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *argv]


def end_with_parent(parent_pid: int) -> None:
    """Has the kernel kill this process when its parent ends; exits with 125 if it had ended before."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # A parent that died before the request was made sends no signal: this process already has another parent.
    if os.getppid() != parent_pid:
        sys.exit(_EXIT_ORPHANED)


def become(*, parent_pid: int, argv: Sequence[str]) -> None:
    """Replaces this process by ``argv``, to be killed together with its parent ``parent_pid``.

    Does not return. Exits with 125 if the parent had ended before the request reached the kernel, and with 127 if
    ``argv`` cannot be executed.
    """
    end_with_parent(parent_pid)
    try:
        os.execvp(argv[0], list(argv))
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.exit(_EXIT_NOT_EXECUTABLE)


if __name__ == "__main__":
    become(parent_pid=int(sys.argv[1]), argv=sys.argv[2:])
