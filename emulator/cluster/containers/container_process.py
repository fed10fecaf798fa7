"""One process in a container of its own, with the interface of ``laststand.emulator.cluster.child.Child``.

The engine is asked to wait for the container's end in a thread, so an end is noticed at once. What a container printed
is then kept in the node's log.
"""

import asyncio
import enum
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import requests
from docker.errors import DockerException
from docker.models.containers import Container

from laststand.emulator.cluster.child import STOP_TIMEOUT_S, EndCause, ProcessEnd
from laststand.emulator.cluster.containers.engine import EngineError, in_thread, reason_of

_TAIL_LINES: Final = 40
_OUT_OF_MEMORY: Final = "the container ran out of memory, and the kernel killed it"
_SIGNALLED: Final = 128
"""Exit codes above this are 128 + the signal that ended the process."""


class Afterwards(enum.Enum):
    """The treatment of a container that has ended."""

    REMOVED = "removed"
    """It was one incarnation of a node, whose output is added to the log."""
    KEPT = "kept"
    """Somebody else made it, and it is started again: it has all output of the node itself."""


class ContainerProcess:
    """A container that was started. Belongs to the event loop.

    Args:
        name: the node's id, or ``toxiproxy``.
        container: that runs.
        log_path: file that gets the container's output when it ends.
        afterwards: what happens to the ended container.
        on_end: called once, in the event loop, when it has ended.
    """

    def __init__(
        self,
        name: str,
        container: Container,
        *,
        log_path: Path,
        afterwards: Afterwards,
        on_end: Callable[[ProcessEnd], None],
    ) -> None:
        self.name = name
        self.container = container
        self.is_paused = False
        self.pid: int = container.attrs["State"]["Pid"]
        self._log_path = log_path
        self._afterwards = afterwards
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[ProcessEnd] = self._loop.create_future()
        self._asked_for: EndCause | None = None
        threading.Thread(target=self._watch, name=f"end of {name}", daemon=True).start()

    @property
    def end(self) -> ProcessEnd | None:
        """The end of the container's process; ``None`` while it lives."""
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> ProcessEnd:
        """Waits until it has ended."""
        return await asyncio.shield(self._ended)

    async def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> ProcessEnd:
        """Ends it with SIGTERM, and with SIGKILL after ``timeout_s`` seconds. A paused process is resumed first.

        Raises:
            EngineError: the engine is gone.
        """
        if self._ask(EndCause.STOPPED):
            await self.resume()
            await self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(timeout_s):
                return await self.wait()
        except TimeoutError:
            if self._ask(EndCause.STOP_TIMED_OUT):
                await self._signal(signal.SIGKILL)
            return await self.wait()

    async def kill(self) -> ProcessEnd:
        """Ends it with SIGKILL, paused or not, and waits until it is gone.

        Raises:
            EngineError: the engine is gone.
        """
        if self._ask(EndCause.KILLED):
            # A frozen process of a control group of version 1 gets no signal before it thaws.
            await self._signal(signal.SIGKILL)
            await self.resume()
        return await self.wait()

    async def pause(self) -> bool:
        """Freezes all threads of the container; returns whether that changed anything."""
        return await self._switch(self.container.pause, is_paused=True)

    async def resume(self) -> bool:
        """Resumes the container; returns whether that changed anything."""
        return await self._switch(self.container.unpause, is_paused=False)

    def notify(self, number: signal.Signals = signal.SIGUSR1) -> None:
        """Sends the container a signal."""
        if self.end is None:
            with suppress(DockerException, requests.RequestException):
                self.container.kill(signal=number.name)

    async def _switch(self, call: Callable[[], None], *, is_paused: bool) -> bool:
        if self.end is not None or self.is_paused is is_paused:
            return False
        try:
            await in_thread(call.__name__, call)
        except EngineError:
            if self.end is None and self._asked_for is not EndCause.KILLED:
                raise
            return False  # it ended first
        self.is_paused = is_paused
        return True

    async def _signal(self, number: signal.Signals) -> None:
        try:
            await in_thread(f"{number.name} to {self.name}", lambda: self.container.kill(signal=number.name))
        except EngineError:
            if not await self._ends_soon():
                raise

    async def _ends_soon(self) -> bool:
        """Returns whether the process is ending by itself, which is why it got no signal."""
        try:
            async with asyncio.timeout(1):
                await self.wait()
        except TimeoutError:
            return False
        return True

    def _ask(self, cause: EndCause) -> bool:
        if self._ended.done():
            return False
        if cause is not EndCause.STOPPED or self._asked_for is None:
            self._asked_for = cause
        return True

    def _watch(self) -> None:
        """Runs in a thread of its own until the container has ended."""
        code: int | None
        lines: tuple[str, ...] = ()
        explanation: str | None = None
        try:
            code = int(self.container.wait()["StatusCode"])
            lines = self._collect()
            if self._asked_for is None:
                attributes = self.container.attrs
                explanation = explain_kill(
                    code,
                    is_reported=attributes["State"]["OOMKilled"],
                    memory_limit=attributes["HostConfig"]["Memory"],
                )
        except (DockerException, requests.RequestException) as error:
            code, explanation = None, f"the Docker engine went away: {reason_of(error)}"
        with suppress(RuntimeError):  # the event loop is closed: nobody wants to know
            self._loop.call_soon_threadsafe(self._note_end, code, lines, explanation)

    def _collect(self) -> tuple[str, ...]:
        self.container.reload()
        printed = self.container.logs()
        mode = "ab" if self._afterwards is Afterwards.REMOVED else "wb"
        with suppress(OSError), self._log_path.open(mode) as log:  # the end is reported even where the disk is full
            log.write(printed)
        if self._afterwards is Afterwards.REMOVED:
            with suppress(DockerException):
                self.container.remove(force=True)
        return tuple(printed.decode(errors="replace").splitlines()[-_TAIL_LINES:])

    def _note_end(self, code: int | None, lines: tuple[str, ...], explanation: str | None) -> None:
        number = code - _SIGNALLED if code in (_SIGNALLED + signal.SIGKILL, _SIGNALLED + signal.SIGTERM) else None
        end = ProcessEnd(
            name=self.name,
            pid=self.pid,
            cause=EndCause.UNSEEN if code is None else _cause(self._asked_for, code),
            exit_code=None if number is not None else code,
            signal_number=number,
            stderr_tail=lines,
            explanation=explanation,
        )
        self._ended.set_result(end)
        self._on_end(end)


def explain_kill(code: int, *, is_reported: bool, memory_limit: int) -> str | None:
    """Returns the reason of an unexpected end, if the container ran out of memory or may have.

    Args:
        code: the container's exit code.
        is_reported: whether the engine noticed that memory ran out. On a busy machine with control groups of version 1,
            the group can be gone before the engine reads the kernel's notice.
        memory_limit: in bytes; 0 for none.
    """
    if is_reported:
        return _OUT_OF_MEMORY
    if code == _SIGNALLED + signal.SIGKILL and memory_limit > 0:
        return (
            f"signal 9, which no step sent; the kernel sends it where {memory_limit >> 20} MiB of memory are not enough"
        )
    return None


def _cause(asked_for: EndCause | None, code: int) -> EndCause:
    match asked_for:
        case EndCause.STOPPED if code in (0, _SIGNALLED + signal.SIGTERM):
            return EndCause.STOPPED
        case EndCause.KILLED | EndCause.STOP_TIMED_OUT if code == _SIGNALLED + signal.SIGKILL:
            return asked_for
        case _:
            return EndCause.UNEXPECTED
