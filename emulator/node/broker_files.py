"""A broker's log directories, in the form of the core's effects: one log per partition, in any directory.

A new log goes to the directory with the fewest logs. Every method returns when the files are changed; a failure is a
``StorageError``, which ends the process.
"""

import logging
import os
from collections.abc import Callable, Sequence
from typing import Final

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import BatchDescriptor, EpochEntry, LogSpan
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.properties import NodeProperties, TopicProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerEpoch, NodeId, Offset, TopicId, TopicPartition
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.storage.batch_memory import BatchMemory
from laststand.emulator.storage.clean_shutdown import previous_broker_epoch
from laststand.emulator.storage.filesystem import Buffer, FileSystem
from laststand.emulator.storage.log_directory import LogDirectory, make_log_directory
from laststand.emulator.storage.log_scan import LogScan
from laststand.emulator.storage.meta_properties import MetaProperties, format_directory
from laststand.emulator.storage.partition_log import FlushWork, LogSettings, PartitionLog, log_settings
from laststand.emulator.storage.retention import retention_limits

TopicPropertiesOf = Callable[[str], TopicProperties]
"""Finds the properties of a topic by its name; those of a topic that the metadata lacks are the node's."""

_LOG: Final = logging.getLogger(__name__)
_EMPTY: Final = b""


class BrokerFiles:
    """All logs of a broker. Opens and locks the directories, but no log yet.

    Args:
        filesystem: the file system of the logs.
        paths: log directories, created where missing.
        cluster_id: must be the id with which a directory was formatted.
        node_id: likewise.
        properties: of the node.
        switches: rules of the era.
        topic_properties_of: asked whenever a log is opened.

    Raises:
        StorageError: a directory is in use, unreadable, or of another node.
    """

    def __init__(
        self,
        filesystem: FileSystem,
        paths: Sequence[str],
        *,
        cluster_id: str,
        node_id: NodeId,
        properties: NodeProperties,
        switches: Switches,
        topic_properties_of: TopicPropertiesOf,
    ) -> None:
        self._properties = properties
        self._switches = switches
        self._topic_properties_of = topic_properties_of
        self._directories: list[LogDirectory] = []
        self._ids: dict[LogDirectory, str] = {}
        self.failed_ids: tuple[str, ...] = ()
        """Directories that could not be loaded, by id."""
        memory = BatchMemory()
        for path in paths:
            make_log_directory(filesystem, path)
            directory = LogDirectory.open(filesystem, path, memory=memory)
            self._directories.append(directory)
            drawn = MetaProperties(cluster_id=cluster_id, node_id=node_id, directory_id=uuid_text(os.urandom(16)))
            self._ids[directory] = format_directory(filesystem, path, drawn).directory_id
        self.directory_ids = tuple(sorted(self._ids.values()))
        """The identity that the broker registers with."""

    def previous_broker_epoch(self) -> BrokerEpoch | None:
        """Returns the broker epoch that the clean-shutdown files prove; to be asked before logs are loaded."""
        return previous_broker_epoch(directory.clean_shutdown_epoch() for directory in self._directories)

    def renew_proof(self, broker_epoch: BrokerEpoch) -> None:
        """Writes another epoch into the clean-shutdown files; for logs that are not open.

        Raises:
            StorageError: a file could not be written; it then proves nothing.
        """
        for directory in self._directories:
            directory.renew_clean_shutdown(broker_epoch)

    def load(self) -> tuple[inputs.LoadedLog, ...]:
        """Opens and where needed recovers every log; may take long.

        A directory that cannot be loaded is left out from now on, if there is another one (Kafka's ``LogManager``).

        Raises:
            StorageError: no directory could be loaded.
        """
        loaded: list[inputs.LoadedLog] = []
        for directory in list(self._directories):
            try:
                loaded += directory.load_logs(self._settings_of)
            except StorageError as error:
                if len(self._directories) == 1:
                    raise
                _LOG.warning("log directory failed path=%s error=%s", directory.path, error)
                self._directories.remove(directory)
                self.failed_ids += (self._ids[directory],)
        return tuple(sorted(loaded, key=lambda log: log.partition))

    def create(self, partition: TopicPartition, topic_id: TopicId) -> None:
        """Makes a log; ``sync_names`` has to follow."""
        directory = min(self._directories, key=lambda candidate: len(candidate.logs))
        directory.create_log(partition, topic_id, self._settings_of(partition.topic))

    def sync_names(self) -> None:
        """Makes the names of new logs durable."""
        for directory in self._directories:
            directory.sync_names()

    def delete(self, partition: TopicPartition, *, now_ms: int) -> None:
        """Sets a log aside; its files are deleted after the delay."""
        delay_ms = self._properties.log_segment_delete_delay_ms
        self._directory_of(partition).delete_log(partition, now_ms=now_ms, delay_ms=delay_ms)

    @property
    def strays(self) -> tuple[inputs.StrayLog, ...]:
        """Logs that were set aside as stray, once logs are loaded."""
        return tuple(stray for directory in self._directories for stray in directory.strays)

    def rename_stray(self, partition: TopicPartition) -> None:
        """Sets a log aside for good."""
        self._directory_of(partition).rename_stray_log(partition)

    def delete_stray(self, stray: inputs.StrayLog) -> None:
        """Removes the stray log of that partition and topic id."""
        for directory in self._directories:
            directory.delete_strays(stray)

    def recovery_scan(self, partition: TopicPartition) -> LogScan:
        """Returns the work of reading a log through from its recovery point on."""
        return self._log(partition).recovery_scan()

    def append(self, partition: TopicPartition, batches: Sequence[BatchDescriptor], contents: Sequence[Buffer]) -> None:
        """Appends stamped batches."""
        self._log(partition).append(batches, contents)

    def read(self, partition: TopicPartition, span: LogSpan) -> bytes:
        """Returns the bytes of a span."""
        return _EMPTY.join(self._log(partition).read(span))

    def truncate(self, partition: TopicPartition, offset: Offset) -> None:
        """Truncates a log and rewrites its directory's recovery points."""
        self._log(partition).truncate_to(offset)
        self._directory_of(partition).write_recovery_points()

    def restart(self, partition: TopicPartition, offset: Offset) -> None:
        """Empties a log; it starts again at ``offset``."""
        self._log(partition).restart_at(offset)
        self._directory_of(partition).write_recovery_points()

    def sync(self, partition: TopicPartition) -> None:
        """Syncs a log."""
        self._log(partition).flush()

    def write_epochs(self, partition: TopicPartition, epochs: Sequence[EpochEntry]) -> None:
        """Rewrites a log's epoch checkpoint."""
        self._log(partition).write_epochs(epochs)

    def raise_log_start(self, partition: TopicPartition, offset: Offset) -> None:
        """Notes that records below ``offset`` are deleted."""
        self._log(partition).raise_log_start(offset)

    def write_high_watermarks(self, high_watermarks: Sequence[tuple[TopicPartition, Offset]]) -> None:
        """Rewrites the high-watermark checkpoints."""
        for directory in self._directories:
            directory.write_high_watermarks(dict(high_watermarks))

    def write_checkpoints(self) -> None:
        """Rewrites the recovery-point and log-start checkpoints."""
        for directory in self._directories:
            directory.write_recovery_points()
            directory.write_log_starts()

    def close(self, broker_epoch: BrokerEpoch | None) -> None:
        """Closes every log in order and writes the clean-shutdown files."""
        for directory in self._directories:
            directory.close_logs(broker_epoch)

    # --- What time brings -----------------------------------------------------------------------------------------

    def flush_due(self, *, now_ms: int) -> None:
        """Syncs logs whose ``flush.ms`` has passed."""
        for log in self._logs():
            log.flush_if_due(now_ms=now_ms)

    def pop_flush_works(self) -> list[tuple[PartitionLog, FlushWork]]:
        """Returns, once, the segments that rolls left to be synced, with their logs."""
        works = ((log, log.pop_flush_work()) for log in self._logs())
        return [(log, work) for log, work in works if work is not None]

    def pop_risen_recovery_points(self) -> list[tuple[PartitionLog, Offset]]:
        """Returns, once, the logs whose recovery point has risen, with the new one."""
        points = ((log, log.pop_risen_recovery_point()) for log in self._logs())
        return [(log, point) for log, point in points if point is not None]

    def delete_due(self, *, now_ms: int) -> None:
        """Removes files whose delay has passed."""
        for directory in self._directories:
            directory.delete_due(now_ms=now_ms, delay_ms=self._properties.log_segment_delete_delay_ms)

    def apply_retention(
        self, high_watermark_of: Callable[[TopicPartition], Offset], *, now_ms: int
    ) -> list[tuple[TopicPartition, Offset]]:
        """Deletes old segments, and returns the partitions whose log start rose, each with its new start."""
        raised: list[tuple[TopicPartition, Offset]] = []
        for log in self._logs():
            limits = retention_limits(self._topic_properties_of(log.partition.topic))
            start = log.delete_old_segments(
                high_watermark=high_watermark_of(log.partition), limits=limits, now_ms=now_ms
            )
            if start is not None:
                raised.append((log.partition, start))
        return raised

    def _logs(self) -> list[PartitionLog]:
        return [log for directory in self._directories for log in directory.logs.values()]

    def _log(self, partition: TopicPartition) -> PartitionLog:
        return self._directory_of(partition).log(partition)

    def _directory_of(self, partition: TopicPartition) -> LogDirectory:
        return next(directory for directory in self._directories if partition in directory.logs)

    def _settings_of(self, topic: str) -> LogSettings:
        return log_settings(self._topic_properties_of(topic), self._switches)
