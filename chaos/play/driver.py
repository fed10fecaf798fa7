"""A driver starts a scenario's cluster and clients, and leaves the evidence in the run directory."""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.target import Target
from laststand.emulator.core.types import TopicPartition


class Driver(Protocol):
    """One run's cluster and clients, from their start to the last line of the event log."""

    def open(self) -> AbstractAsyncContextManager[Target]:
        """Starts every node, and clients that wait; when the context ends, no process is left.

        Raises:
            EmulatorError: a process did not start.
        """
        ...

    async def start_work(self) -> None:
        """Starts the work of producers and consumers."""
        ...

    async def stop_work(self, *, timeout_ms: int) -> None:
        """Stops producers and consumers, and awaits the outcome of their requests for ``timeout_ms`` at most."""
        ...

    async def read_all(self, partitions: tuple[TopicPartition, ...], *, timeout_ms: int) -> None:
        """Reads partitions from log start to high watermark with a fresh consumer, bypassing all broken links."""
        ...

    async def stop(self) -> None:
        """Ends the clients, then stops in order every node that runs."""
        ...

    async def close(self, *, problem: str | None) -> None:
        """Completes the run directory; ``problem`` says why the plan did not reach its end."""
        ...


class MakeDriver(Protocol):
    """Returns the driver that an order names."""

    def __call__(self, order: RunOrder, *, logger: logging.Logger, on_problem: Callable[[str], None]) -> Driver:
        """``logger`` is that of ``run.log``; ``on_problem`` is called with processes that end by themselves."""
        ...
