"""Brings the rows of sorted slices to the processes that judge partitions.

Where all of Spark's workers are on this machine, each writes what it sorted into one file, and others read their parts
of it: no row passes through the JVM. On a cluster Spark's shuffle moves the rows.
"""

import pickle
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from laststand.emulator.verification.slices.reading import Slice, SliceSummary, SortedSlice, summary_of
from laststand.emulator.verification.slices.rows import SliceRows
from laststand.emulator.verification.spark.executors import is_local
from laststand.emulator.verification.tables.rows import PartitionName

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

_PICKLED: Final = 5
_TASKS: Final = 32
_TASKS_PER_CORE: Final = 8
"""Enough tasks for cores to end at about the same time."""

_Result = TypeVar("_Result")

SortSlice = Callable[[Slice], SortedSlice | None]
"""``None`` of a slice that has to be judged otherwise."""

PartitionRows = Sequence[tuple[Slice, SliceRows]]
"""The rows of a partition in slices, in any order."""

NamedRows = tuple[PartitionName, PartitionRows]


class Exchange(Protocol):
    """Sorted slices of one run, wherever they are."""

    def summaries(self) -> list[SliceSummary | None]:
        """Has the slices sorted, and returns a summary of each."""

    def judged(
        self, names: Sequence[PartitionName], judge: Callable[[Iterator[NamedRows]], Iterator[_Result]]
    ) -> list[_Result]:
        """Has each partition judged beside its rows, some of them in one task; returns the results in that order."""


@contextmanager
def exchange(
    context: "SparkContext", slices: Sequence[Slice], sort: SortSlice, *, shares_disk: bool | None = None
) -> Iterator[Exchange]:
    """Yields the exchange that moves the rows of slices.

    Args:
        context: Spark's.
        slices: to be sorted.
        sort: sorts one.
        shares_disk: whether workers read what others wrote; found out if not given.
    """
    if is_local(str(context.master)) if shares_disk is None else shares_disk:
        directory = Path(tempfile.mkdtemp(prefix="slices-", dir=context._temp_dir))
        try:
            yield _OnDisk(context, slices, sort, directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    else:
        shuffled = _Shuffled(context, slices, sort)
        try:
            yield shuffled
        finally:
            shuffled.end()


class _Stored(NamedTuple):
    """Rows of a partition in a file: pickled once, read once."""

    piece: Slice
    path: Path
    begin: int
    size: int

    def rows(self) -> SliceRows:
        with self.path.open("rb") as file:
            file.seek(self.begin)
            found: SliceRows = pickle.loads(file.read(self.size))
        return found


class _OnDisk:
    """Rows go through files, one of each slice; Spark moves their names."""

    def __init__(self, context: "SparkContext", slices: Sequence[Slice], sort: SortSlice, directory: Path) -> None:
        self._context = context
        self._slices = slices
        self._sort = sort
        self._directory = directory
        self._stored: defaultdict[PartitionName, list[_Stored]] = defaultdict(list)

    def summaries(self) -> list[SliceSummary | None]:
        sort, directory = self._sort, self._directory

        def store(piece: Slice) -> tuple[SliceSummary, dict[PartitionName, _Stored]] | None:
            found = sort(piece)
            return None if found is None else (summary_of(found), _store(found, directory))

        found: list[SliceSummary | None] = []
        for each in _dealt(self._context, self._slices).map(store).collect():
            found.append(None if each is None else each[0])
            for name, stored in {} if each is None else each[1].items():
                self._stored[name].append(stored)
        return found

    def judged(
        self, names: Sequence[PartitionName], judge: Callable[[Iterator[NamedRows]], Iterator[_Result]]
    ) -> list[_Result]:
        dealt = [(name, self._stored.get(name, [])) for name in names]
        found = self._context.parallelize(dealt, _tasks(self._context, len(dealt))).mapPartitions(
            lambda share: judge((name, [(each.piece, each.rows()) for each in stored]) for name, stored in share)
        )
        return found.collect()


def _store(found: SortedSlice, directory: Path) -> dict[PartitionName, _Stored]:
    piece = found.census.slice
    # A task that Spark repeats, or starts twice, writes a file of its own.
    with tempfile.NamedTemporaryFile(prefix=f"{piece.number}-", dir=directory, delete=False) as file:
        stored = {}
        for name, rows in found.partitions.items():
            begin = file.tell()
            pickle.dump(rows, file, _PICKLED)
            stored[name] = _Stored(piece, Path(file.name), begin, file.tell() - begin)
    return stored


class _SortedRows(NamedTuple):
    """A sorted slice on its way: ``partitions`` has the rows of each, pickled once for the whole way."""

    summary: SliceSummary
    partitions: dict[PartitionName, bytes]


class _Shuffled:
    """Rows go through Spark's shuffle."""

    def __init__(self, context: "SparkContext", slices: Sequence[Slice], sort: SortSlice) -> None:
        from pyspark import StorageLevel

        def pickled(piece: Slice) -> _SortedRows | None:
            found = sort(piece)
            if found is None:
                return None
            parts = {name: pickle.dumps(rows, _PICKLED) for name, rows in found.partitions.items()}
            return _SortedRows(summary_of(found), parts)

        self._found = _dealt(context, slices).map(pickled).persist(StorageLevel.DISK_ONLY)

    def end(self) -> None:
        self._found.unpersist()

    def summaries(self) -> list[SliceSummary | None]:
        return self._found.map(lambda each: None if each is None else each.summary).collect()

    def judged(
        self, names: Sequence[PartitionName], judge: Callable[[Iterator[NamedRows]], Iterator[_Result]]
    ) -> list[_Result]:
        tasks = _tasks(self._found.context, len(names))
        shares = [names[len(names) * task // tasks : len(names) * (task + 1) // tasks] for task in range(tasks)]
        places = {name: task for task, share in enumerate(shares) for name in share}

        def own(task: int, pieces: Iterable[tuple[PartitionName, tuple[Slice, bytes]]]) -> Iterator[_Result]:
            rows: defaultdict[PartitionName, list[tuple[Slice, bytes]]] = defaultdict(list)
            for name, piece in pieces:
                rows[name].append(piece)
            return judge(
                (name, [(piece, pickle.loads(pickled)) for piece, pickled in rows.pop(name, [])])
                for name in shares[task]
            )

        found = self._found.flatMap(_parts).partitionBy(tasks, places.__getitem__)
        return found.mapPartitionsWithIndex(own).collect()


def _parts(found: _SortedRows | None) -> Iterator[tuple[PartitionName, tuple[Slice, bytes]]]:
    if found is not None:
        for name, rows in found.partitions.items():
            yield name, (found.summary.census.slice, rows)


def _tasks(context: "SparkContext", partitions: int) -> int:
    """Returns the number of tasks that judge so many partitions, each of which costs about as much as a small one."""
    return max(min(partitions, max(_TASKS, _TASKS_PER_CORE * context.defaultParallelism)), 1)


def _dealt(context: "SparkContext", pieces: Sequence[Any]) -> "RDD[Any]":
    """Returns the pieces, each in a task of its own."""
    return context.parallelize(pieces, max(len(pieces), 1))
