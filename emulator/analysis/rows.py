"""The rows of some runs, and a table's rows as a DataFrame.

This process reads small runs itself, while Spark's JVM starts, and writes each requested table to a file of JSON lines:
Spark's Python workers would start seconds later, and each query would pass its rows through them. Larger runs, and all
runs on a Spark cluster, are read by Spark's tasks, and their rows stay on the machines of these tasks.
"""

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from laststand.emulator.analysis.filling import BROKEN, Block, fill_from
from laststand.emulator.analysis.kept_tables import Keeping, program_digest
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.verification.reading.run_plan import RunPlan
from laststand.emulator.verification.spark.executors import is_local

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

_LOCAL_MB: Final = 128
"""Evidence up to which one process reads it about as soon as Spark's tasks would."""
_SLICES_PER_CORE: Final = 4
"""Enough for the cores to end at about the same time."""
_SLICE_MB: Final = 16
"""Evidence that is worth a slice of its own: each costs every later question some time."""


class ReadingError(EmulatorError):
    """A task that read runs failed for a reason that lies in no run."""


class Rows(Protocol):
    """The rows of some runs."""

    def census(self) -> Sequence[Block]:
        """Returns an empty block for each table that has rows, and the blocks with the reason why a run has none.

        Raises:
            ReadingError: a task failed.
        """

    def frame(self, spark: "SparkSession", tables: frozenset[str], schema: str) -> "DataFrame":
        """Returns the rows of some tables as one DataFrame.

        Args:
            spark: the session.
            tables: their names; at least one has rows.
            schema: Spark schema of all these tables.
        """

    def release(self) -> None:
        """Frees memory; DataFrames stay usable."""


class LocalRows:
    """Rows that this process has read."""

    def __init__(self, blocks: Sequence[Block], directory: Path | None = None) -> None:
        """Writes nothing yet.

        Args:
            blocks: of all tables, in the order of runs.
            directory: for files; ``None`` for a temporary directory that lasts as long as the session.
        """
        self._blocks = blocks
        self._directory = directory

    def census(self) -> Sequence[Block]:
        """Returns which tables have rows, and why runs have none."""
        return tuple(_counted(self._blocks))

    def frame(self, spark: "SparkSession", tables: frozenset[str], schema: str) -> "DataFrame":
        """Returns the rows of some tables, from files."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="laststand-tables-"))
            weakref.finalize(spark, shutil.rmtree, self._directory, ignore_errors=True)
        filled = sorted(tables & {block.table for block in self._blocks})
        paths = [str(self._file(self._directory, table)) for table in filled]
        return spark.read.schema(schema).option("mode", "FAILFAST").json(paths)

    def release(self) -> None:
        """Frees nothing: tables that are requested later are written from the blocks."""

    def _file(self, directory: Path, table: str) -> Path:
        path = directory / f"{table}.json"
        if not path.exists():
            with path.open("xb") as file:
                for block in self._blocks:
                    if block.table == table:
                        file.write(block.text() + b"\n")
        return path


class TaskRows:
    """Rows that Spark's tasks read, compressed, in memory or on the disks of the executors."""

    def __init__(self, spark: "SparkSession", plans: Sequence[RunPlan], keeping: Keeping) -> None:
        """Starts no task yet.

        Args:
            spark: the session.
            plans: which files of each run are to be read.
            keeping: whether rows are kept in the runs' directories.
        """
        from pyspark import StorageLevel

        context = spark.sparkContext
        slices_per_core = min(_SLICES_PER_CORE, 1 + megabytes(plans) // (_SLICE_MB * context.defaultParallelism))
        slices = max(1, min(len(plans), context.defaultParallelism * slices_per_core))
        # Small runs share a task, and the largest ones are dealt out first.
        ordered = sorted(plans, key=lambda plan: sum(plan.sizes.values()), reverse=True)
        dealt = [ordered[number::slices] for number in range(slices)]
        program = program_digest() if keeping is Keeping.KEEP else None
        filled = context.parallelize(dealt, slices).flatMap(lambda plans: fill_from(plans, program))
        self._blocks: RDD[Block] = filled.persist(StorageLevel.MEMORY_AND_DISK)

    def census(self) -> Sequence[Block]:
        """Lets Spark tasks read the runs; returns which tables have rows, and why runs have none."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            return self._blocks.mapPartitions(_counted).collect()
        except (Py4JJavaError, PySparkException) as error:
            raise ReadingError("a task that read runs failed; spark.log says why") from error

    def frame(self, spark: "SparkSession", tables: frozenset[str], schema: str) -> "DataFrame":
        """Returns the rows of some tables, through Python workers."""
        lines = self._blocks.filter(lambda block: block.table in tables).flatMap(Block.lines)
        return spark.read.schema(schema).option("mode", "FAILFAST").json(lines)

    def release(self) -> None:
        """Frees the rows; DataFrames that are used later read the runs again."""
        self._blocks.unpersist()


def read_here(
    plans: Sequence[RunPlan], keeping: Keeping, *, master: str | None, directory: Path | None = None
) -> LocalRows | None:
    """Reads runs in this process; returns ``None`` if Spark's tasks should read them.

    Args:
        plans: which files of each run are to be read.
        keeping: whether rows are kept in the runs' directories.
        master: Spark's master URL, if it is known.
        directory: for files, which DataFrames need; ``None`` for a temporary directory.
    """
    if master is None or not is_local(master) or megabytes(plans) > _LOCAL_MB:
        return None
    program = program_digest() if keeping is Keeping.KEEP else None
    return LocalRows(tuple(fill_from(plans, program)), directory)


def megabytes(plans: Sequence[RunPlan]) -> int:
    """Returns the size of the evidence of some runs, in MiB."""
    return sum(sum(plan.sizes.values()) for plan in plans) >> 20


def _counted(blocks: Iterable[Block]) -> Iterator[Block]:
    seen = set()
    for block in blocks:
        if block.table == BROKEN:
            yield block
        elif block.table not in seen:
            seen.add(block.table)
            yield block._replace(content=b"")
