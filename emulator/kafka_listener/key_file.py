"""The keys of records that clients were told are stored, one line for each batch: ``AckedKeys``."""

from pathlib import Path
from typing import BinaryIO

import msgspec

from laststand.emulator.core.errors import CorruptRecordError
from laststand.emulator.core.history import AckedKeys
from laststand.emulator.storage.filesystem import Buffer
from laststand.emulator.storage.record_codec import read_records


class KeyFile:
    """Writes the file of acknowledged keys, which is made with its first line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._encoder = msgspec.json.Encoder()
        self._lines = bytearray()
        self._file: BinaryIO | None = None

    def add(self, acked: AckedKeys) -> None:
        """Adds the keys of a batch, if it has any."""
        if any(acked.keys):
            self._lines += self._encoder.encode(acked) + b"\n"

    def flush(self) -> None:
        """Writes the lines that were added since the last call."""
        if self._lines:
            if self._file is None:
                self._file = self._path.open("ab", buffering=0)
            self._file.write(self._lines)
            self._lines.clear()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()


def keys_of(batch: Buffer) -> tuple[str | None, ...]:
    """Returns the keys of a batch's records as text; of one that cannot be read none."""
    try:
        return tuple([None if each.key is None else each.key.decode(errors="replace") for each in read_records(batch)])
    except CorruptRecordError:
        return ()
