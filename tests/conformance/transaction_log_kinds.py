"""Kinds of ``txn.json`` about transactions in one log: producers, last stable offset, aborted lists, recovery, bytes.

The log is one of storage on the memory file system, opened again where a vector opens it, with the core's index beside.
"""

from collections.abc import Mapping
from typing import Any, Final

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import BatchDescriptor, Marker, TransactionResult
from laststand.emulator.core.broker.replicas.producer_state import (
    DuplicateBatch,
    ProducerEntry,
    ProducerStates,
    RejectedBatch,
    Verification,
)
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.transaction_index import (
    CompletedTransaction,
    OffsetOrderError,
    TransactionIndex,
)
from laststand.emulator.core.errors import CorruptRecordError, ErrorCode
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId, ProducerIdentity
from laststand.emulator.storage.batch_memory import BatchMemory
from laststand.emulator.storage.control_batch import encode_marker
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.partition_log import LogSettings
from laststand.emulator.storage.producer_snapshot import delete_snapshot, encode_snapshot, snapshot_offsets
from laststand.emulator.storage.record_batch import (
    HEADER_SIZE,
    MARKER_KEY,
    MARKER_VALUE,
    TRANSACTIONAL,
    describe_header,
)
from laststand.emulator.storage.recovery import LogCheckpoints, create_log, load_log
from laststand.emulator.storage.segment import LOG_SUFFIX, offset_file_path
from laststand.emulator.storage.transaction_index import decode_index, encode_index
from laststand.emulator.storage.value_batch import encode_record, seal_batch
from tests.conformance.broker_world import NAME, TOPIC_ID
from tests.conformance.harness import Fields, Handler, Vector, mismatches, numbered
from tests.memory_filesystem import MemoryFileSystem

_PATH: Final = "/t-0"
_EPOCH: Final = LeaderEpoch(0)
_EXPIRATION_MS: Final = 86_400_000
_TIMEOUT_MAX_MS: Final = 900_000


def _marker(step: Fields) -> Marker:
    return Marker(result=TransactionResult[step["result"]], coordinator_epoch=step["coordinator_epoch"])


def _ended(step: Fields, producer_id: int) -> TransactionEnded:
    return TransactionEnded(
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(step["producer_epoch"]),
        marker=_marker(step),
    )


def _raises_epoch(step: Fields) -> bool:
    return bool(step.get("tv", -1) >= 2)


def _entry(entry: ProducerEntry | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    last = entry.batches[-1] if entry.batches else None
    return {
        "producer_epoch": entry.producer_epoch,
        "coordinator_epoch": entry.coordinator_epoch,
        "last_seq": -1 if last is None else last.last_sequence,
        "last_offset": -1 if last is None else last.last_offset,
        "batches": len(entry.batches),
        "txn_first_offset": entry.transaction_first_offset,
    }


def _snapshot(given: Fields, producer_id: int) -> inputs.ProducerSnapshotEntry:
    first = given["txn_first_offset"]
    return inputs.ProducerSnapshotEntry(
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(given["producer_epoch"]),
        last_sequence=given["last_seq"],
        last_offset=Offset(given["last_offset"]),
        offset_delta=given.get("offset_delta", 0),
        timestamp_ms=given.get("timestamp", 0),
        coordinator_epoch=given.get("coordinator_epoch", -1),
        transaction_first_offset=None if first is None or first < 0 else Offset(first),
    )


# --- One producer -------------------------------------------------------------------------------------------------


def _producer_append(vector: Vector) -> list[str]:
    given = vector.raw.get("given") or {}
    producers, producer_id = ProducerStates(), ProducerId(1)
    if given.get("entry"):
        producers.reload((_snapshot(given["entry"], producer_id),), now_ms=0)
    if given.get("verification"):
        opened = given["verification"]
        producers.verify(
            ProducerIdentity(producer_id, ProducerEpoch(opened["producer_epoch"])),
            sequence=opened["sequence"],
            adds_partition=opened["tv2"],
            now_ms=0,
        )
    found: list[str] = []
    for index, step in enumerate(vector.steps):
        batch = _described(step, producer_id)
        error = ErrorCode.NONE
        if step["origin"] == "client":
            verdict = producers.check(batch)
            error = verdict.error if isinstance(verdict, RejectedBatch) else ErrorCode.NONE
        elif step["origin"] == "coordinator" and batch.marker is not None:
            error = producers.check_marker(_ended(step, producer_id), raises_epoch=_raises_epoch(step))
        completed = producers.update(batch, now_ms=0) if error is ErrorCode.NONE else None
        observed = {
            "error": error.name if error else None,
            "entry": _entry(producers.get(producer_id)),
            "completed": None if completed is None else _completed(completed),
        }
        found += numbered(index, mismatches(step["expect"], observed))
    return found


def _described(step: Fields, producer_id: ProducerId) -> BatchDescriptor:
    is_marker = step["op"] == "marker"
    count = 1 if is_marker else step["n"]
    return BatchDescriptor(
        base_offset=Offset(step["offset"]),
        last_offset=Offset(step["offset"] + count - 1),
        leader_epoch=_EPOCH,
        crc=0,
        size=100,
        record_count=count,
        producer_id=producer_id,
        producer_epoch=ProducerEpoch(step["producer_epoch"]),
        base_sequence=-1 if is_marker else step["seq"],
        is_control=is_marker,
        is_transactional=is_marker or step["txn"],
        marker=_marker(step) if is_marker else None,
    )


def _completed(completed: CompletedTransaction) -> dict[str, Any]:
    return {
        "first_offset": completed.first_offset,
        "marker_offset": completed.last_offset,
        "aborted": completed.is_aborted,
        "last_stable_offset": completed.last_stable_offset,
    }


# --- One log ------------------------------------------------------------------------------------------------------


class _World:
    """A log on disk and its index."""

    def __init__(self, *, is_guarded: bool) -> None:
        self.now_ms = 1
        self.is_guarded = is_guarded
        self.guards: dict[str, Verification] = {}
        self.filesystem = MemoryFileSystem()
        self.files = create_log(
            self.filesystem, _PATH, partition=NAME, topic_id=TOPIC_ID, settings=LogSettings(), memory=BatchMemory()
        )
        self.log = ReplicaLog(NAME, TOPIC_ID)

    def play(self, step: Fields) -> dict[str, Any]:
        """Carries a step out; returns what it showed."""
        match step["op"]:
            case "append":
                return self._append(step)
            case "marker":
                return self._end(step)
            case "replicate":
                content = self._marker_content(step) if "result" in step else self._data_content(step)
                self._store(content)
            case "hw":
                self.log.high_watermark = Offset(step.get("to", self.log.log_end_offset))
            case "truncate":
                before, target = self.log.log_end_offset, Offset(step["to"])
                self.log.truncate_to(target, now_ms=self.now_ms)
                self.files.truncate_to(target)
                return {"truncated": self.log.log_end_offset < before}
            case "log_start":
                self.log.raise_log_start(Offset(step["to"]))
                self.files.raise_log_start(Offset(step["to"]))
            case "roll":
                self.files.roll(self.log.log_end_offset)
            case "reopen":
                self._reopen(step)
            case "read":
                return self._read(step)
            case "expire":
                self.now_ms += step["ms"]
                self.log.producers.expire(now_ms=self.now_ms, expiration_ms=_EXPIRATION_MS)
            case "late":
                is_late = self.log.producers.has_late_transaction(
                    now_ms=self.now_ms + step["after_ms"], timeout_max_ms=_TIMEOUT_MAX_MS
                )
                return {"late_transaction": is_late}
            case "verify_start":
                return self._verify(step)
            case other:
                raise ValueError(f"unknown operation {other}")
        return {}

    def _append(self, step: Fields) -> dict[str, Any]:
        content = self._data_content(step)
        guard = self.guards.get(step.get("guard", ""))
        verdict = self.log.producers.check(describe_header(content, 0), guard=guard, is_guarded=self.is_guarded)
        if isinstance(verdict, RejectedBatch):
            return {"error": verdict.error.name}
        if isinstance(verdict, DuplicateBatch):
            return {"base_offset": verdict.base_offset, "last_offset": verdict.last_offset}
        batch = self._store(content)
        return {"base_offset": batch.base_offset, "last_offset": batch.last_offset}

    def _end(self, step: Fields) -> dict[str, Any]:
        error = self.log.producers.check_marker(_ended(step, step["pid"]), raises_epoch=_raises_epoch(step))
        if error:
            return {"error": error.name}
        return {"base_offset": self._store(self._marker_content(step)).base_offset}

    def _store(self, content: bytes) -> BatchDescriptor:
        batch = describe_header(content, 0).stamped(self.log.log_end_offset, _EPOCH)
        self.log.append(batch, now_ms=self.now_ms)
        self.files.append((batch,), (content,))
        return batch

    def _data_content(self, step: Fields) -> bytes:
        parts = [part for number in range(step["n"]) for part in encode_record(number, b"k", b"v")]
        has_producer = "pid" in step
        return seal_batch(
            parts,
            record_count=step["n"],
            timestamp_ms=self.now_ms,
            producer_id=ProducerId(step["pid"]) if has_producer else None,
            producer_epoch=ProducerEpoch(step["producer_epoch"]) if has_producer else None,
            base_sequence=step["seq"] if has_producer else None,
            attributes=TRANSACTIONAL if step.get("txn") else 0,
        )

    def _marker_content(self, step: Fields) -> bytes:
        return encode_marker(_ended(step, step["pid"]), timestamp_ms=self.now_ms).content

    def _reopen(self, step: Fields) -> None:
        is_clean, high_watermark = step["clean"], self.log.high_watermark
        log_start_offset = self.log.log_start_offset
        if is_clean:
            self.files.close()
        else:
            self.files.abandon()
        if "cut_file_to" in step:
            self._cut_files(step["cut_file_to"])
        if step.get("drop_snapshots"):
            for offset in snapshot_offsets(self.filesystem, _PATH):
                delete_snapshot(self.filesystem, _PATH, offset)
        self.files, loaded = load_log(
            self.filesystem,
            _PATH,
            partition=NAME,
            is_clean=is_clean,
            checkpoints=LogCheckpoints(log_start_offset=log_start_offset),
            settings=LogSettings(),
            memory=BatchMemory(),
        )
        self.log = ReplicaLog(NAME, TOPIC_ID)
        self.log.load(
            loaded.batches,
            log_start_offset=loaded.log_start_offset,
            log_end_offset=loaded.log_end_offset,
            producers=loaded.producers,
            producers_offset=loaded.producers_offset,
            now_ms=self.now_ms,
        )
        self.log.high_watermark = min(high_watermark, self.log.log_end_offset)

    def _cut_files(self, offset: int) -> None:
        for base in self.files.segment_bases:
            path = offset_file_path(_PATH, base, LOG_SUFFIX)
            kept = sum(batch.size for batch in self.files.batches if base <= batch.base_offset < offset)
            file = self.filesystem.open(path, OpenMode.APPEND)
            file.truncate(min(kept, file.size))
            file.close()

    def _read(self, step: Fields) -> dict[str, Any]:
        is_committed = step.get("isolation", "read_committed") == "read_committed"
        fetch_offset = Offset(step["from"])
        upper_bound = self.log.last_stable_offset if is_committed else self.log.high_watermark
        # Kafka's read ends with the segment.
        upper_bound = min([upper_bound, *(base for base in self.files.segment_bases if base > fetch_offset)])
        span = self.log.read(fetch_offset, upper_bound=upper_bound, max_bytes=1 << 20)
        offsets = [] if span is None else list(range(max(span.base_offset, fetch_offset), span.end_offset))
        aborted = () if span is None else self.log.aborted_transactions(fetch_offset, span.end_offset)
        named = [{"producer_id": each.producer_id, "first_offset": each.first_offset} for each in aborted]
        return {"offsets": offsets, "aborted": named if is_committed else None}

    def _verify(self, step: Fields) -> dict[str, Any]:
        if not self.is_guarded:
            return {"guard": "none"}
        outcome = self.log.producers.verify(
            ProducerIdentity(ProducerId(step["pid"]), ProducerEpoch(step["producer_epoch"])),
            sequence=step["seq"],
            adds_partition=step["tv2"],
            now_ms=self.now_ms,
        )
        if isinstance(outcome, ErrorCode):
            return {"error": outcome.name} if outcome else {"guard": "none"}
        known = next((name for name, guard in self.guards.items() if guard is outcome), None)
        if known is None:
            known = step["as"]
            self.guards[known] = outcome
        return {"guard": known}

    def observe(self) -> dict[str, Any]:
        """Returns the offsets."""
        return {
            "error": None,
            "log_end_offset": self.log.log_end_offset,
            "high_watermark": self.log.high_watermark,
            "last_stable_offset": self.log.last_stable_offset,
            "first_unstable_offset": self.log.first_unstable_offset,
        }

    def final(self) -> dict[str, Any]:
        """Returns the producers and the index."""
        return {
            "producers": {str(producer): _entry(entry) for producer, entry in self.log.producers.entries()},
            "transaction_index": [
                {
                    "producer_id": each.producer_id,
                    "first_offset": each.first_offset,
                    "last_offset": each.last_offset,
                    "last_stable_offset": each.last_stable_offset,
                }
                for each in self.log.producers.aborted.entries
            ],
        }


def _log(vector: Vector) -> list[str]:
    given = vector.raw.get("given") or {}
    world = _World(is_guarded=given.get("verification", False))
    found: list[str] = []
    for index, step in enumerate(vector.steps):
        shown = world.play(step)
        found += numbered(index, mismatches(step["expect"], world.observe() | shown))
    return found + mismatches(vector.expect, world.final())


# --- Bytes --------------------------------------------------------------------------------------------------------


def _index(vector: Vector) -> list[str]:
    base_offset = Offset((vector.raw.get("given") or {}).get("base_offset", 0))
    index = TransactionIndex()
    found: list[str] = []
    for number, step in enumerate(vector.steps):
        observed: dict[str, Any] = {"error": None}
        match step["op"]:
            case "append":
                entry = CompletedTransaction(
                    producer_id=ProducerId(step["producer_id"]),
                    first_offset=Offset(step["first_offset"]),
                    last_offset=Offset(step["last_offset"]),
                    is_aborted=True,
                    last_stable_offset=Offset(step["last_stable_offset"]),
                )
                try:
                    index.append(entry)
                except OffsetOrderError:
                    observed["error"] = "JAVA:IllegalArgumentException"
            case "collect":
                aborted, is_complete = index.collect(Offset(step["fetch_offset"]), Offset(step["upper_bound"]))
                observed["complete"] = is_complete
                observed["aborted"] = [
                    {"producer_id": each.producer_id, "first_offset": each.first_offset} for each in aborted
                ]
            case "truncate":
                index.truncate_to(Offset(step.get("to", step.get("offset", 0))))
            case "sanity" | "reopen":
                try:
                    index = TransactionIndex(
                        decode_index(encode_index(index.entries), path="", base_offset=base_offset)
                    )
                except CorruptRecordError:
                    observed["error"] = "JAVA:CorruptIndexException"
            case other:
                raise ValueError(f"unknown operation {other}")
        observed["entries"] = len(index.entries)
        found += numbered(number, mismatches(step["expect"], observed))
    return found + mismatches(vector.expect, {"file_hex": encode_index(index.entries).hex()})


def _marker_bytes(vector: Vector) -> list[str]:
    given = vector.raw["given"]
    made = encode_marker(_ended(given, given["producer_id"]), timestamp_ms=given["timestamp"])
    record = made.content[HEADER_SIZE:]
    key_at = 5
    value_at = key_at + MARKER_KEY.size + 1
    observed = {
        "batch_hex": made.content.hex(),
        "key_hex": record[key_at : key_at + MARKER_KEY.size].hex(),
        "value_hex": record[value_at : value_at + MARKER_VALUE.size].hex(),
        "is_control": made.header.is_control,
        "is_transactional": made.header.is_transactional,
        "base_sequence": made.header.base_sequence,
    }
    read_back = [] if made.header.marker == _marker(given) else ["it is read as something else"]
    return mismatches(vector.expect, observed) + read_back


def _snapshot_bytes(vector: Vector) -> list[str]:
    entries = [_snapshot(each, each["producer_id"]) for each in vector.raw["given"]["producers"]]
    return mismatches(vector.expect, {"file_hex": encode_snapshot(entries).hex()})


KINDS: Final[Mapping[str, Handler]] = {
    "producer_append": _producer_append,
    "last_stable_offset": _log,
    "aborted_list": _log,
    "txn_log_recovery": _log,
    "verification_guard": _log,
    "txn_index": _index,
    "record_bytes.marker": _marker_bytes,
    "record_bytes.producer_snapshot": _snapshot_bytes,
}
