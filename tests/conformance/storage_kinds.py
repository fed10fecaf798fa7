"""Vectors about bytes on disk: formats, checkpoints and clean-shutdown files, on the memory file system."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from laststand.emulator.core.batch import BatchDescriptor, EpochEntry, InvalidBatch
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import (
    BrokerEpoch,
    LeaderEpoch,
    Offset,
    TopicId,
    TopicPartition,
)
from laststand.emulator.storage import clean_shutdown
from laststand.emulator.storage.batch_scan import BatchValidation, ScanEnd, scan_batches
from laststand.emulator.storage.checkpoints import (
    format_epochs,
    format_offsets,
    parse_epochs,
    parse_offsets,
)
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.log_directory import LogDirectory
from laststand.emulator.storage.partition_log import LogSettings
from laststand.emulator.storage.record_batch import (
    HEADER,
    PARSE_ANYTHING,
    checksum,
    crc_of,
    describe_header,
    parse_batch,
    stamp,
)
from laststand.emulator.storage.record_codec import RecordContent, build_batch, read_records
from tests.conformance.harness import Fields, Handler, Vector, outcome_mismatches
from tests.memory_filesystem import MemoryFileSystem

TOPIC_ID: Final = TopicId("AAAAAAAAAAAAAAAAAAAAAQ")


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
    """The place at which a sequential reader stops, and the way in which it does."""
    filesystem = MemoryFileSystem()
    write_file(filesystem, "/segment", bytes.fromhex(vector.before["hex"]))
    scan = scan_batches(filesystem.open("/segment", OpenMode.READ), check=BatchValidation.HEADERS)
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
                actual = {"text": format_epochs(epoch_entries(_first(vector.before, step, "entries", "epochs")))}
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


def epoch_entries(entries: Sequence[Sequence[int]]) -> list[EpochEntry]:
    return [EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in entries]


# --- Clean shutdown ---------------------------------------------------------------------------------------------------


def run_clean_shutdown_read(vector: Vector) -> list[str]:
    """Broker epochs that the files of all directories prove, and the directories that skip recovery."""
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
            write_file(filesystem, clean_shutdown.clean_shutdown_path(directory), str(content).encode())
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
    failing = {failing} if isinstance(failing, str) else set(failing)
    is_loaded, is_loading = before.get("logs_loaded", True), False
    for step in vector.steps:
        match step["op"]:
            case "close_log":
                if step.get("fails"):
                    failing.add(step["dir"])
            case "start_loading":
                is_loaded, is_loading = False, True
            case "finish_loading":
                is_loaded, is_loading = True, False
            case "orderly_stop":
                is_loaded = is_loaded and "while_" not in step
            case unknown:
                return [f"operation {unknown} is not known"]
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
        if is_loaded or is_loading:
            directories[name].load_logs(lambda _: LogSettings())
        if is_loaded:
            log = directories[name].create_log(TopicPartition(name, 0), TOPIC_ID, LogSettings())
            log.append(*one_batch(0, 0, 0))
    filesystem.failing = {f"/{name}" for name in failing}
    for name, directory in directories.items():
        try:
            if not is_loading:
                directory.close_logs(broker_epoch)
            elif broker_epoch is not None:
                directory.renew_clean_shutdown(broker_epoch)
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


def one_batch(
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


def write_file(filesystem: MemoryFileSystem, path: str, content: bytes) -> None:
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
}
