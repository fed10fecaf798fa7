"""Loads any number of runs into Spark, one view per kind of fact, each keyed by ``run``.

Views (columns are the fields of the struct after ``run``):

- ``node_started`` ... ``run_ended``: one per event, with ``node``, ``incarnation`` and ``sequence``;
- ``send_operation``, ``poll_operation``, ``final_read_operation``: the history;
- ``final_batch``, ``final_log``: what the logs hold, by ``log_reader``; ``node_directory``: nodes that left any;
- ``event_line``, ``history_line``: every line, for the questions that ask whether the evidence is whole.

The runs' directories are linked into a work directory as ``events/run=3``, which makes ``run`` a partition column.
What is small is held in memory as one partition; from ``LARGE_FROM_BYTES`` on events are converted to Parquet first, by
type.
"""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from emulator.core.events import BatchAppended, BecameLeader, PartitionChanged
from emulator.verification.log_reader import FinalBatch, FinalLog, read_node_logs
from emulator.verification.run_directory import RunDirectory
from emulator.verification.vocabulary import (
    CORRUPT,
    ENVELOPE,
    EVENT_TYPES,
    OPERATION_TYPES,
    ddl,
    struct_columns,
    tag,
    view_name,
    wide_columns,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LARGE_FROM_BYTES: Final = 64 << 20
"""Size of all event files from which they are converted to Parquet and held in several partitions."""


class Scale(Enum):
    """How much there is to verify."""

    SMALL = "small"
    """Planning is the cost: one partition, no generated code."""

    LARGE = "large"
    """Data is the cost: Parquet by type, several partitions, generated code."""


# What is malformed becomes null and is counted, rather than ending the query.
_ALWAYS: Final = {"spark.sql.ansi.enabled": "false"}

_SETTINGS: Final = {
    Scale.SMALL: {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    },
    Scale.LARGE: {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
    },
}

_WRITE_BUFFER_LINES: Final = 10_000


# Planning a query costs by the columns below it, and a line has a hundred.
_ASKED_OFTEN: Final = frozenset({PartitionChanged, BecameLeader, BatchAppended})


def load_runs(runs: tuple[RunDirectory, ...], *, spark: "SparkSession", work: Path) -> Scale:
    """Defines the views over ``runs``, whose keys are their positions, and returns how to hold what follows from them.

    Args:
        runs: whose directories must stay in place until verification ends.
        spark: the session that gets the views.
        work: empty directory for links and converted files, visible to Spark's executors.
    """
    scale = _scale(runs)
    for setting, value in {**_ALWAYS, **_SETTINGS[scale]}.items():
        spark.conf.set(setting, value)
    _link(runs, work)
    lines = _read_lines(spark, work / "events", EVENT_TYPES, ENVELOPE)
    if scale is Scale.LARGE:
        lines.write.partitionBy("type").parquet(str(work / "parquet"))
        lines = spark.read.schema(lines.schema).parquet(str(work / "parquet"))
    else:
        lines = held(lines, scale)
    lines.createOrReplaceTempView("event_line")
    history = held(_read_lines(spark, work / "history", OPERATION_TYPES, {"f": "STRING"}), scale)
    history.createOrReplaceTempView("history_line")
    _define_views(lines, "type", EVENT_TYPES, ("run", "node", "incarnation", "sequence"), scale)
    _define_views(history, "f", OPERATION_TYPES, ("run",), scale)
    _load_final_logs(runs, spark=spark, work=work, scale=scale)
    return scale


def held(frame: "DataFrame", scale: Scale) -> "DataFrame":
    """Computes a table once, in the way that suits its size.

    A small one becomes a single partition without a plan: joins and windows over such tables need no exchange, and
    nothing is planned twice. A large one is cached in columns.
    """
    return frame.coalesce(1).localCheckpoint() if scale is Scale.SMALL else frame.persist()


def _scale(runs: tuple[RunDirectory, ...]) -> Scale:
    size = sum(path.stat().st_size for run in runs for path in run.event_files())
    return Scale.LARGE if size >= LARGE_FROM_BYTES else Scale.SMALL


def _link(runs: tuple[RunDirectory, ...], work: Path) -> None:
    for kind in ("events", "history"):
        (work / kind).mkdir()
    for number, run in enumerate(runs):
        if run.events.is_dir():
            (work / "events" / f"run={number}").symlink_to(run.events, target_is_directory=True)
        if run.history.is_file():
            (work / "history" / f"run={number}").mkdir()
            (work / "history" / f"run={number}" / "history.jsonl").symlink_to(run.history)


def _read_lines(
    spark: "SparkSession", path: Path, structs: tuple[type[msgspec.Struct], ...], envelope: dict[str, str]
) -> "DataFrame":
    from pyspark.sql import functions

    columns = {"run": "INT", **envelope, **wide_columns(structs), CORRUPT: "STRING"}
    frame = (
        spark.read.schema(ddl(columns))
        .option("columnNameOfCorruptRecord", CORRUPT)
        .option("pathGlobFilter", "*.jsonl")
        .json(str(path))
    )
    return frame.withColumn("file_name", functions.col("_metadata.file_name"))


def _define_views(
    source: "DataFrame",
    discriminator: str,
    structs: tuple[type[msgspec.Struct], ...],
    keys: tuple[str, ...],
    scale: Scale,
) -> None:
    wide = wide_columns(structs)
    lines = source.where(f"{CORRUPT} IS NULL")
    for struct in structs:
        fields = [
            _converted(name, kind, wide[name]) for name, kind in struct_columns(struct).items() if name not in keys
        ]
        frame = lines.where(f"{discriminator} = '{tag(struct)}'").selectExpr(*keys, *fields)
        (held(frame, scale) if scale is Scale.SMALL and struct in _ASKED_OFTEN else frame).createOrReplaceTempView(
            view_name(struct)
        )


def _converted(name: str, kind: str, read_as: str) -> str:
    if kind == read_as:
        return f"`{name}`"
    if kind in ("BIGINT", "BOOLEAN"):
        return f"try_cast(`{name}` AS {kind}) AS `{name}`"
    return f"from_json(`{name}`, '{kind}') AS `{name}`"


def _load_final_logs(runs: tuple[RunDirectory, ...], *, spark: "SparkSession", work: Path, scale: Scale) -> None:
    encoder = msgspec.json.Encoder()
    directories = work / "node_directory.jsonl"
    directories.write_bytes(
        encoder.encode_lines(
            [{"run": n, "node": node} for n, run in enumerate(runs) for node, _ in run.node_directories()]
        )
    )
    known = spark.read.schema("run INT, node BIGINT").json(str(directories))
    held(known, scale).createOrReplaceTempView("node_directory")
    batches_path, logs_path = work / "final_batch.jsonl", work / "final_log.jsonl"
    with batches_path.open("wb") as batches, logs_path.open("wb") as logs:
        pending: list[FinalBatch] = []
        for number, run in enumerate(runs):
            for node, directory in run.node_directories():
                for found in read_node_logs(run=number, node=node, directory=directory):
                    match found:
                        case FinalBatch():
                            pending.append(found)
                            if len(pending) >= _WRITE_BUFFER_LINES:
                                batches.write(encoder.encode_lines(pending))
                                pending.clear()
                        case FinalLog():
                            logs.write(encoder.encode_lines([found]))
        batches.write(encoder.encode_lines(pending))
    for struct, path in ((FinalBatch, batches_path), (FinalLog, logs_path)):
        frame = spark.read.schema(ddl(struct_columns(struct))).json(str(path))
        held(frame, scale).createOrReplaceTempView(view_name(struct))
