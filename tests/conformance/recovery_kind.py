"""Vectors of the kind ``log_recovery``: a broker's log through its life, on the memory file system.

Files are laid out, damaged, loaded by ``LogDirectory`` and opened by the core as a broker does it; the state that a
vector names is read from both.
"""

import struct
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

import msgspec

from laststand.emulator.core.batch import InvalidBatch, LogSpan
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.following import follow_log_start
from laststand.emulator.core.broker.replicas.log_opening import open_log
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties, topic_properties
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    NodeId,
    Offset,
    TopicPartition,
)
from laststand.emulator.storage import clean_shutdown
from laststand.emulator.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    format_epochs,
    format_offsets,
)
from laststand.emulator.storage.filesystem import read_file
from laststand.emulator.storage.log_directory import LogDirectory
from laststand.emulator.storage.meta_properties import write_topic_id
from laststand.emulator.storage.partition_log import LogSettings, PartitionLog
from laststand.emulator.storage.producer_snapshot import encode_snapshot
from laststand.emulator.storage.record_batch import PARSE_ANYTHING, parse_batch
from laststand.emulator.storage.retention import retention_limits
from laststand.emulator.storage.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SNAPSHOT_SUFFIX, offset_file_path
from tests.conformance.harness import Fields, Handler, Vector, mismatches, outcome_mismatches, step_mismatches
from tests.conformance.storage_kinds import TOPIC_ID, epoch_entries, one_batch, write_file
from tests.memory_filesystem import MemoryFileSystem

_ROOT: Final = "/log"
_PARTITION: Final = TopicPartition("topic", 0)
_DIRECTORY: Final = f"{_ROOT}/{_PARTITION}"


def run_log_recovery(vector: Vector) -> list[str]:
    """A log's files through damage, loading and deletion."""
    if any(step["op"] == "start_load" for step in vector.steps):
        return outcome_mismatches(vector, _run_loads(vector))
    found: list[str] = []
    for first_byte in _damage_positions(vector.steps):
        life = _LogLife(vector, first_byte=first_byte)
        where = "" if first_byte is None else f"from byte {first_byte}: "
        found += [where + mismatch for mismatch in life.play()]
    return found


def _damage_positions(steps: Sequence[Fields]) -> list[int | None]:
    """A position may be given as a range (``"0..14"``), which asks for every position in it."""
    for step in steps:
        given = step.get("byte_in_batch")
        if isinstance(given, str) and ".." in given:
            first, last = given.split("..")
            return list(range(int(first), int(last) + 1))
        if given is not None:
            return [int(given)]
    return [None]


def _run_loads(vector: Vector) -> dict[str, Any]:
    """Loads a directory again and again; returns which of the loads found it closed in order."""
    filesystem = MemoryFileSystem()
    filesystem.make_directory(_ROOT)
    filesystem.sync_directory("/")
    if vector.before.get("clean_file_present"):
        clean_shutdown.write(filesystem, _ROOT, BrokerEpoch(1))
    judged: list[bool] = []
    directory: LogDirectory | None = None
    for step in vector.steps:
        match step["op"]:
            case "start_load" | "load":
                judged.append(clean_shutdown.is_clean(filesystem, _ROOT))
                directory = LogDirectory.open(filesystem, _ROOT)
                directory.load_logs(lambda _: LogSettings())
            case "finish_load":
                pass
            case "orderly_stop" | "clean_shutdown" | "shutdown" if directory is not None:
                directory.close_logs(BrokerEpoch(1))
                filesystem.restart()
            case "crash":
                filesystem.restart()
            case other:
                raise ValueError(f"operation {other} is not known")
    names = ("first", "second", "third", "fourth")
    verdicts = {f"{name}_load_clean": verdict for name, verdict in zip(names, judged, strict=False)}
    return {**verdicts, "clean_file_present": clean_shutdown.is_clean(filesystem, _ROOT)}


class _LogLife:
    """One partition directory and whoever has it open."""

    def __init__(self, vector: Vector, *, first_byte: int | None) -> None:
        self._vector = vector
        self._before = vector.before
        self._first_byte = first_byte
        self._filesystem = MemoryFileSystem()
        self._batches: dict[tuple[int, int], tuple[int, bytes]] = {}
        self._log: PartitionLog | None = None
        self._core: ReplicaLog | None = None
        self._names_before: set[str] = set()
        self._original = b""
        self._random = Random(vector.id)
        self._settings = LogSettings(index_interval_bytes=self._before.get("index_interval_bytes", 0))
        self._lay_out()

    def play(self) -> list[str]:
        found: list[str] = []
        for index, step in enumerate(self._vector.steps):
            outcome = "OK" if step["op"] == "check" else self._apply(step)
            if step["op"] == "check" or "expect" in step:
                found += step_mismatches(index, step, {**self._state(), "outcome": outcome}, outcome="outcome")
        if self._log is None:
            self._load({"clean": True})
        return found + mismatches(self._vector.final, self._state(), sets=("removed",))

    # --- Files ----------------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        filesystem = self._filesystem
        filesystem.make_directory(_ROOT)
        filesystem.make_directory(_DIRECTORY)
        write_topic_id(filesystem, _DIRECTORY, TOPIC_ID)
        for base, batches in self._segments():
            content = b""
            for number, given in enumerate(batches):
                _, (stamped,) = one_batch(
                    given["base"], given["last"], given.get("leader_epoch", 0), self._timestamp(given)
                )
                self._batches[base, number] = (len(content), bytes(stamped))
                content += stamped
            self._original += content
            self._write_file(base, LOG_SUFFIX, content)
            self._write_file(base, OFFSET_INDEX_SUFFIX, b"")
        epochs = self._before.get("epochs_on_disk", self._before.get("epochs"))
        if epochs is not None:
            write_file(
                filesystem, f"{_DIRECTORY}/{LEADER_EPOCH_CHECKPOINT}", format_epochs(epoch_entries(epochs)).encode()
            )
        for name in self._before.get("files", ()):
            write_file(filesystem, f"{_DIRECTORY}/{name}", b"")
        for offset in self._before.get("producer_snapshots", ()):
            self._write_file(offset, SNAPSHOT_SUFFIX, encode_snapshot(()))
        if self._before.get("delete_index_files"):
            for base, _ in self._segments():
                self._filesystem.unlink(offset_file_path(_DIRECTORY, base, OFFSET_INDEX_SUFFIX))
        self._names_before = set(filesystem.list_directory(_DIRECTORY))

    def _timestamp(self, batch: Fields) -> int:
        return int(batch.get("timestamp", batch.get("timestamp_ms", self._before.get("timestamp", 0))))

    def _segments(self) -> list[tuple[int, list[Fields]]]:
        """As given, or cut into segments of so many records, as rolling would have."""
        limit = self._before.get("config_segment_records")
        segments: list[tuple[int, list[Fields]]] = []
        for segment in self._before.get("segments", ()):
            batches = list(segment["batches"])
            if limit is None or not batches:
                segments.append((segment["base"], batches))
            else:
                segments += [(batches[at]["base"], batches[at : at + limit]) for at in range(0, len(batches), limit)]
        return segments

    def _write_file(self, offset: int, suffix: str, content: bytes) -> None:
        write_file(self._filesystem, offset_file_path(_DIRECTORY, offset, suffix), content)

    def _damage(self, step: Fields) -> None:
        suffix = f".{step.get('file', 'log')}"
        segment = step.get("segment", 0)
        content = bytearray(read_file(self._filesystem, offset_file_path(_DIRECTORY, segment, suffix)))
        match step["op"]:
            case "flip_byte":
                position, _ = self._batches[segment, step["batch"]]
                content[position + step["at"]] ^= 1
            case "garbage_from":
                position, _ = self._batches[segment, step["batch"]]
                position += self._first_byte or 0
                content[position:] = self._random.randbytes(len(content) - position)
            case "zero_tail":
                position, _ = self._batches[segment, step.get("from_batch", step.get("batch"))]
                content[position:] = bytes(len(content) - position)
            case "overwrite_file":
                content = bytearray(self._random.randbytes(step["with_bytes"]))
            case "append_garbage":
                content += self._random.randbytes(step["bytes"])
            case "append_zeros":
                content += bytes(step["bytes"])
            case "truncate_file_inside_batch":
                position, stored = self._batches[segment, step["batch"]]
                del content[position + step.get("bytes", step.get("keep_bytes", step.get("at", len(stored) // 2))) :]
            case "truncate_file" | "cut_file" | "torn_tail":
                # Either to so many bytes, or inside a batch after so many of its bytes.
                position = self._batches[segment, step["batch"]][0] if "batch" in step else 0
                del content[position + step.get("bytes", step.get("keep_bytes", step.get("at", 0))) :]
        self._write_file(segment, suffix, bytes(content))

    # --- Operations -----------------------------------------------------------------------------------------------

    def _apply(self, step: Fields) -> str:
        match step["op"]:
            case "load":
                self._load(step)
            case (
                "flip_byte"
                | "garbage_from"
                | "zero_tail"
                | "overwrite_file"
                | "append_garbage"
                | "append_zeros"
                | "truncate_file"
                | "truncate_file_inside_batch"
                | "cut_file"
                | "torn_tail"
            ):
                self._damage(step)
            case "delete_index":
                self._filesystem.unlink(offset_file_path(_DIRECTORY, step.get("segment", 0), OFFSET_INDEX_SUFFIX))
            case "delete_file":
                name = step["file"]
                is_kind = name in ("log", "index", "timeindex", "txnindex", "snapshot")
                path = offset_file_path(_DIRECTORY, step.get("segment", 0), f".{name}")
                self._filesystem.unlink(path if is_kind else f"{_DIRECTORY}/{name}")
            case "flush":
                self._opened()[0].flush()
            case "truncate_to" | "segment_truncate_to":
                log, core = self._opened()
                core.truncate_to(Offset(step["offset"]), now_ms=0)
                log.truncate_to(Offset(step["offset"]))
            case "raise_log_start":
                return self._raise_log_start(Offset(step["offset"]))
            case "retention":
                self._retention(step)
            case other:
                raise ValueError(f"operation {other} is not known")
        return "OK"

    def _load(self, step: Fields) -> None:
        filesystem = self._filesystem
        if self._log is not None:
            self._log.abandon()
        filesystem.restart()
        checkpoints = {
            RECOVERY_POINT_CHECKPOINT: step.get("recovery_point", 0),
            LOG_START_OFFSET_CHECKPOINT: step.get("log_start_checkpoint", self._before.get("log_start", 0)),
            HIGH_WATERMARK_CHECKPOINT: step.get("hw_checkpoint", self._before.get("hw", 0)),
        }
        for name, offset in checkpoints.items():
            write_file(filesystem, f"{_ROOT}/{name}", format_offsets({_PARTITION: Offset(offset)}).encode())
        if step["clean"]:
            clean_shutdown.write(filesystem, _ROOT, BrokerEpoch(1))
        directory = LogDirectory.open(filesystem, _ROOT)
        (loaded,) = directory.load_logs(lambda _: self._settings)
        self._log = directory.log(_PARTITION)
        self._core = open_log(_turn(), loaded, TOPIC_ID, switches=self._vector.switches)

    def _opened(self) -> tuple[PartitionLog, ReplicaLog]:
        if self._log is None or self._core is None:
            self._load({"clean": True})
        assert self._log is not None
        assert self._core is not None
        return self._log, self._core

    def _raise_log_start(self, offset: Offset) -> str:
        log, core = self._opened()
        properties = NodeProperties()
        partition = Partition(
            core,
            config=BrokerConfig(
                broker_id=BrokerId(NodeId(0)),
                controller_ids=(NodeId(100),),
                cluster_id="cluster",
                incarnation_id=IncarnationId("incarnation"),
                properties=properties,
            ),
            registrations={},
            topic_properties=topic_properties(properties, {}),
        )
        if not follow_log_start(_turn(), partition, offset):
            return ErrorCode.OFFSET_OUT_OF_RANGE.name
        log.raise_log_start(offset)
        return "OK"

    def _retention(self, step: Fields) -> None:
        log, core = self._opened()
        records = self._before.get("retention_records")
        record_bytes = len(next(iter(self._batches.values()))[1])
        config = self._vector.config
        retention_bytes = self._before.get("retention_bytes", config.get("retention.bytes", -1))
        topic = msgspec.structs.replace(
            topic_properties(NodeProperties(), {}),
            retention_bytes=retention_bytes if records is None else records * record_bytes,
            retention_ms=self._before.get("retention_ms", config.get("retention.ms", -1)),
            cleanup_policy=config.get("cleanup.policy", self._before.get("cleanup_policy", "delete")),
        )
        limits = retention_limits(topic)
        now_ms = step.get("now_ms", self._before.get("now_ms", config.get("now_ms", 0)))
        raised = log.delete_old_segments(high_watermark=core.high_watermark, limits=limits, now_ms=now_ms)
        if raised is not None:
            core.raise_log_start(raised)

    # --- State ----------------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        log, core = self._opened()
        names = set(self._filesystem.list_directory(_DIRECTORY))
        everything = LogSpan(base_offset=Offset(0), end_offset=log.log_end_offset, size=log.size)
        content = b"".join(log.read(everything))
        return {
            "leo": log.log_end_offset if log.log_end_offset == core.log_end_offset else None,
            "log_start": log.log_start_offset if log.log_start_offset == core.log_start_offset else None,
            "hw": core.high_watermark,
            "recovery_point": log.recovery_point,
            "epochs": [[entry.leader_epoch, entry.start_offset] for entry in core.epochs.entries],
            "segments": list(log.segment_bases),
            "segment_count": len(log.segment_bases),
            "surviving_batches": len(log.batches),
            "batches": [[batch.base_offset, batch.last_offset] for batch in log.batches],
            "indexes_rebuilt": all(self._is_indexed(log, base) for base in log.segment_bases),
            "all_records_equal": content == self._original,
            "undetected_corruption": any(
                isinstance(parse_batch(stored, max_message_bytes=PARSE_ANYTHING), InvalidBatch)
                for batch in log.batches
                for stored in log.read(
                    LogSpan(base_offset=batch.base_offset, end_offset=batch.next_offset, size=batch.size)
                )
            ),
            "removed": sorted(self._names_before - names),
            "producer_snapshots": [
                int(name.removesuffix(SNAPSHOT_SUFFIX)) for name in sorted(names) if name.endswith(SNAPSHOT_SUFFIX)
            ],
            "files": sorted(names),
        }

    def _is_indexed(self, log: PartitionLog, base: Offset) -> bool:
        """Returns whether a segment's offset index names each batch after the first by its last offset and position."""
        path = offset_file_path(_DIRECTORY, base, OFFSET_INDEX_SUFFIX)
        if not self._filesystem.exists(path):
            return False
        next_base = min((other for other in log.segment_bases if other > base), default=None)
        expected = b""
        position = 0
        for batch in log.batches:
            if batch.base_offset >= base and (next_base is None or batch.base_offset < next_base):
                expected += struct.pack(">ii", batch.last_offset - base, position) if position else b""
                position += batch.size
        return read_file(self._filesystem, path) == expected


def _turn() -> Turn:
    return Turn(now_ms=0, cause_id=CauseId("vector"))


KINDS: Final[Mapping[str, Handler]] = {"log_recovery": run_log_recovery}
