"""The controller's metadata log on disk: opaque payloads, one per batch of records, in Kafka's record batch format.

``<directory>/00000000000000000000.log`` holds one record batch per append. Record offsets are metadata offsets: the
value of the first record is the payload of all n, and n - 1 records without a value fill the other offsets.

An append is only written; ``sync`` makes everything written durable, and one sync may serve several appends. On
opening, the intact batches are replayed and whatever follows the last of them is cut off: it was never acknowledged. A
write or sync that fails raises ``StorageError`` and poisons the log: the process ends, and its successor replays.
"""

import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.errors import CorruptRecordError, StorageError
from laststand.emulator.core.types import MetadataOffset
from laststand.emulator.storage.batch_scan import BatchValidation, scan_batches
from laststand.emulator.storage.filesystem import File, FileSystem, OpenMode
from laststand.emulator.storage.record_batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, crc_of
from laststand.emulator.storage.segment import LOG_SUFFIX, offset_file_path
from laststand.emulator.storage.varint import zig_zag, zig_zag_at

_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17
_NO_PRODUCER: Final = -1


class MetadataPayload(msgspec.Struct, frozen=True, kw_only=True):
    """One appended batch: the offsets that it takes and its encoded records.

    Attributes:
        base_offset: of its first record.
        record_count: at least 1.
        payload: the records, encoded; opaque here.
    """

    base_offset: MetadataOffset
    record_count: int
    payload: bytes

    @property
    def end_offset(self) -> MetadataOffset:
        """The offset after its last record."""
        return MetadataOffset(self.base_offset + self.record_count)


class MetadataLog:
    """An open metadata log. Not thread-safe, but ``sync`` may run in another thread beside ``append``."""

    def __init__(self, filesystem: FileSystem, directory: str) -> None:
        """Opens the log in an existing, durable directory; creates it where it is missing, and cuts a torn tail.

        Raises:
            CorruptRecordError: intact batches that do not follow each other.
            StorageError: a file operation failed.
        """
        path = offset_file_path(directory, 0, LOG_SUFFIX)
        is_new = not filesystem.exists(path)
        self._file: File = filesystem.open(path, OpenMode.APPEND)
        self._failure: StorageError | None = None
        scan = scan_batches(self._file, check=BatchValidation.CRC)
        self._recovered = tuple(
            _decode(self._file.read(position=position, length=batch.size), batch, path=path, position=position)
            for batch, position in zip(scan.batches, scan.positions, strict=True)
        )
        self.end_offset = MetadataOffset(0)
        for position, entry in zip(scan.positions, self._recovered, strict=True):
            if entry.base_offset != self.end_offset:
                raise CorruptRecordError(
                    path=path, position=position, reason=f"offset {entry.base_offset} follows {self.end_offset}"
                )
            self.end_offset = entry.end_offset
        self._file.truncate(scan.valid_bytes)
        # What is replayed counts as committed from now on, so it must not be lost to a later power loss.
        self._file.sync()
        if is_new:
            filesystem.sync_directory(directory)

    def pop_recovered(self) -> Sequence[MetadataPayload]:
        """Returns, once, the batches found at opening, in order of their offsets."""
        recovered, self._recovered = self._recovered, ()
        return recovered

    def append(self, payload: bytes, *, record_count: int) -> MetadataPayload:
        """Writes a batch at the end; it is not durable before ``sync``.

        Raises:
            StorageError: this write failed, or an earlier operation did.
        """
        entry = MetadataPayload(base_offset=self.end_offset, record_count=record_count, payload=payload)
        self._check_alive()
        try:
            self._file.append((_encode(entry),))
        except StorageError as error:
            self._failure = error
            raise
        self.end_offset = entry.end_offset
        return entry

    def sync(self) -> MetadataOffset:
        """Makes every append that has returned durable.

        Returns:
            The end offset that is durable now.

        Raises:
            StorageError: this sync failed, or an earlier operation did.
        """
        self._check_alive()
        end_offset = self.end_offset
        try:
            self._file.sync()
        except StorageError as error:
            self._failure = error
            raise
        return end_offset

    def close(self) -> None:
        """Closes the file without syncing."""
        self._file.close()

    def _check_alive(self) -> None:
        if self._failure is not None:
            raise self._failure


def _encode(entry: MetadataPayload) -> bytes:
    # Length, attributes 0, timestamp delta 0, offset delta 0, no key, value, no headers.
    body = b"\x00\x00\x00\x01" + zig_zag(len(entry.payload)) + entry.payload + b"\x00"
    records = zig_zag(len(body)) + body + _filling(entry.record_count)
    header = HEADER.pack(
        entry.base_offset,
        HEADER_SIZE - LOG_OVERHEAD + len(records),
        0,
        MAGIC,
        0,
        0,
        entry.record_count - 1,
        0,
        0,
        _NO_PRODUCER,
        _NO_PRODUCER,
        _NO_PRODUCER,
        entry.record_count,
    )
    batch = bytearray(header + records)
    _CRC.pack_into(batch, _CRC_AT, crc_of(batch))
    return bytes(batch)


def _decode(content: bytes, batch: BatchDescriptor, *, path: str, position: int) -> MetadataPayload:
    length, at = zig_zag_at(content, HEADER_SIZE)
    end = at + length
    size, start = zig_zag_at(content, at + 4)
    record_count = batch.last_offset - batch.base_offset + 1
    if start + size + 1 != end or content[end:] != _filling(record_count):
        raise CorruptRecordError(path=path, position=position, reason="not a batch of one metadata payload")
    return MetadataPayload(
        base_offset=MetadataOffset(batch.base_offset),
        record_count=record_count,
        payload=content[start : start + size],
    )


def _filling(record_count: int) -> bytes:
    """Records without key and value for every offset but the first."""
    records = bytearray()
    for delta in range(1, record_count):
        body = b"\x00\x00" + zig_zag(delta) + b"\x01\x01\x00"
        records += zig_zag(len(body)) + body
    return bytes(records)
