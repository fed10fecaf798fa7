"""The keys of acknowledged records of Kafka clients, one line for each batch: ``AckedKeys``.

Compressed batches are read by a thread, from their arrival on, so that requests of others do not wait: a megabyte may
inflate to a thousand.
"""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from laststand.emulator.core.errors import CorruptRecordError
from laststand.emulator.core.history import AckedKeys
from laststand.emulator.storage.filesystem import Buffer
from laststand.emulator.storage.record_codec import read_records

_ATTRIBUTES: Final = 22
"""Place of the byte of a batch whose lowest bits name its compression."""

_COMPRESSION_BITS: Final = 0x07

Keys = tuple[str | None, ...]


class KeyFile:
    """Writes the file of acknowledged keys, which is made with its first line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._encoder = msgspec.json.Encoder()
        self._lines = bytearray()
        self._file: BinaryIO | None = None
        self._lock = threading.Lock()
        self._reader: ThreadPoolExecutor | None = None

    def read(self, batch: Buffer) -> "Future[Keys]":
        """Returns the keys of a batch, which are there at once unless it is compressed."""
        if len(batch) > _ATTRIBUTES and batch[_ATTRIBUTES] & _COMPRESSION_BITS:
            if self._reader is None:
                self._reader = ThreadPoolExecutor(1, "keys")
            return self._reader.submit(keys_of, batch)
        found: Future[Keys] = Future()
        found.set_result(keys_of(batch))
        return found

    def add(self, acked: AckedKeys, keys: "Future[Keys]") -> None:
        """Adds the keys of a batch, if it has any: now, or when they are known.

        Args:
            acked: the line without its keys.
            keys: of the batch.
        """
        if keys.done():
            self._add(acked, keys)
        else:
            keys.add_done_callback(lambda read: self._write(acked, read))

    def _add(self, acked: AckedKeys, keys: "Future[Keys]") -> None:
        found = keys.result()
        if any(found):
            with self._lock:
                self._lines += self._encoder.encode(msgspec.structs.replace(acked, keys=found)) + b"\n"

    def _write(self, acked: AckedKeys, keys: "Future[Keys]") -> None:
        self._add(acked, keys)
        self.flush()

    def flush(self) -> None:
        """Writes the lines that were added since the last call."""
        with self._lock:
            if self._lines:
                if self._file is None:
                    self._file = self._path.open("ab", buffering=0)
                self._file.write(self._lines)
                self._lines.clear()

    def close(self) -> None:
        """Waits for keys that are being read, and closes the file."""
        if self._reader is not None:
            self._reader.shutdown()
        self.flush()
        if self._file is not None:
            self._file.close()


def keys_of(batch: Buffer) -> Keys:
    """Returns the keys of a batch's records as text; none for a batch that cannot be read."""
    try:
        return tuple([None if each.key is None else each.key.decode(errors="replace") for each in read_records(batch)])
    except CorruptRecordError:
        return ()
