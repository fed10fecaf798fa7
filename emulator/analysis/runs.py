"""``read_runs``: run directories as Spark DataFrames.

Each run is read once; a DataFrame takes its rows from the result (``rows``) only when it is used.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from laststand.emulator.analysis.catalogue import ALL_EVENTS, EVENT_TABLES, TABLE_NAMES, table_columns
from laststand.emulator.analysis.filling import BROKEN, Block
from laststand.emulator.analysis.kept_tables import Keeping
from laststand.emulator.analysis.rows import Rows, TaskRows, megabytes, read_here
from laststand.emulator.analysis.schema import ddl_of
from laststand.emulator.core.errors import ConfigError, EmulatorError
from laststand.emulator.verification.reading.run_directory import find_runs, open_run_directory
from laststand.emulator.verification.reading.run_plan import RunPlan, plan_run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COMPILED_FROM_MB: Final = 512
"""Evidence from which on a query is worth compiling."""

_SETTINGS_OF_FEW_ROWS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Spark writes Java for each stage of a query, and compiles it: that takes longer than few rows take uncompiled.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "2",
    }
)


class OnBroken(Enum):
    """Treatment of runs that cannot be read completely."""

    REFUSE = "refuse"
    """Nothing is read at all."""

    SKIP = "skip"
    """They are left out, and ``Runs.broken`` names them."""


class BrokenRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was left out, and why."""

    path: Path
    reason: str


class BrokenRunsError(EmulatorError):
    """Runs that cannot be read completely."""

    def __init__(self, broken: Sequence[BrokenRun]) -> None:
        others = f", nor {len(broken) - 1} other runs" if len(broken) > 1 else ""
        super().__init__(f"{broken[0].path} cannot be analyzed{others}: {broken[0].reason}")
        self.broken = tuple(broken)


class EventFrames(Mapping[str, "DataFrame"]):
    """DataFrames of events by the name of their type, such as ``LogTruncated``: made when they are asked for."""

    def __init__(self, runs: "Runs") -> None:
        self._runs = runs
        self._names = {kind.__name__: name for name, kind in EVENT_TABLES.items()}

    def __getitem__(self, kind: str) -> "DataFrame":
        """Returns the events of a type.

        Raises:
            KeyError: no event type has this name.
        """
        return self._runs.table(self._names[kind])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Runs:
    """Any number of runs as tables; docs/tables.md describes them.

    Every row has ``run``, ``scenario``, ``era`` and ``seed``, and its time in ``time_ns`` and ``time_s``.

    Attributes:
        broken: runs that were left out.
        events: events by the name of their type.
    """

    def __init__(
        self, spark: "SparkSession", rows: Rows, *, filled: frozenset[str], broken: tuple[BrokenRun, ...]
    ) -> None:
        """Made by ``read_runs``.

        Args:
            spark: the session.
            rows: the rows.
            filled: the tables that have rows; for other tables no task is run.
            broken: runs that were left out.
        """
        self._spark = spark
        self._rows = rows
        self._filled = filled
        self._frames: dict[str, DataFrame] = {}
        self.broken = broken
        self.events = EventFrames(self)

    def table(self, name: str) -> "DataFrame":
        """Returns a table by its name: one of those below, ``events``, or an event type in snake case.

        Raises:
            KeyError: no table has this name.
        """
        if name not in self._frames:
            self._frames[name] = self._frame(name)
        return self._frames[name]

    @property
    def runs(self) -> "DataFrame":
        """One row per run: begin and end, also of its workload."""
        return self.table("runs")

    @property
    def history(self) -> "DataFrame":
        """The clients' operations."""
        return self.table("history")

    @property
    def replica_batches(self) -> "DataFrame":
        """The final logs, batch by batch."""
        return self.table("replica_batches")

    @property
    def faults(self) -> "DataFrame":
        """The plan's faults: targets, begin and end."""
        return self.table("faults")

    @property
    def partition_changes(self) -> "DataFrame":
        """The committed states of partitions: leader, ISR, ELR."""
        return self.table("partition_changes")

    @property
    def high_watermarks(self) -> "DataFrame":
        """Changes of high watermarks, of leaders and followers."""
        return self.table("high_watermarks")

    @property
    def verdicts(self) -> "DataFrame":
        """One row per run: its verdict."""
        return self.table("verdicts")

    @property
    def lost_records(self) -> "DataFrame":
        """Acknowledged batches that are not where they must be."""
        return self.table("lost_records")

    @property
    def availability(self) -> "DataFrame":
        """Periods in which a partition was writable, below min ISR or leaderless."""
        return self.table("availability")

    def create_views(self, names: Iterable[str] = TABLE_NAMES) -> None:
        """Makes tables temporary views of their names, for SQL.

        Raises:
            KeyError: there is no such table.
        """
        for name in names:
            self.table(name).createOrReplaceTempView(name)

    def sql(self, query: str, **frames: "DataFrame") -> "DataFrame":
        """Returns the answer to a query over the tables.

        Args:
            query: in Spark's SQL; ``{name}`` stands for the frame with that name in ``frames``.
            frames: further tables.

        Raises:
            pyspark.errors.PySparkException: Spark refused the query.
        """
        words = set(re.findall(r"\w+", query.lower()))
        self.create_views([name for name in TABLE_NAMES if name in words] or TABLE_NAMES)
        return self._spark.sql(query, None, **frames)

    def cancel(self) -> None:
        """Cancels the session's computation, whose result is no longer needed."""
        self._spark.sparkContext.cancelAllJobs()

    def release(self) -> None:
        """Frees memory; the DataFrames read the runs again if they are used again."""
        self._rows.release()

    def _frame(self, name: str) -> "DataFrame":
        names = frozenset(EVENT_TABLES) if name == ALL_EVENTS else frozenset((name,))
        schema = ddl_of(table_columns(name))
        if not names & self._filled:
            return self._spark.createDataFrame([], schema)
        return self._rows.frame(self._spark, names, schema)


def read_runs(
    spark: "SparkSession",
    paths: Sequence[Path | str],
    *,
    on_broken: OnBroken = OnBroken.REFUSE,
    keeping: Keeping = Keeping.KEEP,
) -> Runs:
    """Reads run directories into tables.

    Args:
        spark: the session, as ``laststand.spark()`` starts it.
        paths: run directories, or directories that hold some, visible to Spark's workers; a run that is named twice is
            read once.
        on_broken: what to do about runs that are missing or cannot be read completely.
        keeping: whether rows are kept in the runs' directories for later queries.

    Raises:
        BrokenRunsError: there are runs that cannot be read, and ``on_broken`` does not leave them out.
        ReadingError: a task failed.
    """
    plans, missing = plan_runs([Path(path) for path in paths])
    rows = read_here(plans, keeping, master=spark.sparkContext.master) or TaskRows(spark, plans, keeping)
    return runs_of(rows, spark, plans, missing, on_broken=on_broken)


def runs_of(
    rows: Rows,
    spark: "SparkSession",
    plans: Sequence[RunPlan],
    missing: Sequence[BrokenRun],
    *,
    on_broken: OnBroken,
) -> Runs:
    """Returns the tables of runs that ``plan_runs`` has listed, by their rows; the rest is as for ``read_runs``."""
    census = rows.census()
    broken = (*missing, *_broken_runs(census, plans))
    if broken and on_broken is OnBroken.REFUSE:
        rows.release()
        raise BrokenRunsError(broken)
    return Runs(spark, rows, filled=frozenset(each.table for each in census), broken=broken)


def plan_runs(paths: Sequence[Path]) -> tuple[tuple[RunPlan, ...], tuple[BrokenRun, ...]]:
    """Returns which files of each run to read, and the paths that are no runs; needs no Spark session.

    Args:
        paths: run directories, and directories that hold some.
    """
    plans: dict[Path, RunPlan] = {}
    missing = []
    for path in (run for each in paths for run in find_runs(each)):
        try:
            run = open_run_directory(path)
            if run.path not in plans:
                plans[run.path] = plan_run(len(plans), run)
        except ConfigError:
            missing.append(BrokenRun(path=path, reason="it is no run directory (events/, history, nodes/)"))
        except OSError as error:
            missing.append(BrokenRun(path=path, reason=f"{error.strerror}: {error.filename}"))
    return tuple(plans.values()), tuple(missing)


def settings_for(plans: Sequence[RunPlan]) -> Mapping[str, str]:
    """Returns Spark settings for queries over some runs."""
    return _SETTINGS_OF_FEW_ROWS if megabytes(plans) < _COMPILED_FROM_MB else {}


def _broken_runs(census: Sequence[Block], plans: Sequence[RunPlan]) -> tuple[BrokenRun, ...]:
    return tuple(
        BrokenRun(path=plans[block.number].run.path, reason=block.lines()[0])
        for block in sorted(census, key=lambda block: block.number)
        if block.table == BROKEN
    )
