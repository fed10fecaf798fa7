"""The judges of runs: tasks of Spark, or this process without a JVM. Both call ``judge.judge`` for each run."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from laststand.emulator.verification.spark.tasks import SparkTasks


class JudgeName(Enum):
    """Name of a judge, as in options."""

    SPARK = "spark"
    """Many runs at a time, large runs in slices, on this machine or on a cluster."""

    HERE = "here"
    """One run after another in this process: quick for small runs, and no Java is needed."""


class SessionSource(Protocol):
    """Starts, lends and ends the Spark session in which ``verify_runs`` judges."""

    def start(self) -> None:
        """Starts Spark in the background."""

    def tasks_at_work(self) -> "AbstractContextManager[SparkTasks | None]":
        """Lends the session while its tasks run; ``None`` means that this process judges."""

    def stop(self) -> None:
        """Ends Spark."""


class NoSession:
    """Replaces a session if this process judges (``JudgeName.HERE``)."""

    def start(self) -> None:
        """Does nothing."""

    @contextlib.contextmanager
    def tasks_at_work(self) -> Iterator[None]:
        """Lends ``None``."""
        yield None

    def stop(self) -> None:
        """Does nothing."""
