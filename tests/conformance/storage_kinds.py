"""Vectors about bytes on disk, run against ``emulator.storage`` on the memory file system.

``log_recovery`` plays a broker's log through its life: files are laid out, damaged, loaded by ``LogDirectory`` and
opened by the core as a broker does it; the state that a vector names is read from both.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

import msgspec

from emulator.core.batch import BatchDescriptor, EpochEntry, InvalidBatch, LogSpan
from emulator.core.broker.config import BrokerConfig
from emulator.core.broker.log_opening import open_log
from emulator.core.broker.partition import Partition
from emulator.core.broker.replica_log import ReplicaLog
from emulator.core.broker.turn import Turn
from emulator.core.errors import ErrorCode, StorageError
from emulator.core.properties import NodeProperties, topic_properties
from emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    NodeId,
    Offset,
    TopicId,
    TopicPartition,
)
from emulator.storage import clean_shutdown
from emulator.storage.batch_scan import Check, ScanEnd, scan_batches
from emulator.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    format_epochs,
    format_offsets,
    parse_epochs,
    parse_offsets,
)
from emulator.storage.filesystem import OpenMode, read_file
from emulator.storage.log_directory import LogDirectory
from emulator.storage.memory_filesystem import MemoryFileSystem
from emulator.storage.meta_properties import write_topic_id
from emulator.storage.partition_log import LogSettings, PartitionLog
from emulator.storage.producer_snapshot import encode_snapshot
from emulator.storage.record_batch import HEADER, PARSE_ANYTHING, checksum, crc_of, describe_header, parse_batch, stamp
from emulator.storage.record_codec import RecordContent, build_batch, read_records
from emulator.storage.retention import retention_limits
from emulator.storage.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SNAPSHOT_SUFFIX, offset_file_path
from tests.conformance.harness import Fields, Handler, Vector, mismatches, outcome_mismatches, step_mismatches

_ROOT: Final = "/log"
_PARTITION: Final = TopicPartition("topic", 0)
_DIRECTORY: Final = f"{_ROOT}/{_PARTITION}"
_TOPIC_ID: Final = TopicId("AAAAAAAAAAAAAAAAAAAAAQ")
_NONE: Final = Offset(0)


# --- Formats ----------------------------------------------------------------------------------------------------------


def run_record_batch(vector: Vector) -> list[str]:
    """Header fields, CRC verdict and records of one batch."""
    content = bytes.fromhex(vector.before["hex"])
    if vector.steps[0]["op"] == "check_crc":
        header = describe_header(content, 0)
        is_valid = header.size == len(content) and header.crc == crc_of(content)
        return outcome_mismatches(vector, {"valid": is_valid, "crc": header.crc, "computed_crc": crc_of(content)})
    parsed = parse_batch(content, max_message_bytes=PARSE_ANYTHING)
    actual: dict[str, Any] = {"valid": not isinstance(parsed, InvalidBatch)}
    if isinstance(parsed, BatchDescriptor):
        fields = HEADER.unpack_from(content)
        actual |= {
            "base_offset": parsed.base_offset,
            "batch_length": fields[1],
            "leader_epoch": parsed.leader_epoch,
            "magic": fields[3],
            "crc": parsed.crc,
            "attributes": fields[5],
            "last_offset_delta": parsed.last_offset - parsed.base_offset,
            "last_offset": parsed.last_offset,
            "base_timestamp": fields[7],
            "max_timestamp": parsed.max_timestamp_ms,
            "producer_id": -1 if parsed.producer_id is None else parsed.producer_id,
            "producer_epoch": parsed.producer_epoch,
            "base_sequence": parsed.base_sequence,
            "record_count": parsed.record_count,
            "records_count": parsed.record_count,
            "control": parsed.is_control,
            "size": parsed.size,
        }
        if "records" in vector.final:
            actual["records"] = [
                {
                    "offset": record.offset,
                    "timestamp": record.timestamp_ms,
                    "key": None if record.key is None else record.key.decode(),
                    "value": None if record.value is None else record.value.decode(),
                }
                for record in read_records(content)
            ]
    return outcome_mismatches(vector, actual)


def run_crc(vector: Vector) -> list[str]:
    """CRC-32C of given bytes."""
    before = vector.before
    content = bytes.fromhex(before["hex"]) if "hex" in before else str(before["ascii"]).encode()
    return outcome_mismatches(vector, {"value": checksum(content)})


def run_file_scan(vector: Vector) -> list[str]:
    """Where a sequential reader stops, and how."""
    filesystem = MemoryFileSystem()
    _write(filesystem, "/segment", bytes.fromhex(vector.before["hex"]))
    scan = scan_batches(filesystem.open("/segment", OpenMode.READ), check=Check.HEADERS)
    is_silent = scan.end is ScanEnd.SILENT
    words = _SILENT if is_silent else _CORRUPT
    actual: dict[str, Any] = {"batches": len(scan.batches), "valid_bytes": scan.valid_bytes, "corrupt": not is_silent}
    # A vector has several words for the same end; the wrong one of the two is answered with the right one.
    for key in ("ends", "error"):
        expected = vector.final.get(key)
        actual[key] = expected if expected in words else words[0]
    return outcome_mismatches(vector, actual)


_SILENT: Final = ("silently", "silent", "eof", "end_of_file", "NONE", None)
_CORRUPT: Final = ("corruption", "corrupt", "CORRUPT", "CORRUPT_RECORD", "CORRUPT_MESSAGE", "error", "exception")


def run_checkpoint_text(vector: Vector) -> list[str]:
    """Parsing and formatting of checkpoint files."""
    step = vector.steps[0]
    actual: dict[str, Any] = {}
    try:
        match step["op"]:
            case "read_offsets":
                offsets = parse_offsets(vector.before["text"], path="checkpoint")
                rows: list[list[Any]] = [[key.topic, key.partition, offset] for key, offset in offsets.items()]
                by_name = {str(key): offset for key, offset in offsets.items()}
                actual = {
                    key: by_name if isinstance(vector.final.get(key), dict) else rows for key in ("entries", "offsets")
                }
            case "read_epochs":
                epochs = parse_epochs(vector.before["text"], path="checkpoint")
                pairs = [[entry.leader_epoch, entry.start_offset] for entry in epochs]
                actual = {"entries": pairs, "epochs": pairs}
            case "write_offsets":
                actual = {"text": format_offsets(_offsets(_first(vector.before, step, "entries", "offsets")))}
            case "write_epochs":
                actual = {"text": format_epochs(_epochs(_first(vector.before, step, "entries", "epochs")))}
            case other:
                return [f"operation {other} is not known"]
        actual["error"] = None
    except StorageError:
        actual["error"] = "IO"
    return outcome_mismatches(vector, actual)


def _first(before: Fields, step: Fields, *keys: str) -> Any:
    return next(source[key] for source in (step, before) for key in keys if key in source)


def _offsets(entries: Sequence[Sequence[Any]]) -> dict[TopicPartition, Offset]:
    return {TopicPartition(str(topic), int(number)): Offset(int(offset)) for topic, number, offset in entries}


def _epochs(entries: Sequence[Sequence[int]]) -> list[EpochEntry]:
    return [EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in entries]


# --- Clean shutdown ---------------------------------------------------------------------------------------------------


def run_clean_shutdown_read(vector: Vector) -> list[str]:
    """What the files of all directories prove, and which directories skip recovery."""
    filesystem = MemoryFileSystem()
    epochs: list[int | None] = []
    skips: dict[str, bool] = {}
    for name, content in vector.before["dirs"].items():
        directory = f"/{name}"
        if content == "OFFLINE":
            epochs.append(None)
            continue
        filesystem.make_directory(directory)
        if content is not None:
            _write(filesystem, clean_shutdown.clean_shutdown_path(directory), str(content).encode())
        epochs.append(clean_shutdown.read_broker_epoch(filesystem, directory))
        skips[name] = clean_shutdown.is_clean(filesystem, directory)
    previous = clean_shutdown.previous_broker_epoch(epochs)
    actual = {"previous_broker_epoch": -1 if previous is None else previous, "skip_recovery": skips}
    return outcome_mismatches(vector, actual)


class _FailingFileSystem(MemoryFileSystem):
    """Fails every change below one directory."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: set[str] = set()

    def perform(self, description: str, operation: Any, *, process: int) -> None:
        if any(f" {directory}/" in description or description.endswith(f" {directory}") for directory in self.failing):
            raise StorageError(path=description, reason="input/output error")
        super().perform(description, operation, process=process)


def run_clean_shutdown_write(vector: Vector) -> list[str]:
    """Files after an orderly stop."""
    before = vector.before
    filesystem = _FailingFileSystem()
    existing = _existing_files(before)
    failing = next((value for key, value in before.items() if "fail" in key), ())
    given_epoch = before.get("broker_epoch", -1)
    broker_epoch = None if given_epoch == -1 else BrokerEpoch(given_epoch)
    files: dict[str, int | None] = {}
    directories: dict[str, LogDirectory] = {}
    for name in before["dirs"]:
        path = f"/{name}"
        filesystem.make_directory(path)
        epoch_before = existing.get(name)
        if epoch_before is not None:
            clean_shutdown.write(filesystem, path, BrokerEpoch(epoch_before))
        directories[name] = LogDirectory.open(filesystem, path)
        if before.get("logs_loaded", True):
            directories[name].load_logs(lambda _: LogSettings())
            log = directories[name].create_log(TopicPartition(name, 0), _TOPIC_ID, LogSettings())
            log.append(*_batch(0, 0, 0))
    filesystem.failing = {f"/{name}" for name in ([failing] if isinstance(failing, str) else failing)}
    for name, directory in directories.items():
        try:
            directory.close_logs(broker_epoch)
        except StorageError:
            if f"/{name}" not in filesystem.failing:
                raise
    filesystem.failing = set()
    for name in before["dirs"]:
        files[name] = clean_shutdown.read_broker_epoch(filesystem, f"/{name}")
    return outcome_mismatches(vector, {"files": files})


def _existing_files(before: Fields) -> Mapping[str, int | None]:
    """Returns the epochs of files from before, given by directory, or as the directories that have one."""
    given = next((before[key] for key in _EXISTING if key in before), None)
    if isinstance(given, Mapping):
        return {name: 1 if epoch is True else None if epoch is False else epoch for name, epoch in given.items()}
    if isinstance(given, list):
        return dict.fromkeys(given, 1)
    return dict.fromkeys(before["dirs"], 1) if given else {}


_EXISTING: Final = (
    "existing",
    "files",
    "existing_files",
    "had_clean_file",
    "clean_file_at_start",
    "clean_at_start",
    "had_clean_file_at_start",
    "clean_file_present",
)


# --- Recovery ---------------------------------------------------------------------------------------------------------


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
        write_topic_id(filesystem, _DIRECTORY, _TOPIC_ID)
        for base, batches in self._segments():
            content = b""
            for number, given in enumerate(batches):
                _, (stamped,) = _batch(
                    given["base"], given["last"], given.get("leader_epoch", 0), self._timestamp(given)
                )
                self._batches[base, number] = (len(content), bytes(stamped))
                content += stamped
            self._original += content
            self._write_file(base, LOG_SUFFIX, content)
            self._write_file(base, OFFSET_INDEX_SUFFIX, b"")
        epochs = self._before.get("epochs_on_disk", self._before.get("epochs"))
        if epochs is not None:
            _write(filesystem, f"{_DIRECTORY}/{LEADER_EPOCH_CHECKPOINT}", format_epochs(_epochs(epochs)).encode())
        for name in self._before.get("files", ()):
            _write(filesystem, f"{_DIRECTORY}/{name}", b"")
        for offset in self._before.get("producer_snapshots", ()):
            self._write_file(offset, SNAPSHOT_SUFFIX, encode_snapshot(()))
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
        _write(self._filesystem, offset_file_path(_DIRECTORY, offset, suffix), content)

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
            case "truncate_to":
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
            _write(filesystem, f"{_ROOT}/{name}", format_offsets({_PARTITION: Offset(offset)}).encode())
        if step["clean"]:
            clean_shutdown.write(filesystem, _ROOT, BrokerEpoch(1))
        directory = LogDirectory.open(filesystem, _ROOT)
        (loaded,) = directory.load_logs(lambda _: self._settings)
        self._log = directory.log(_PARTITION)
        self._core = open_log(_turn(), loaded, _TOPIC_ID)

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
                controller_id=NodeId(100),
                cluster_id="cluster",
                incarnation_id=IncarnationId("incarnation"),
                properties=properties,
            ),
            registrations={},
            topic_properties=topic_properties(properties, {}),
        )
        if not partition.follow_log_start(_turn(), offset):
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
        everything = LogSpan(base_offset=_NONE, end_offset=log.log_end_offset, size=log.size)
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


def _turn() -> Turn:
    return Turn(now_ms=0, cause_id=CauseId("vector"))


def _batch(
    base: int, last: int, leader_epoch: int, timestamp_ms: int = 0
) -> tuple[tuple[BatchDescriptor], tuple[bytes]]:
    records = [RecordContent(value=b"value", timestamp_ms=timestamp_ms) for _ in range(base, last + 1)]
    content = build_batch(records)
    parsed = parse_batch(content, max_message_bytes=PARSE_ANYTHING)
    assert isinstance(parsed, BatchDescriptor)
    descriptor = msgspec.structs.replace(
        parsed, base_offset=Offset(base), last_offset=Offset(last), leader_epoch=LeaderEpoch(leader_epoch)
    )
    return (descriptor,), (bytes(stamp(content, descriptor)),)


def _write(filesystem: MemoryFileSystem, path: str, content: bytes) -> None:
    if filesystem.exists(path):
        filesystem.unlink(path)
    file = filesystem.open(path, OpenMode.APPEND)
    file.append((content,))
    file.close()


KINDS: Final[Mapping[str, Handler]] = {
    "record_batch": run_record_batch,
    "crc": run_crc,
    "file_scan": run_file_scan,
    "checkpoint_text": run_checkpoint_text,
    "clean_shutdown_read": run_clean_shutdown_read,
    "clean_shutdown_write": run_clean_shutdown_write,
    "log_recovery": run_log_recovery,
}
