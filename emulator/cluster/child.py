"""One child process: it is started so that it dies with its parent, gets signals, and its end is noticed at once.

The end comes from a pidfd in the event loop, so nobody polls and the process id cannot be reused before it is reaped. A
child that serves something reports that it is ready by one JSON line on an inherited pipe, whose file descriptor it
finds in its environment (``LASTSTAND_READY_FD``)::

    {"ready": true, "port": 12345}

A signal goes to the child's process group, and what is left of the group when the child ends is killed. Only the child
itself ends with this process if that is killed (``laststand.emulator.descendant_death`` sees to others).

The cause of an end depends on the request *and* on how the process ended: a node that was about to be killed but
crashed first has crashed.
"""

import asyncio
import contextlib
import enum
import os
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from laststand.emulator.cluster.fork_server import MALLOC, Start, fork_server
from laststand.emulator.core.errors import EmulatorError, InvariantError

START_TIMEOUT_S = 30.0
"""Time for which a child may take to become ready, on a machine that is busy with something else."""

STOP_TIMEOUT_S = 10.0
"""Time for which a child may take to end after SIGTERM."""

_PAUSE_TIMEOUT_S = 5.0
_POLL_INTERVAL_S = 0.001
_READY_LINE_BYTES_MAX = 4096
_SIGNALLED = 128
_STDERR_TAIL_BYTES = 16384
_STDERR_TAIL_LINES = 40


class Readiness(enum.Enum):
    """The way in which a child becomes ready: by its own report, or at once."""

    UNREPORTED = "unreported"
    REPORTED = "reported"


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A child process to run.

    Attributes:
        name: unique among the living children of a supervisor.
        argv: program and arguments.
        imports: modules that the fork server has imported for the child; its command line must come from
            ``module_command``.
        stderr_path: file to which standard error and standard output are appended; its directory is created.
        environment: additions to this process's environment.
        readiness: whether to wait for the ready line.
        exits_with_signal_number: whether the program ends by a signal as a JVM does: it exits with 128 and the
            signal's number. Its recorded end is that by the signal.
        stop_timeout_s: how long it may take to end in order.
    """

    name: str
    argv: tuple[str, ...]
    imports: tuple[str, ...] = ()
    stderr_path: Path
    environment: Mapping[str, str] = {}
    readiness: Readiness = Readiness.UNREPORTED
    exits_with_signal_number: bool = False
    stop_timeout_s: float = STOP_TIMEOUT_S


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The ready line.

    Attributes:
        ready: always true.
        port: the loopback port on which the child serves.
    """

    ready: bool
    port: int


class EndCause(enum.Enum):
    """Reason why a child is no more."""

    STOPPED = "stopped"
    """It was asked to end and did, with exit code 0 or by the signal itself."""
    KILLED = "killed"
    """It was killed on purpose."""
    STOP_TIMED_OUT = "stop timed out"
    """It was asked to end, did not in time, and was killed."""
    UNEXPECTED = "unexpected"
    """It ended by itself, or in another way than it was asked to."""
    UNSEEN = "unseen"
    """Whoever was to report its end is gone, so it is not known whether it ended; only in containers."""


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a child.

    Attributes:
        name: the child's.
        pid: the process id that it had.
        cause: its cause.
        exit_code: its exit code, or ``None`` if a signal ended it.
        signal_number: the signal that ended it, or ``None`` if it exited.
        stderr_tail: its last lines on stderr, at most 40.
        explanation: why it ended, if the container engine says so; only in containers.
    """

    name: str
    pid: int
    cause: EndCause
    exit_code: int | None
    signal_number: int | None
    stderr_tail: tuple[str, ...]
    explanation: str | None = None


class StartError(EmulatorError):
    """A child did not become ready; it runs no more.

    Attributes:
        name: the child's.
        reason: the cause in words.
        end: the end of the child.
    """

    def __init__(self, *, name: str, reason: str, end: ProcessEnd) -> None:
        super().__init__("\n  ".join([f"{name} {reason}", *end.stderr_tail]))
        self.name = name
        self.reason = reason
        self.end = end


class Child:
    """A process that this process started. Belongs to the event loop of the main thread."""

    def __init__(self, spec: ProcessSpec, *, on_end: Callable[[ProcessEnd], None]) -> None:
        """Start the process; returns within milliseconds. Call from a coroutine on the main thread.

        Args:
            spec: the process to run.
            on_end: called once, in the event loop, when the process has ended and was reaped.

        Raises:
            InvariantError: not called on the main thread; the child dies with the thread that starts it.
            OSError: the process could not be made.
        """
        if threading.current_thread() is not threading.main_thread():
            raise InvariantError("a process that dies with its parent is started from the main thread only")
        self.spec = spec
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[ProcessEnd] = self._loop.create_future()
        self._asked_for: EndCause | None = None
        self._ready: Ready | None = None
        self._ready_fd: int | None = None
        spec.stderr_path.parent.mkdir(parents=True, exist_ok=True)
        order = Start(
            argv=tuple(map(os.fsencode, spec.argv)),
            imports=spec.imports,
            environment={
                os.fsencode(name): os.fsencode(value)
                for name, value in {**os.environ, **MALLOC, **spec.environment}.items()
            },
        )
        child_fds: tuple[int, ...] = ()
        if spec.readiness is Readiness.REPORTED:
            self._ready_fd, write_fd = os.pipe()
            child_fds = (write_fd,)
        try:
            self._server = fork_server()
            with spec.stderr_path.open("ab") as stderr:
                self._stderr_start = stderr.tell()
                self._pid = self._server.start(order, (stderr.fileno(), *child_fds))
        except OSError:
            self._close_ready_fd()
            raise
        finally:
            for fd in child_fds:
                os.close(fd)
        self._pidfd = os.pidfd_open(self._pid)
        self._loop.add_reader(self._pidfd, self._reap)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._pid

    @property
    def end(self) -> ProcessEnd | None:
        """The end of the process, or ``None`` while it lives."""
        return self._ended.result() if self._ended.done() else None

    @property
    def ready(self) -> Ready:
        """The message in which the child reports that it is ready.

        Raises:
            InvariantError: the child has not reported, or does not report.
        """
        if self._ready is None:
            raise InvariantError(f"{self.spec.name} has not reported that it is ready")
        return self._ready

    async def await_ready(self, *, timeout_s: float) -> None:
        """Wait for the ready line, if the child was started to send one. Ends the child if it does not come.

        Raises:
            StartError: it ended first, wrote something else, or took longer than ``timeout_s`` seconds.
        """
        if self._ready_fd is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                line = await self._read_line(self._ready_fd)
        except TimeoutError as error:
            raise await self._start_error(f"was not ready within {timeout_s} s") from error
        finally:
            self._close_ready_fd()
        if not line.endswith(b"\n"):
            raise await self._start_error("ended before it was ready")
        try:
            self._ready = msgspec.json.decode(line, type=Ready)
        except msgspec.DecodeError as error:
            raise await self._start_error(f"reported {line!r} instead of its port") from error

    async def wait(self) -> ProcessEnd:
        """Wait until the process has ended."""
        return await asyncio.shield(self._ended)

    async def stop(self, *, timeout_s: float | None = None) -> ProcessEnd:
        """End the process with SIGTERM, and with SIGKILL after ``timeout_s`` seconds. A paused process is resumed.

        Args:
            timeout_s: the time limit; that of the spec if not given.
        """
        if self._ask(EndCause.STOPPED):
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)
        try:
            async with asyncio.timeout(self.spec.stop_timeout_s if timeout_s is None else timeout_s):
                return await self.wait()
        except TimeoutError:
            if self._ask(EndCause.STOP_TIMED_OUT):
                self._signal(signal.SIGKILL)
            return await self.wait()

    def notify(self, number: signal.Signals = signal.SIGUSR1) -> None:
        """Send a signal to the process, unless it has ended: by SIGUSR1 a node looks at the faults of its disk."""
        if self.end is None:
            self._signal(number)

    async def kill(self) -> ProcessEnd:
        """End the process with SIGKILL, paused or not, and wait until it is gone, with its sockets and locks."""
        if self._ask(EndCause.KILLED):
            self._signal(signal.SIGKILL)
        return await self.wait()

    async def pause(self) -> bool:
        """Stop the process with SIGSTOP and wait until all its threads stand still.

        Returns:
            Whether this paused it: not so if it was paused already or has ended.
        """
        return await self._switch(signal.SIGSTOP, paused=True)

    async def resume(self) -> bool:
        """Continue a paused process with SIGCONT.

        Returns:
            Whether this continued it: not so if it was not paused or has ended.
        """
        return await self._switch(signal.SIGCONT, paused=False)

    @property
    def is_paused(self) -> bool:
        """True if all threads of the process are stopped, as by SIGSTOP."""
        states = [_state(path) for path in Path(f"/proc/{self.pid}/task").glob("*/stat")] if self.end is None else []
        return bool(states) and all(state in ("T", "t", None) for state in states)

    async def _switch(self, signal_number: signal.Signals, *, paused: bool) -> bool:
        if self.end is not None or self.is_paused is paused:
            return False
        self._signal(signal_number)
        deadline = self._loop.time() + _PAUSE_TIMEOUT_S
        # The kernel reports to nobody that the last thread has stopped.
        while self.is_paused is not paused and self.end is None and self._loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_INTERVAL_S)
        return self.end is None and self.is_paused is paused

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # the server has ended, and with it the child
            os.killpg(self._pid, number)

    def _ask(self, cause: EndCause) -> bool:
        if self._ended.done():
            return False
        if cause is not EndCause.STOPPED or self._asked_for is None:
            self._asked_for = cause
        return True

    async def _start_error(self, reason: str) -> StartError:
        return StartError(name=self.spec.name, reason=reason, end=await self.kill())

    async def _read_line(self, fd: int) -> bytes:
        os.set_blocking(fd, False)
        line = b""
        while not line.endswith(b"\n") and len(line) < _READY_LINE_BYTES_MAX:
            readable = self._loop.create_future()
            self._loop.add_reader(fd, _resolve, readable)
            try:
                await readable
            finally:
                self._loop.remove_reader(fd)
            part = os.read(fd, _READY_LINE_BYTES_MAX)
            if not part:
                break
            line += part
        return line

    def _close_ready_fd(self) -> None:
        if self._ready_fd is not None:
            os.close(self._ready_fd)
            self._ready_fd = None

    def _reap(self) -> None:
        self._signal(signal.SIGKILL)  # while the child has its process id, which is the group's
        return_code = self._server.collect(self._pid)
        if self.spec.exits_with_signal_number and return_code == _SIGNALLED + signal.SIGTERM:
            return_code = -signal.SIGTERM
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        end = ProcessEnd(
            name=self.spec.name,
            pid=self.pid,
            cause=_cause(self._asked_for, return_code),
            exit_code=return_code if return_code >= 0 else None,
            signal_number=-return_code if return_code < 0 else None,
            stderr_tail=self._stderr_tail(),
        )
        self._ended.set_result(end)
        self._on_end(end)

    def _stderr_tail(self) -> tuple[str, ...]:
        with self.spec.stderr_path.open("rb") as stderr:
            size = stderr.seek(0, os.SEEK_END)
            stderr.seek(max(self._stderr_start, size - _STDERR_TAIL_BYTES))
            return tuple(stderr.read().decode(errors="replace").splitlines()[-_STDERR_TAIL_LINES:])


def _cause(asked_for: EndCause | None, return_code: int) -> EndCause:
    match asked_for:
        case EndCause.STOPPED if return_code in (0, -signal.SIGTERM):
            return EndCause.STOPPED
        case EndCause.KILLED | EndCause.STOP_TIMED_OUT if return_code == -signal.SIGKILL:
            return asked_for
        case _:
            return EndCause.UNEXPECTED


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _state(stat_path: Path) -> str | None:
    # proc(5): "pid (command) state ...", and the command may contain anything. A thread that is gone has no state.
    try:
        return stat_path.read_text(errors="replace").rpartition(") ")[2][:1]
    except OSError:
        return None
