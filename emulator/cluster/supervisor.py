"""Owns all child processes of a run, so that none of them outlives it.

Leaving the ``async with`` block kills what still runs. If this process itself is killed, the kernel kills the children
(``laststand.emulator.parent_death``). Every end is recorded with its cause, so that a verdict can take an unexpected
crash into account::

    async with Supervisor() as supervisor:
        nodes = await asyncio.gather(*(supervisor.start(spec) for spec in specs))
        ...
        await supervisor.stop_all()
        crashes = [end for end in supervisor.ends if end.cause is EndCause.UNEXPECTED]
"""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from laststand.emulator.cluster.child import START_TIMEOUT_S, STOP_TIMEOUT_S, Child, ProcessEnd, ProcessSpec
from laststand.emulator.core.errors import InvariantError


def _ignore(_end: ProcessEnd) -> None:
    pass


class Supervisor:
    """Starts and ends child processes and remembers how each of them ended. Main thread only."""

    def __init__(self, *, on_end: Callable[[ProcessEnd], None] = _ignore) -> None:
        """Own no process yet.

        Args:
            on_end: called in the event loop at once when a child has ended, expected or not.
        """
        self._on_end = on_end
        self._children: dict[str, Child] = {}
        self._ends: list[ProcessEnd] = []

    async def __aenter__(self) -> Self:
        """Return this supervisor."""
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Kill the remaining processes, and wait until they are gone."""
        await asyncio.gather(*(child.kill() for child in tuple(self._children.values())))

    @property
    def children(self) -> Mapping[str, Child]:
        """The living children by name."""
        return self._children

    @property
    def ends(self) -> tuple[ProcessEnd, ...]:
        """The ends of all children so far, in the order in which they were noticed."""
        return tuple(self._ends)

    async def start(self, spec: ProcessSpec, *, timeout_s: float = START_TIMEOUT_S) -> Child:
        """Start a child and wait until it is ready, if it reports that. Several may be started at once with ``gather``.

        Raises:
            StartError: the child ended or was not ready within ``timeout_s`` seconds; it was killed.
            InvariantError: a child of that name lives.
            OSError: the process could not be made.
        """
        if spec.name in self._children:
            raise InvariantError(f"{spec.name} runs already")
        child = Child(spec, on_end=self._record_end)
        self._children[spec.name] = child
        try:
            await child.await_ready(timeout_s=timeout_s)
        except asyncio.CancelledError:
            await asyncio.shield(child.kill())
            raise
        return child

    async def stop_all(self, *, timeout_s: float = STOP_TIMEOUT_S) -> tuple[ProcessEnd, ...]:
        """End all living children at once with SIGTERM, and with SIGKILL after ``timeout_s`` seconds."""
        living = tuple(self._children.values())
        return tuple(await asyncio.gather(*(child.stop(timeout_s=timeout_s) for child in living)))

    def _record_end(self, end: ProcessEnd) -> None:
        del self._children[end.name]
        self._ends.append(end)
        self._on_end(end)
