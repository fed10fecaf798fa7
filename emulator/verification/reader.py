"""Loads any number of runs into Spark, one view per kind of fact, each keyed by ``run``.

Views (columns are the fields of the struct after ``run``):

- ``batch_appended``, ``partition_changed`` and so on: one per event that a check asks for, with ``node``,
  ``incarnation`` and ``sequence``;
- ``sent_batch``, ``received_batch``, ``poll``, ``final_read_operation``: the history;
- ``final_batch``, ``final_log``: what the logs hold, by ``log_reader``; ``node_directory``: nodes that left any.

``line_reader`` and ``log_reader`` write one file of lines per frequent kind of fact and one for all rare ones. What is
small is held in memory as one partition; from ``LARGE_FROM_BYTES`` on frequent kinds are converted to Parquet first.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from emulator.core import events as e
from emulator.core.history import FinalReadOperation
from emulator.verification.line_reader import Poll, ReceivedBatch, RunLines, SentBatch, read_run
from emulator.verification.log_reader import FinalBatch, FinalLog, read_node_logs
from emulator.verification.run_directory import RunDirectory
from emulator.verification.vocabulary import EVENT_TYPES, ddl, struct_columns, view_name, wide_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LARGE_FROM_BYTES: Final = 64 << 20
"""Size of all event files from which they are converted to Parquet and held in several partitions."""


class Scale(Enum):
    """How much there is to verify."""

    SMALL = "small"
    """Planning is the cost: one partition, no generated code."""

    LARGE = "large"
    """Data is the cost: Parquet by kind, several partitions, generated code."""


class NodeDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """A node that left a directory."""

    node: int


# What is malformed becomes null rather than ending the query.
_ALWAYS: Final = {"spark.sql.ansi.enabled": "false"}

_SETTINGS: Final = {
    # One partition needs no exchange, so a broadcast would only be a second job.
    Scale.SMALL: {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.optimizer.disableHints": "true",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    },
    Scale.LARGE: {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.autoBroadcastJoinThreshold": str(10 << 20),
        "spark.sql.optimizer.disableHints": "false",
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
    },
}

_FREQUENT: Final = (
    e.BatchAppended,
    e.HighWatermarkAdvanced,
    e.FollowerHighWatermarkUpdated,
    e.ProduceAnswered,
    SentBatch,
    ReceivedBatch,
    Poll,
    FinalBatch,
)
_RARE: Final = (
    e.NodeStarted,
    e.IncarnationEnded,
    e.PowerLost,
    e.MetadataApplied,
    e.LogOpened,
    e.LogDeleted,
    e.StrayDetected,
    e.StrayDeleted,
    e.RecoveryStarted,
    e.RecoveryFinished,
    e.LogTruncated,
    e.LogStartOffsetRaised,
    e.BecameLeader,
    e.BecameFollower,
    e.BrokerRegistered,
    e.BrokerFenced,
    e.BrokerUnfenced,
    e.ControlledShutdownStarted,
    e.TopicDeleted,
    e.ConfigChanged,
    e.FeatureChanged,
    e.PartitionChanged,
    e.AlterPartitionDecided,
    e.ClusterSettled,
    FinalReadOperation,
    FinalLog,
    NodeDirectory,
)
_ASKED_OFTEN: Final = frozenset({e.PartitionChanged, e.BecameLeader})

_RARE_FILE: Final = "rare"
_WRITE_BUFFER_LINES: Final = 10_000
_ENVELOPE: Final = {"node": "BIGINT", "incarnation": "BIGINT", "sequence": "BIGINT"}
_TIMED: Final = frozenset({e.NodeStarted, e.StrayDetected, e.StrayDeleted})
"""Events whose ``time_ns`` counts; it is compared within one process only."""


def load_runs(
    runs: tuple[RunDirectory, ...], *, spark: "SparkSession", work: Path, pool: Executor
) -> tuple[Scale, tuple[RunLines, ...]]:
    """Defines the views over ``runs``, whose keys are their positions.

    Args:
        runs: whose directories must stay in place until verification ends.
        spark: the session that gets the views.
        work: empty directory for sorted and converted files, visible to Spark's executors.
        pool: runs what is independent side by side.

    Returns:
        How to hold what follows from the views, and what was read beside them.
    """
    scale = scale_of(runs)
    for setting, value in {**_ALWAYS, **_SETTINGS[scale]}.items():
        spark.conf.set(setting, value)
    lines = tuple(_sort(runs, work))

    def define(kind: type[msgspec.Struct]) -> None:
        frame = _table(spark, work / view_name(kind), _columns(kind))
        _hold(frame, scale, work / f"{view_name(kind)}.parquet").createOrReplaceTempView(view_name(kind))

    defined = [pool.submit(define, kind) for kind in _FREQUENT]
    _define_rare(spark, work, scale)
    for future in defined:
        future.result()
    return scale, lines


def held(frame: "DataFrame", scale: Scale) -> "DataFrame":
    """Computes a table once, in the way that suits its size.

    A small one becomes a single partition without a plan: joins and windows over such tables need no exchange, and
    nothing is planned twice. A large one is cached in columns.
    """
    return frame.coalesce(1).localCheckpoint() if scale is Scale.SMALL else frame.persist()


def scale_of(runs: tuple[RunDirectory, ...]) -> Scale:
    """Returns how much there is to verify."""
    size = sum(path.stat().st_size for run in runs for path in run.event_files())
    return Scale.LARGE if size >= LARGE_FROM_BYTES else Scale.SMALL


class _Sorter:
    """Writes lines into one file per kind, with run and kind in front."""

    def __init__(self, work: Path, files: ExitStack) -> None:
        self._targets = {kind.__name__: view_name(kind) for kind in _FREQUENT}
        self._targets.update({kind.__name__: _RARE_FILE for kind in _RARE})
        self._files: dict[str, BinaryIO] = {
            name: files.enter_context((work / name).open("wb")) for name in dict.fromkeys(self._targets.values())
        }
        self._pending: dict[str, list[bytes]] = {name: [] for name in self._files}
        self._heads: dict[str, bytes] = {}

    def begin(self, run: int) -> None:
        """What follows is of this run."""
        self._heads = {
            kind: b'{"_run":%d,"_kind":"%s",' % (run, kind.encode()) for kind, target in self._targets.items()
        }

    def put(self, kind: str, line: bytes) -> None:
        """Takes a JSON object; kinds that no view asks for are dropped."""
        head = self._heads.get(kind)
        if head is None:
            return
        target = self._targets[kind]
        pending = self._pending[target]
        pending.append(head + line.strip()[1:])
        if len(pending) >= _WRITE_BUFFER_LINES:
            self.flush(target)

    def flush(self, target: str) -> None:
        """Writes what waits for one file."""
        self._files[target].write(b"".join(line + b"\n" for line in self._pending[target]))
        self._pending[target].clear()

    def close(self) -> None:
        """Writes everything that waits."""
        for target in self._files:
            self.flush(target)


def _sort(runs: tuple[RunDirectory, ...], work: Path) -> Iterator[RunLines]:
    encoder = msgspec.json.Encoder()
    with ExitStack() as files:
        sorter = _Sorter(work, files)
        for number, run in enumerate(runs):
            sorter.begin(number)
            lines = read_run(run, put=sorter.put)
            yield lines
            taken_over = lines.timeline.logs_taken_over()
            for node, directory in run.node_directories():
                sorter.put(NodeDirectory.__name__, encoder.encode(NodeDirectory(node=node)))
                for found in read_node_logs(node=node, directory=directory):
                    name = (node, found.topic, found.partition, found.topic_id or "")
                    if name in taken_over:
                        found = msgspec.structs.replace(found, topic_id=taken_over[name])
                    lines.census.add_final(found)
                    sorter.put(type(found).__name__, encoder.encode(found))
        sorter.close()


def _columns(kind: type[msgspec.Struct]) -> dict[str, str]:
    envelope = _ENVELOPE if kind in EVENT_TYPES else {}
    return {**envelope, **({"time_ns": "BIGINT"} if kind in _TIMED else {}), **struct_columns(kind)}


def _table(spark: "SparkSession", path: Path, columns: dict[str, str]) -> "DataFrame":
    read = spark.read.schema(ddl({"_run": "INT", **columns})).json(str(path))
    return read.selectExpr("_run AS run", *(f"`{name}`" for name in columns))


def _hold(frame: "DataFrame", scale: Scale, path: Path) -> "DataFrame":
    if scale is Scale.SMALL:
        return held(frame, scale)
    frame.write.parquet(str(path))
    return frame.sparkSession.read.schema(frame.schema).parquet(str(path))


def _define_rare(spark: "SparkSession", work: Path, scale: Scale) -> None:
    everything = held(
        _table(spark, work / _RARE_FILE, {"_kind": "STRING", **_ENVELOPE, "time_ns": "BIGINT", **wide_columns(_RARE)}),
        scale,
    )
    for kind in _RARE:
        names = ("run", *_columns(kind))
        frame = everything.where(f"_kind = '{kind.__name__}'").select(*dict.fromkeys(names))
        if scale is Scale.SMALL and kind in _ASKED_OFTEN:
            frame = held(frame, scale)
        frame.createOrReplaceTempView(view_name(kind))
