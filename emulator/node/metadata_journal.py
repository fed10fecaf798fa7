"""The controller's metadata log: batches of records above, ``MetadataLog``'s opaque payloads below.

A batch counts from the moment that ``sync`` returns; what opening finds is durable when it returns.
"""

from typing import Final

import msgspec

from emulator.core.errors import InvariantViolation, StorageError
from emulator.core.records import MetadataBatch, decode_records, encode_records
from emulator.storage.filesystem import FileSystem
from emulator.storage.metadata_log import MetadataLog

DIRECTORY: Final = "__cluster_metadata-0"
"""Where the log lives below the data directory, by Kafka's name of the partition."""


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
        try:
            self.batches = tuple(
                MetadataBatch(base_offset=entry.base_offset, records=decode_records(entry.payload))
                for entry in self._log.take_recovered()
            )
            """What was found at opening, in order."""
        except msgspec.DecodeError as error:
            raise StorageError(path=directory, reason=str(error)) from error

    def append(self, batch: MetadataBatch) -> None:
        """Writes a batch, which is durable once ``sync`` has returned.

        Raises:
            StorageError: the write failed; the process has to end.
            InvariantViolation: the batch does not continue the log.
        """
        if batch.base_offset != self._log.end_offset:
            raise InvariantViolation(
                f"batch at {batch.base_offset} appended to a log that ends at {self._log.end_offset}"
            )
        self._log.append(encode_records(batch.records), record_count=len(batch.records))

    def sync(self) -> None:
        """Makes every appended batch durable.

        Raises:
            StorageError: the sync failed; the process has to end.
        """
        self._log.sync()

    def close(self) -> None:
        """Closes the file."""
        self._log.close()
