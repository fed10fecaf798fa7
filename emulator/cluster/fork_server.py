"""The process from which the children of a harness are forked: it has imported what nodes import.

To import everything takes a node 0.3 s of CPU; a copy of a process that has imported it runs after a few milliseconds.
Each child is still a process of its own, with its own environment, output and process group. A program that is no
module of Laststand, such as a JVM, is executed in its copy::

    harness ── Start, standard error, ready pipe ─▶ fork server ── fork ─▶ child
            ◀─ its process id ───────────────────
            ── Collect ──────────────────────────▶                        (has ended)
            ◀─ its exit code ────────────────────

The server answers one order after the other. It dies with the harness, and the children die with the server
(``laststand.emulator.parent_death``). A child that has ended is a zombie until its exit code is collected, so that its
process id is not reused before.

A fork copies only the thread that asks for it, and locks held by other threads stay locked in the copy. The server has
one thread: none of its imports starts another one, not even gRPC's before its first channel or server.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.module_command import module_command, module_of, source_environment
from laststand.emulator.parent_death import become, die_with_parent, end_with_parent

READY_FD_VARIABLE: Final = "LASTSTAND_READY_FD"
"""Environment variable with the number of the file descriptor on which a child reports that it is ready."""

MALLOC: Final = {
    # Large messages otherwise cost a page fault per 4 KiB each time: serialising 1 MB falls from 1142 to 59 us.
    "MALLOC_MMAP_THRESHOLD_": "268435456",
    "MALLOC_TRIM_THRESHOLD_": "536870912",
    "MALLOC_TOP_PAD_": "67108864",
}

_QUIET_GRPC: Final = ("GRPC_VERBOSITY", "ERROR")
"""Set by the command line for its own process; nodes learn from what gRPC prints which handshakes fail."""

ANSWER_TIMEOUT_S = 30.0
"""Time for which the server may take to answer: it imports modules before it forks."""

_ANSWER_BYTES_MAX: Final = 1024
_DESCRIPTORS_MAX: Final = 4
_COMMAND_LINE_BYTES: Final = 1024
_ARG_START, _ARG_END = 45, 46
"""Places of these fields of ``/proc/self/stat`` in proc(5), counted from the state, which is the third."""


class Start(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The order to start a child.

    With it come descriptors: of the directory in which it starts, of its standard error, and of the pipe for its ready
    line, if it has one.

    Attributes:
        argv: program and arguments, as returned by ``os.fsencode``.
        imports: modules that are imported before the fork, for a command line of ``module_command``; without any, the
            program is executed.
        environment: the complete environment of the child.
    """

    argv: tuple[bytes, ...]
    imports: tuple[str, ...]
    environment: Mapping[bytes, bytes]


class Collect(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The order to report the exit code of a child that has ended."""

    pid: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an order.

    Attributes:
        number: process id of a started child; exit code of an ended one, or minus the signal's number.
        errno: the error because of which no process could be made, or its end is unknown; 0 for none.
    """

    number: int = 0
    errno: int = 0


class _Birth(NamedTuple):
    """The order for which this copy of the server was made, and the file descriptors of the child."""

    order: Start
    descriptors: Sequence[int]


# --- The harness's end ------------------------------------------------------------------------------------------------


class ForkServer:
    """The harness's connection to its server. Main thread only: the server ends with that thread."""

    def __init__(self) -> None:
        """Starts the server, which imports nothing yet."""
        self._errors = open(os.memfd_create("errors of the fork server"), "rb")  # noqa: SIM115 - until close
        self._control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(ANSWER_TIMEOUT_S)
        inherited = {name: value for name, value in os.environ.items() if (name, value) != _QUIET_GRPC}
        with control:
            # Copies of the server write their own command lines over this one, and need the room.
            room = " " * _COMMAND_LINE_BYTES
            self._process = subprocess.Popen(
                die_with_parent(module_command(__name__, str(control.fileno()), room)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env={**inherited, **MALLOC, **source_environment()},
                pass_fds=(control.fileno(),),
                process_group=0,  # Ctrl-C is for the harness, which ends its children in order
            )

    @property
    def is_alive(self) -> bool:
        """The server runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """Ends the server, and with it all children."""
        self._control.close()
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def start(self, order: Start, descriptors: Sequence[int]) -> int:
        """Starts a child in the current directory, and returns its process id.

        Raises:
            OSError: the process could not be made.
        """
        directory = os.open(".", os.O_PATH)  # no path: the directory may have been removed
        try:
            return self._ask(order, (directory, *descriptors))
        finally:
            os.close(directory)

    def collect(self, pid: int) -> int:
        """Returns the exit code of a child that has ended, or minus the number of the signal that ended it."""
        try:
            return self._ask(Collect(pid=pid))
        except OSError:
            return -signal.SIGKILL  # of the kernel: the server is gone, and its children with it

    def _ask(self, order: Start | Collect, descriptors: Sequence[int] = ()) -> int:
        try:
            message = self._exchange(order, descriptors)
        except ConnectionError:
            message = b""
        except TimeoutError as error:
            self.close()  # its answer would be taken for that to the next order
            reason = f"the process that starts children did not answer within {ANSWER_TIMEOUT_S} s"
            raise TimeoutError(reason) from error
        if not message:
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").splitlines()
            raise ConnectionResetError("\n  ".join(["the process that starts children has ended", *lines[-1:]]))
        answer = msgspec.msgpack.decode(message, type=Answer)
        if answer.errno:
            raise OSError(answer.errno, os.strerror(answer.errno))
        return answer.number

    def _exchange(self, order: Start | Collect, descriptors: Sequence[int]) -> bytes:
        # An environment may be longer than a packet: the order is in a file, and the packet has its descriptor.
        with open(os.memfd_create("order"), "w+b") as file:
            file.write(msgspec.msgpack.encode(order))
            file.seek(0)
            socket.send_fds(self._control, [b"\0"], [file.fileno(), *descriptors])
        return self._control.recv(_ANSWER_BYTES_MAX)


_server: ForkServer | None = None


def fork_server() -> ForkServer:
    """Returns the server of this process, which is started on first use."""
    global _server
    if _server is not None and not _server.is_alive:
        _server.close()
        _server = None
    if _server is None:
        _server = ForkServer()
        atexit.register(_server.close)
    return _server


# --- The server -------------------------------------------------------------------------------------------------------


def _serve(control: socket.socket) -> _Birth | None:
    """Executes orders; returns ``None`` when the harness has ended, and in a child the order that it was forked for."""
    decoder = msgspec.msgpack.Decoder(Start | Collect)
    while True:
        message, received, _, _ = socket.recv_fds(control, 1, _DESCRIPTORS_MAX)
        if not message:
            return None
        order_fd, *descriptors = received
        with open(order_fd, "rb") as file:
            content = file.read()
        match decoder.decode(content):
            case Start() as order:
                answer = _fork(order)
                if answer is None:
                    control.close()
                    return _Birth(order, descriptors)
                for descriptor in descriptors:
                    os.close(descriptor)
            case Collect(pid=pid):
                answer = _collect(pid)
        control.send(msgspec.msgpack.encode(answer))


def _fork(order: Start) -> Answer | None:
    """Returns the answer; ``None`` in the child."""
    for module in order.imports:
        with contextlib.suppress(Exception):  # the child imports it again, and shows the error in its log
            importlib.import_module(module)
    gc.freeze()  # what a collector looks at is copied
    try:
        pid = os.fork()
    except OSError as error:
        return Answer(errno=error.errno or 0)
    if pid == 0:
        return None
    with contextlib.suppress(OSError):  # the child does so, too, and may have ended
        os.setpgid(pid, pid)  # here as well: signals for the group may come before the child runs
    return Answer(number=pid)


def _collect(pid: int) -> Answer:
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError as error:
        return Answer(errno=error.errno or 0)
    return Answer(number=os.waitstatus_to_exitcode(status))


def _live(birth: _Birth, *, server_pid: int) -> None:
    """Becomes the child that was ordered, in its place."""
    order = birth.order
    gc.enable()
    os.setpgid(0, 0)
    directory, output, *ready = birth.descriptors
    for standard in (sys.stdout, sys.stderr):  # first: what goes wrong from here on is in the child's log
        os.dup2(output, standard.fileno())
    os.close(output)
    os.fchdir(directory)
    os.close(directory)
    os.environ.clear()
    os.environb.update(order.environment)
    for descriptor in ready:
        os.set_inheritable(descriptor, True)  # noqa: FBT003 - the library's
        os.environ[READY_FD_VARIABLE] = str(descriptor)
    argv = tuple(map(os.fsdecode, order.argv))
    if not order.imports:
        become(parent_pid=server_pid, argv=argv)
    end_with_parent(server_pid)
    _show_command_line(order.argv)
    module, sys.argv[1:] = module_of(argv)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _show_command_line(argv: Sequence[bytes]) -> None:
    """Has ``ps`` and ``/proc/PID/cmdline`` show the child's own command line, up to the length of the server's."""
    fields = Path("/proc/self/stat").read_text().rpartition(") ")[2].split()
    start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    text = b"\0".join(argv)[: end - start - 1]
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


def main() -> None:
    """Serves orders; in each child, runs the program that it was forked for."""
    gc.disable()  # what the imports leave is no garbage, and to look through it takes a fifth of their time
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where the harness ignores it, the kernel keeps no exit codes
    pid = os.getpid()
    birth = _serve(socket.socket(fileno=int(sys.argv[1])))
    if birth is not None:
        _live(birth, server_pid=pid)


if __name__ == "__main__":
    main()
