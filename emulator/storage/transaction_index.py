"""The aborted transactions of one segment, as a file that Kafka's own tools read.

The file is created with its first entry. If a power loss removes entries, opening the log restores them from its
batches.

``.txnindex`` has an entry for each marker of the segment that aborted a transaction, in the order of the markers::

    version i16 = 0 | producer id i64 | first offset i64 | offset of the marker i64 | last stable offset i64

Source: Kafka's ``TransactionIndex``, ``AbortedTxn``.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from laststand.emulator.core.broker.replicas.transaction_index import CompletedTransaction
from laststand.emulator.core.errors import CorruptRecordError
from laststand.emulator.core.types import Offset, ProducerId
from laststand.emulator.storage.filesystem import File, FileSystem, OpenMode, read_file

_ENTRY: Final = struct.Struct(">hqqqq")
_VERSION: Final = 0


def encode_index(aborted: Iterable[CompletedTransaction]) -> bytes:
    """Returns the content of a file."""
    return b"".join(
        _ENTRY.pack(_VERSION, each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset)
        for each in aborted
    )


def decode_index(content: bytes, *, path: str, base_offset: Offset) -> tuple[CompletedTransaction, ...]:
    """Inverse of ``encode_index``.

    Args:
        content: of the file.
        path: for the error.
        base_offset: of the segment.

    Raises:
        CorruptRecordError: an entry is cut, has another version, or ends before the segment.
    """
    whole = len(content) - len(content) % _ENTRY.size
    found: list[CompletedTransaction] = []
    for position in range(0, whole, _ENTRY.size):
        version, producer_id, first_offset, last_offset, last_stable_offset = _ENTRY.unpack_from(content, position)
        if version != _VERSION or last_offset < base_offset:
            raise CorruptRecordError(path=path, position=position, reason=f"version {version}, marker at {last_offset}")
        found.append(
            CompletedTransaction(
                producer_id=ProducerId(producer_id),
                first_offset=Offset(first_offset),
                last_offset=Offset(last_offset),
                is_aborted=True,
                last_stable_offset=Offset(last_stable_offset),
            )
        )
    if whole < len(content):
        raise CorruptRecordError(path=path, position=whole, reason="a cut entry")
    return tuple(found)


class TransactionIndexFile:
    """The file of an open segment; none while the segment ends no transaction by aborting it.

    Attributes:
        entries: its content, in order.
    """

    def __init__(self, filesystem: FileSystem, path: str, *, base_offset: Offset) -> None:
        self._filesystem = filesystem
        self._path = path
        self._file: File | None = None
        self.entries: list[CompletedTransaction] = []
        if filesystem.exists(path):
            try:
                self.entries += decode_index(read_file(filesystem, path), path=path, base_offset=base_offset)
            except CorruptRecordError:
                filesystem.unlink(path)

    def append(self, aborted: CompletedTransaction) -> None:
        """Adds a transaction.

        Raises:
            StorageError: the write failed.
        """
        if self._file is None:
            self._file = self._filesystem.open(self._path, OpenMode.APPEND)
        self.entries.append(aborted)
        self._file.append((encode_index((aborted,)),))

    def replace(self, entries: Sequence[CompletedTransaction]) -> None:
        """Makes the file hold these transactions; writes only if they differ.

        Raises:
            StorageError: a write failed.
        """
        kept = list(entries[: len(self.entries)])
        if kept != self.entries:
            self.close()
            self._filesystem.unlink(self._path)
            self.entries.clear()
        for entry in entries[len(self.entries) :]:
            self.append(entry)

    def sync(self) -> None:
        """Syncs the file. May run in another thread while the file is closed or replaced.

        Raises:
            StorageError: the sync failed.
        """
        file = self._file
        if file is not None:
            file.sync()

    def close(self) -> None:
        """Closes the file without syncing."""
        if self._file is not None:
            self._file.close()
            self._file = None
