"""A controller's metadata log on disk, in Kafka's record batch format: a record per metadata record.

``<directory>/00000000000000000000.log`` holds one record batch per append, with the epoch of the leader that appended
it (0 with one controller). Record offsets are metadata offsets. The value of a record is opaque here, except for its
first byte, which every metadata record of Kafka has; control records are the quorum's own (``control_records.py``).

An append is only written; ``sync`` makes everything written durable, and one sync may serve several appends. On
opening, the intact batches are replayed and whatever follows the last of them is cut off: it was never acknowledged. A
write or sync that fails raises ``StorageError`` and poisons the log: the process ends, and its successor replays.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.errors import CorruptRecordError, StorageError
from laststand.emulator.core.quorum.batches import QuorumBatch
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset
from laststand.emulator.storage.batch_scan import BatchValidation, scan_batches
from laststand.emulator.storage.control_records import decode_control, encode_control
from laststand.emulator.storage.fields import FieldError
from laststand.emulator.storage.filesystem import Buffer, File, FileSystem, OpenMode
from laststand.emulator.storage.record_batch import CONTROL, HEADER_SIZE, describe_header, stamp
from laststand.emulator.storage.segment import LOG_SUFFIX, offset_file_path
from laststand.emulator.storage.value_batch import build_value_batch, encode_record, seal_batch
from laststand.emulator.storage.varint import zig_zag_at

_NO_TIME: Final = 0
_FRAME_VERSION: Final = b"\x01"
_EARLIER: Final = (
    "records as Laststand wrote them before it wrote Kafka's: only the release that wrote the log reads it"
)


def log_content(batches: Iterable[QuorumBatch]) -> bytes:
    """Returns the content of the log file that has these batches."""
    return b"".join(bytes(_encode(batch)) for batch in batches)


class MetadataLog:
    """An open metadata log. Not thread-safe."""

    def __init__(self, filesystem: FileSystem, directory: str) -> None:
        """Opens the log in an existing, durable directory; creates it if it is missing, and truncates a torn tail.

        Raises:
            CorruptRecordError: intact batches do not continue each other, or belong to no metadata log.
            StorageError: a file operation failed.
        """
        path = offset_file_path(directory, 0, LOG_SUFFIX)
        is_new = not filesystem.exists(path)
        self._file: File = filesystem.open(path, OpenMode.APPEND)
        self._failure: StorageError | None = None
        self._ends: list[MetadataOffset] = []
        self._positions: list[int] = []
        scan = scan_batches(self._file, check=BatchValidation.CRC)
        recovered: list[QuorumBatch] = []
        for descriptor, position in zip(scan.batches, scan.positions, strict=True):
            content = self._file.read(position=position, length=descriptor.size)
            batch = _decode(content, descriptor, path=path, position=position)
            if batch.base_offset != self.end_offset:
                raise CorruptRecordError(
                    path=path, position=position, reason=f"offset {batch.base_offset} follows {self.end_offset}"
                )
            recovered.append(batch)
            self._note(batch, position)
        self._recovered: Sequence[QuorumBatch] = recovered
        self._file.truncate(scan.valid_bytes)
        # A single controller takes what it replays for committed, so it must not be lost to a later power loss.
        self._file.sync()
        if is_new:
            filesystem.sync_directory(directory)

    @property
    def end_offset(self) -> MetadataOffset:
        """The offset after the last record."""
        return self._ends[-1] if self._ends else MetadataOffset(0)

    def pop_recovered(self) -> Sequence[QuorumBatch]:
        """Returns, once, the batches found at opening, in order of their offsets."""
        recovered, self._recovered = self._recovered, ()
        return recovered

    def append(self, batch: QuorumBatch) -> None:
        """Writes a batch, which begins at the log's end; it is not durable before ``sync``.

        Raises:
            StorageError: this write failed, or an earlier operation did.
        """
        position = self._file.size
        self._attempt(lambda: self._file.append((_encode(batch),)))
        self._note(batch, position)

    def truncate(self, end_offset: MetadataOffset) -> None:
        """Truncates the log durably; a batch at the new end is removed entirely.

        Raises:
            StorageError: the truncation failed, or an earlier operation did.
        """
        kept = bisect_right(self._ends, end_offset)
        if kept < len(self._ends):
            position = self._positions[kept]
            self._attempt(lambda: self._file.truncate(position))
            del self._ends[kept:], self._positions[kept:]
        self.sync()

    def sync(self) -> None:
        """Makes every append that has returned durable.

        Raises:
            StorageError: this sync failed, or an earlier operation did.
        """
        self._attempt(self._file.sync)

    def close(self) -> None:
        """Closes the file without syncing."""
        self._file.close()

    def _note(self, batch: QuorumBatch, position: int) -> None:
        self._ends.append(batch.end_offset)
        self._positions.append(position)

    def _attempt(self, operation: Callable[[], None]) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            operation()
        except StorageError as error:
            self._failure = error
            raise


def _encode(batch: QuorumBatch) -> Buffer:
    if batch.control:
        parts: list[bytes] = []
        for delta, record in enumerate(batch.control):
            parts += encode_record(delta, *encode_control(record))
        content = seal_batch(parts, record_count=len(batch.control), timestamp_ms=_NO_TIME, attributes=CONTROL)
    else:
        content = build_value_batch(
            batch.values, timestamp_ms=_NO_TIME, producer_id=None, producer_epoch=None, base_sequence=None
        )
    descriptor = describe_header(content, 0)
    return stamp(
        content, msgspec.structs.replace(descriptor, base_offset=batch.base_offset, leader_epoch=batch.leader_epoch)
    )


def _decode(content: bytes, batch: BatchDescriptor, *, path: str, position: int) -> QuorumBatch:
    try:
        records = tuple(_records(content, batch.record_count))
        control = tuple(decode_control(key, value) for key, value in records) if batch.is_control else ()
    except (IndexError, FieldError) as error:
        reason = _EARLIER if batch.is_control else f"not a batch of metadata: {error}"
        raise CorruptRecordError(path=path, position=position, reason=reason) from error
    values = () if batch.is_control else tuple(value for _, value in records)
    if any(value[:1] != _FRAME_VERSION for value in values):
        raise CorruptRecordError(path=path, position=position, reason=_EARLIER)
    return QuorumBatch(
        base_offset=MetadataOffset(batch.base_offset),
        leader_epoch=LeaderEpoch(batch.leader_epoch),
        control=control,
        values=values,
    )


def _records(content: bytes, record_count: int) -> Iterator[tuple[bytes, bytes]]:
    """Yields keys and values; the key of a record without one is empty."""
    at = HEADER_SIZE
    for _ in range(record_count):
        length, at = zig_zag_at(content, at)
        end = at + length
        _, at = zig_zag_at(content, at + 1)  # behind the attributes: the delta of the timestamp
        _, at = zig_zag_at(content, at)
        key_size, at = zig_zag_at(content, at)
        key_end = at + max(key_size, 0)
        size, value_at = zig_zag_at(content, key_end)
        if value_at + size + 1 != end:
            raise IndexError("a record without a value, or with headers")
        yield content[at:key_end], content[value_at : value_at + size]
        at = end
