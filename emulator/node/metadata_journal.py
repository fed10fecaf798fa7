"""The controller's metadata log: batches of records above, ``MetadataLog``'s opaque payloads below.

A batch counts from the moment that ``sync`` returns; the batches found at opening are durable. The events of a batch
are stored with it, because a process that is killed after the sync has made a decision that it has not reported.
"""

from typing import Final

import msgspec

from laststand.emulator.core import records
from laststand.emulator.core.errors import InvariantError, StorageError
from laststand.emulator.core.events import ControllerEvent
from laststand.emulator.storage.filesystem import FileSystem
from laststand.emulator.storage.metadata_log import MetadataLog

DIRECTORY: Final = "__cluster_metadata-0"
"""The folder of the log below the data directory, by Kafka's name of the partition."""


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    records: bytes
    events: tuple[ControllerEvent, ...]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Entry)


class MetadataJournal:
    """An open metadata log.

    Args:
        filesystem: where it is.
        data_dir: an existing, durable directory; the log's own is created in it where missing.

    Raises:
        StorageError: the log could not be read or made durable, or holds unknown records.
    """

    def __init__(self, filesystem: FileSystem, data_dir: str) -> None:
        directory = f"{data_dir}/{DIRECTORY}"
        if not filesystem.exists(directory):
            filesystem.make_directory(directory)
        # Also where it exists: whoever made it may have been killed before the name was durable.
        filesystem.sync_directory(data_dir)
        self._log = MetadataLog(filesystem, directory)
        found = self._log.pop_recovered()
        try:
            entries = [_DECODER.decode(payload.payload) for payload in found]
            self.batches = tuple(
                records.MetadataBatch(base_offset=payload.base_offset, records=records.decode_records(entry.records))
                for payload, entry in zip(found, entries, strict=True)
            )
            """The batches found at opening, in order."""
            self.events = tuple(event for entry in entries for event in entry.events)
            """The events of those batches, in order."""
        except msgspec.DecodeError as error:
            raise StorageError(path=directory, reason=str(error)) from error

    def append(self, batch: records.MetadataBatch, events: tuple[ControllerEvent, ...]) -> None:
        """Writes a batch and its events; both are durable once ``sync`` has returned.

        Raises:
            StorageError: the write failed; the process has to end.
            InvariantError: the batch does not continue the log.
        """
        if batch.base_offset != self._log.end_offset:
            raise InvariantError(f"batch at {batch.base_offset} appended to a log that ends at {self._log.end_offset}")
        entry = _Entry(records=records.encode_records(batch.records), events=events)
        self._log.append(_ENCODER.encode(entry), record_count=len(batch.records))

    def sync(self) -> None:
        """Makes every appended batch durable.

        Raises:
            StorageError: the sync failed; the process has to end.
        """
        self._log.sync()

    def close(self) -> None:
        """Closes the file."""
        self._log.close()
