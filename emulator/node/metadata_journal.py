"""The metadata log of the only controller: batches of records above, batches of the log's format below.

A batch counts as durable once ``sync`` has returned; the batches found at opening are durable. The events of a batch
are stored with it, because a process that is killed after the sync has made a decision that it has not recorded.
"""

from typing import Final

from laststand.emulator.core import records
from laststand.emulator.core.errors import InvariantError, StorageError
from laststand.emulator.core.events import ControllerEvent
from laststand.emulator.core.quorum.batches import QuorumBatch
from laststand.emulator.core.quorum_controller.values import decode_batch
from laststand.emulator.core.types import CauseId, LeaderEpoch
from laststand.emulator.kafka.metadata_values import KafkaValues
from laststand.emulator.storage.fields import FieldError
from laststand.emulator.storage.filesystem import FileSystem
from laststand.emulator.storage.metadata_log import MetadataLog

DIRECTORY: Final = "__cluster_metadata-0"
"""The folder of the log below the data directory, by Kafka's name of the partition."""

_NO_EPOCH: Final = LeaderEpoch(0)
_RECOVERED: Final = CauseId("recovered")


def open_metadata_directory(filesystem: FileSystem, data_dir: str) -> str:
    """Returns the folder of the log, which is durable: created where it is missing.

    Args:
        filesystem: the file system of the folder.
        data_dir: an existing, durable directory.

    Raises:
        StorageError: it could not be made durable.
    """
    directory = f"{data_dir}/{DIRECTORY}"
    if not filesystem.exists(directory):
        filesystem.make_directory(directory)
    # Also where it exists: whoever made it may have been killed before the name was durable.
    filesystem.sync_directory(data_dir)
    return directory


class MetadataJournal:
    """An open metadata log.

    Args:
        filesystem: the file system of the log.
        data_dir: an existing, durable directory; the log's own is created in it where missing.

    Raises:
        StorageError: the log could not be read or made durable, or holds unknown records.
    """

    def __init__(self, filesystem: FileSystem, data_dir: str) -> None:
        directory = open_metadata_directory(filesystem, data_dir)
        self._log = MetadataLog(filesystem, directory)
        self._values = KafkaValues()
        try:
            found = [
                decode_batch(batch, values=self._values, cause_id=_RECOVERED) for batch in self._log.pop_recovered()
            ]
        except FieldError as error:
            raise StorageError(path=directory, reason=str(error)) from error
        self.batches = tuple(each.batch for each in found)
        """The batches found at opening, in order."""
        self.events = tuple(event for each in found for event in each.events)
        """The events of those batches, in order."""

    def append(self, batch: records.MetadataBatch, events: tuple[ControllerEvent, ...]) -> None:
        """Writes a batch and its events; both are durable once ``sync`` has returned.

        Raises:
            StorageError: the write failed; the process has to end.
            InvariantError: the batch does not continue the log.
        """
        if batch.base_offset != self._log.end_offset:
            raise InvariantError(f"batch at {batch.base_offset} appended to a log that ends at {self._log.end_offset}")
        values = self._values.encode(batch, events)
        self._log.append(QuorumBatch(base_offset=batch.base_offset, leader_epoch=_NO_EPOCH, values=values))

    def sync(self) -> None:
        """Makes every appended batch durable.

        Raises:
            StorageError: the sync failed; the process has to end.
        """
        self._log.sync()

    def close(self) -> None:
        """Closes the file."""
        self._log.close()
