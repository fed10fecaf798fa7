"""Brings the rows of sorted slices to the processes that judge partitions.

If all of Spark's workers are on this machine, each writes its sorted rows into one file, and others read their parts of
it: no row passes through the JVM. On a cluster of several machines Spark's shuffle moves the rows.
"""

import os
import pickle
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from laststand.emulator.verification.slices.reading import Slice, SliceSummary, SortedSlice, summary_of
from laststand.emulator.verification.slices.rows import SliceRows, SliceTables
from laststand.emulator.verification.spark.executors import is_local, is_loopback
from laststand.emulator.verification.tables.rows import PartitionName, share_of

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

_PICKLED: Final = 5
_SHARES: Final = 32
_SHARES_PER_CORE: Final = 8
"""Enough shares for all cores to finish at about the same time."""

_Result = TypeVar("_Result")

SortSlice = Callable[[Slice], SortedSlice | None]
"""Returns ``None`` for a slice of a run that has to be read whole."""

NamedRows = tuple[PartitionName, SliceRows]
"""The rows of a partition in all slices."""

JudgeShare = Callable[[Iterator[NamedRows]], Iterator[_Result]]


class Exchange(Protocol):
    """The sorted slices of one run. Partitions are divided into shares; the rows of a share go to one task."""

    def summaries(self) -> list[SliceSummary | None]:
        """Sorts the slices in tasks, and returns a summary of each."""

    def judged(self, names: Sequence[PartitionName], judge: JudgeShare[_Result]) -> list[_Result]:
        """Judges each partition with its rows, one share per task; returns the results in the order of ``names``."""


@contextmanager
def exchange(
    context: "SparkContext", slices: Sequence[Slice], sort: SortSlice, *, shares_disk: bool | None = None
) -> Iterator[Exchange]:
    """Yields the exchange that moves the rows of slices.

    Args:
        context: Spark's.
        slices: the slices to sort.
        sort: sorts a slice.
        shares_disk: whether workers can read files that other workers wrote; determined by a test if not given.
    """
    directory = Path(tempfile.mkdtemp(prefix="slices-", dir=context._temp_dir))
    try:
        if _is_shared(context, directory) if shares_disk is None else shares_disk:
            yield _OnDisk(context, slices, sort, directory)
        else:
            yield _Shuffled(context, slices, sort)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _is_shared(context: "SparkContext", directory: Path) -> bool:
    """Returns whether workers can write into a directory of this machine.

    Executors that reach the driver at a loopback address are on this machine; they may still see other files, or belong
    to another user.
    """
    if is_local(str(context.master)):
        return True
    if not is_loopback(str(context.getConf().get("spark.driver.host", ""))):
        return False
    place = str(directory)
    tasks = range(max(context.defaultParallelism, 1))
    return all(_dealt(context, tasks).map(lambda _: os.access(place, os.R_OK | os.W_OK | os.X_OK)).collect())


class _Stored(NamedTuple):
    """The place of one slice's rows of a share in a file."""

    piece: Slice
    path: Path
    begin: int
    size: int

    def rows(self) -> SliceTables:
        with self.path.open("rb") as file:
            file.seek(self.begin)
            found: SliceTables = pickle.loads(file.read(self.size))
        return found


class _OnDisk:
    """Moves rows through files, one for each slice; Spark moves only the files' names."""

    def __init__(self, context: "SparkContext", slices: Sequence[Slice], sort: SortSlice, directory: Path) -> None:
        self._context = context
        self._slices = slices
        self._sort = sort
        self._directory = directory
        self._stored: defaultdict[int, list[_Stored]] = defaultdict(list)

    def summaries(self) -> list[SliceSummary | None]:
        sort, directory, count = self._sort, self._directory, _shares(self._context)

        def store(piece: Slice) -> tuple[SliceSummary, dict[int, _Stored]] | None:
            found = sort(piece)
            return None if found is None else (summary_of(found), _store(found, count, directory))

        found: list[SliceSummary | None] = []
        for each in _dealt(self._context, self._slices).map(store).collect():
            found.append(None if each is None else each[0])
            for share, stored in {} if each is None else each[1].items():
                self._stored[share].append(stored)
        return found

    def judged(self, names: Sequence[PartitionName], judge: JudgeShare[_Result]) -> list[_Result]:
        shares = by_share(names, _shares(self._context))
        dealt = [(own, self._stored.get(share, [])) for share, own in shares.items()]

        def judged(task: tuple[list[PartitionName], list[_Stored]]) -> Iterator[_Result]:
            own, stored = task
            return judge(named_rows(own, [(each.piece, each.rows()) for each in stored]))

        return _in_order(names, shares, _dealt(self._context, dealt).flatMap(judged).collect())


def _store(found: SortedSlice, count: int, directory: Path) -> dict[int, _Stored]:
    piece = found.census.slice
    # A task that Spark repeats, or starts twice, writes a file of its own.
    with tempfile.NamedTemporaryFile(prefix=f"{piece.number}-", dir=directory, delete=False) as file:
        stored = {}
        for share, rows in found.tables.shares(count).items():
            begin = file.tell()
            pickle.dump(rows, file, _PICKLED)
            stored[share] = _Stored(piece, Path(file.name), begin, file.tell() - begin)
    return stored


class _Shuffled:
    """Moves rows through Spark's shuffle, pickled only once; its last partition holds the summaries."""

    def __init__(self, context: "SparkContext", slices: Sequence[Slice], sort: SortSlice) -> None:
        count = _shares(context)

        def keyed(piece: Slice) -> Iterator[tuple[int, Any]]:
            found = sort(piece)
            yield count, None if found is None else summary_of(found)
            for share, rows in {} if found is None else found.tables.shares(count).items():
                yield share, (piece, pickle.dumps(rows, _PICKLED))

        self._context = context
        self._count = count
        self._found = _dealt(context, slices).flatMap(keyed).partitionBy(count + 1, int)

    def summaries(self) -> list[SliceSummary | None]:
        return self._context.runJob(self._found.values(), list, [self._count])

    def judged(self, names: Sequence[PartitionName], judge: JudgeShare[_Result]) -> list[_Result]:
        shares = by_share(names, self._count)

        def judged(share: int, pieces: Iterable[tuple[int, tuple[Slice, bytes]]]) -> Iterator[_Result]:
            rows = [(piece, pickle.loads(pickled)) for _, (piece, pickled) in pieces]
            return judge(named_rows(shares[share], rows))

        found = self._context.runJob(self._found.mapPartitionsWithIndex(judged), list, list(shares))
        return _in_order(names, shares, found)


def by_share(names: Sequence[PartitionName], count: int) -> dict[int, list[PartitionName]]:
    """Returns the partitions by share; shares without partitions are left out."""
    shares: defaultdict[int, list[PartitionName]] = defaultdict(list)
    for name in names:
        shares[share_of(name, count)].append(name)
    return dict(shares)


def named_rows(names: Sequence[PartitionName], pieces: Iterable[tuple[Slice, SliceTables]]) -> Iterator[NamedRows]:
    """Yields partitions and their rows.

    Args:
        names: the partitions of a share.
        pieces: the share's rows of each slice, in any order.
    """
    ordered = [rows for _, rows in sorted(pieces, key=lambda each: each[0].number)]
    found = ordered[0].joined(ordered[1:]).by_partition() if ordered else {}
    ordered.clear()
    for name in names:
        yield name, found.pop(name) if name in found else SliceRows.none(name)


def _in_order(
    names: Sequence[PartitionName], shares: Mapping[int, Sequence[PartitionName]], found: Sequence[_Result]
) -> list[_Result]:
    results = dict(zip(chain.from_iterable(shares.values()), found, strict=True))
    return [results[name] for name in names]


def _shares(context: "SparkContext") -> int:
    """Returns the number of shares, each of which a task judges."""
    return max(_SHARES, _SHARES_PER_CORE * context.defaultParallelism)


def _dealt(context: "SparkContext", pieces: Sequence[Any]) -> "RDD[Any]":
    """Returns an RDD of the pieces, with a task for each."""
    return context.parallelize(pieces, max(len(pieces), 1))
