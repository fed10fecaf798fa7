"""A program that does what ``laststand`` does, without starting Python with all of laststand for each command.

A test starts the program as it would start ``laststand``: a process with the standard streams, the directory and the
environment that it was given. That process is small. It hands its streams to a server, which forks a command from
itself, and has imported what commands before it needed; it passes signals on, and ends as the command ends. A command
whose program was killed is killed, too.

The command has the process id of a fork, so what looks for that of ``laststand`` starts the real one; so does what
ends a command while it starts.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from laststand.emulator.parent_death import die_with_parent
from tests.cluster.signals import default_signals

ROOT: Final = Path(__file__).parents[2]

_PROGRAM: Final = """\
#!{python} -IS
import array, json, os, signal, socket, sys
command, waiting = 0, []
def pass_on(number, frame):
    os.kill(command, number) if command else waiting.append(number)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, pass_on)
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
streams = array.array("i", (0, 1, 2))
server.sendmsg([b"-"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
order = [sys.argv[1:], os.getcwd(), dict(os.environ)]
server.sendall(json.dumps(order).encode() + b"\\n")
answers = server.makefile()
command = int(answers.readline())
for number in waiting:
    os.kill(command, number)
os.closerange(0, 3)
code = int(answers.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""
"""Streams are closed once the command has them: a pipe has an end when the command ends, and not before."""

_BEFORE_IMPORTS: Final = {"GRPC_VERBOSITY": "ERROR", "OPENBLAS_NUM_THREADS": "1"}
"""Variables that a command sets before it imports what reads them."""

_OURS: Final = "laststand."
_RUN: Final = ".__main__"
"""A module that a command runs."""

_STREAMS: Final = 3
_BYTES: Final = 1 << 16


class _Order(NamedTuple):
    """The arguments, directory and environment of a command."""

    arguments: list[str]
    directory: str
    environment: dict[str, str]


@cache
def laststand_program() -> str:
    """Returns the path of the program ``laststand``, whose name is that; it works as long as this process runs."""
    folder = tempfile.mkdtemp(prefix="laststand-")
    program, address = Path(folder, "laststand"), Path(folder, "socket")
    program.write_text(_PROGRAM.format(python=sys.executable, address=str(address)))
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener, default_signals():
        listener.bind(str(address))
        listener.listen()
        server = subprocess.Popen(
            die_with_parent((sys.executable, "-P", "-m", __name__, str(listener.fileno()))),
            stdin=subprocess.DEVNULL,
            pass_fds=(listener.fileno(),),
            env={**os.environ, "PYTHONPATH": str(ROOT), **_BEFORE_IMPORTS},
            start_new_session=True,
        )
    atexit.register(_end, server, folder)
    return str(program)


def _end(server: "subprocess.Popen[bytes]", folder: str) -> None:
    server.kill()
    server.wait()
    shutil.rmtree(folder)


class _Running(NamedTuple):
    """A command, and the program that stands for it."""

    pid: int
    pidfd: int
    program: socket.socket
    learned: int


class _Server:
    """Forks commands.

    Args:
        listener: programs connect to it.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)

    def serve(self) -> list[str]:
        """Serves until it is killed; in each command it returns the arguments."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    arguments = self._start(self._listener.accept()[0])
                    if arguments is not None:
                        return arguments
                elif isinstance(key.data, _Running):
                    self._end(key.data, is_killed=key.fileobj is key.data.program)

    def _start(self, program: socket.socket) -> list[str] | None:
        _, streams, _, _ = socket.recv_fds(program, 1, _STREAMS)
        with program.makefile() as orders:
            line = orders.readline()
        if not line.endswith("\n"):  # the program was killed before it had said what it wants
            for descriptor in streams:
                os.close(descriptor)
            program.close()
            return None
        order = _Order(*json.loads(line))
        learned, tells = os.pipe()
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            self._selector.close()
            self._listener.close()
            program.close()
            os.close(learned)
            _become(order, streams)
            _tell_at_exit(tells)
            return order.arguments
        for descriptor in (*streams, tells):
            os.close(descriptor)
        running = _Running(pid, os.pidfd_open(pid), program, learned)
        with contextlib.suppress(OSError):  # it was killed, which is seen below
            program.sendall(b"%d\n" % pid)
        self._selector.register(running.pidfd, selectors.EVENT_READ, running)
        self._selector.register(program, selectors.EVENT_READ, running)
        return None

    def _end(self, running: _Running, *, is_killed: bool) -> None:
        if running.program.fileno() < 0:  # both its ends came at once
            return
        if is_killed:
            os.kill(running.pid, signal.SIGKILL)
        _, status = os.waitpid(running.pid, 0)
        self._selector.unregister(running.pidfd)
        self._selector.unregister(running.program)
        os.close(running.pidfd)
        with contextlib.suppress(OSError):
            running.program.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        running.program.close()
        with open(running.learned) as file:
            for module in file.read().split():
                if module.endswith(_RUN):
                    continue
                with contextlib.suppress(ImportError):
                    importlib.import_module(module)


def _become(order: _Order, streams: list[int]) -> None:
    """Gives this process the streams, directory, environment and arguments of a command."""
    os.setpgid(0, 0)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - while the process lives
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{name}__", getattr(sys, name))
    os.chdir(order.directory)
    os.environ.clear()
    os.environ.update(order.environment)
    sys.argv = ["laststand", *order.arguments]


def _tell_at_exit(descriptor: int) -> None:
    """Has this process say in the end what it has imported."""
    known = set(sys.modules)

    def tell() -> None:
        found = [name for name in sys.modules if name.startswith(_OURS) and name not in known]
        with contextlib.suppress(OSError):
            os.write(descriptor, " ".join(found).encode()[: _BYTES - 1])

    atexit.register(tell)


def main() -> int:
    """Serves; in each command, runs it."""
    from laststand.cli.main import main as run

    gc.disable()
    sys.modules["__main__"].__package__ = ""  # by which click would name the program
    _Server(socket.socket(fileno=int(sys.argv[1]))).serve()
    gc.enable()
    return run()


if __name__ == "__main__":
    sys.exit(main())
