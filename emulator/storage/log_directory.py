"""One log directory: its lock, its partitions, its checkpoints and its clean-shutdown file.

::

    .lock  meta.properties  .kafka_cleanshutdown
    recovery-point-offset-checkpoint  log-start-offset-checkpoint  replication-offset-checkpoint
    orders-0/  orders-1/  orders-2.<uuid>-delete/  orders-3.<uuid>-stray/

A directory's life: ``open`` (lock), ``load_logs`` (deletes the clean-shutdown file first), appends, ``close_logs``
(flush everything, checkpoints, clean-shutdown file last). Closing before loading changes nothing: rewriting the
checkpoints then would lose every log start (Kafka's ``LogManager``).
"""

import logging
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Final

from laststand.emulator.core import inputs
from laststand.emulator.core.types import BrokerEpoch, Offset, TopicId, TopicPartition
from laststand.emulator.storage import clean_shutdown
from laststand.emulator.storage.batch_memory import BatchMemory
from laststand.emulator.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    read_offsets,
    read_offsets_leniently,
    write_offsets,
)
from laststand.emulator.storage.filesystem import DirectoryLock, FileSystem, parent_directory
from laststand.emulator.storage.meta_properties import read_topic_id
from laststand.emulator.storage.partition_log import LogSettings, PartitionLog
from laststand.emulator.storage.recovery import LogCheckpoints, create_log, load_log

_LOG: Final = logging.getLogger(__name__)

LOCK_FILE: Final = ".lock"

_PARTITION_DIRECTORY: Final = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)")
_PARTITION_MAX: Final = 2**31 - 1
_DELETE_SUFFIX: Final = "-delete"
_STRAY_SUFFIX: Final = "-stray"
_STRAY_DIRECTORY: Final = re.compile(rf"(?P<name>{_PARTITION_DIRECTORY.pattern})\.[0-9a-f]{{32}}{_STRAY_SUFFIX}")
_LONGEST_NAME: Final = 255


def is_partition_number(digits: str) -> bool:
    """Returns whether digits are the number of a partition that can be: Kafka's is a 32-bit integer."""
    return len(digits) <= len(str(_PARTITION_MAX)) and int(digits) <= _PARTITION_MAX


def partition_of_directory(name: str) -> TopicPartition | None:
    """Returns the partition of a directory name, or ``None`` for deleted, stray and other names."""
    match = _PARTITION_DIRECTORY.fullmatch(name)
    if match is None or not is_partition_number(match["partition"]):
        return None
    return TopicPartition(match["topic"], int(match["partition"]))


class LogDirectory:
    """A live log directory. Not thread-safe."""

    def __init__(self, filesystem: FileSystem, path: str, *, lock: DirectoryLock, memory: BatchMemory) -> None:
        """Use ``open``."""
        self.path = path
        self._filesystem = filesystem
        self._lock = lock
        self._memory = memory
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._is_loaded = False
        self._was_clean = False
        self._has_new_names = False
        self._due: list[tuple[int, str]] = []
        self._strays: dict[str, inputs.StrayLog] = {}

    @classmethod
    def open(cls, filesystem: FileSystem, path: str, *, memory: BatchMemory | None = None) -> "LogDirectory":
        """Locks an existing directory. No log is opened yet.

        Args:
            filesystem: the file system of the directory.
            path: of the directory.
            memory: shared by the node's directories; by default, the directory has its own.

        Raises:
            StorageError: missing, or in use.
        """
        lock = filesystem.lock(f"{path}/{LOCK_FILE}")
        return cls(filesystem, path, lock=lock, memory=BatchMemory() if memory is None else memory)

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """All open logs."""
        return self._logs

    @property
    def strays(self) -> tuple[inputs.StrayLog, ...]:
        """Strays that were put aside, by this process or, once logs are loaded, by an earlier one.

        A stray of an earlier process whose topic has more than 210 characters may be known only by the beginning of its
        name, as in Kafka; the topic id identifies the topic.
        """
        return tuple(self._strays.values())

    def log(self, partition: TopicPartition) -> PartitionLog:
        """Returns an open log.

        Raises:
            KeyError: the directory has no such log.
        """
        return self._logs[partition]

    def clean_shutdown_epoch(self) -> int | None:
        """Returns the broker epoch in the clean-shutdown file; see ``clean_shutdown.read_broker_epoch``."""
        return clean_shutdown.read_broker_epoch(self._filesystem, self.path)

    def renew_clean_shutdown(self, broker_epoch: BrokerEpoch) -> None:
        """Writes another epoch into the clean-shutdown file, if it exists or existed when loading began.

        For logs that are not open: they are unchanged since they were closed.

        Raises:
            StorageError: the file could not be written; it then proves nothing.
        """
        if self._was_clean or clean_shutdown.is_clean(self._filesystem, self.path):
            clean_shutdown.write(self._filesystem, self.path, broker_epoch)

    # --- Loading --------------------------------------------------------------------------------------------------

    def load_logs(self, settings_of: Callable[[str], LogSettings]) -> tuple[inputs.LoadedLog, ...]:
        """Opens every log, recovering where needed, after deleting the clean-shutdown file.

        Args:
            settings_of: settings of a topic, by its name.

        Returns:
            The logs, one per partition, sorted.

        Raises:
            StorageError: a file could not be read or written.
        """
        self._was_clean = is_clean = clean_shutdown.is_clean(self._filesystem, self.path)
        clean_shutdown.delete(self._filesystem, self.path)
        # An earlier process may have been killed between making a partition directory and syncing its name.
        self._filesystem.sync_directory(self.path)
        recovery_points = read_offsets_leniently(self._filesystem, f"{self.path}/{RECOVERY_POINT_CHECKPOINT}")
        log_starts = read_offsets_leniently(self._filesystem, f"{self.path}/{LOG_START_OFFSET_CHECKPOINT}")
        high_watermarks = read_offsets(self._filesystem, f"{self.path}/{HIGH_WATERMARK_CHECKPOINT}")
        none = Offset(0)
        loaded: list[inputs.LoadedLog] = []
        for name in self._filesystem.list_directory(self.path):
            path = f"{self.path}/{name}"
            if not self._filesystem.is_directory(path):
                continue
            if name.endswith(_DELETE_SUFFIX):
                self._remove_tree(path)
                continue
            stray = _STRAY_DIRECTORY.fullmatch(name)
            if stray is not None:
                self._note_stray(path, TopicPartition(stray["topic"], int(stray["partition"])))
            partition = partition_of_directory(name)
            if partition is None:
                continue
            checkpoints = LogCheckpoints(
                recovery_point=recovery_points.get(partition, none),
                log_start_offset=log_starts.get(partition, none),
                high_watermark=high_watermarks.get(partition, none),
            )
            self._logs[partition], input_of_core = load_log(
                self._filesystem,
                path,
                partition=partition,
                is_clean=is_clean,
                checkpoints=checkpoints,
                settings=settings_of(partition.topic),
                memory=self._memory,
            )
            loaded.append(input_of_core)
        self._is_loaded = True
        return tuple(sorted(loaded, key=lambda log: log.partition))

    # --- Partitions -----------------------------------------------------------------------------------------------

    def create_log(self, partition: TopicPartition, topic_id: TopicId, settings: LogSettings) -> PartitionLog:
        """Makes a partition directory; its topic id is durable when this returns, its name after ``sync_names``.

        Raises:
            StorageError: the log exists, or a write failed.
        """
        log = create_log(
            self._filesystem,
            f"{self.path}/{partition}",
            partition=partition,
            topic_id=topic_id,
            settings=settings,
            memory=self._memory,
        )
        self._has_new_names = True
        self._logs[partition] = log
        return log

    def sync_names(self) -> None:
        """Makes the names of new logs durable, all with one sync; no effect if there are none.

        Raises:
            StorageError: the sync failed.
        """
        if self._has_new_names:
            self._filesystem.sync_directory(self.path)
            self._has_new_names = False

    def delete_log(self, partition: TopicPartition, *, now_ms: int, delay_ms: int) -> None:
        """Renames a partition directory to ``-delete``; its content goes when ``delay_ms`` has passed.

        Raises:
            StorageError: the rename failed.
        """
        self._due.append((now_ms + delay_ms, self._set_aside(partition, _DELETE_SUFFIX)))

    def rename_stray_log(self, partition: TopicPartition) -> None:
        """Renames a partition directory to ``-stray`` and leaves it on disk.

        Raises:
            StorageError: the rename failed.
        """
        self._note_stray(self._set_aside(partition, _STRAY_SUFFIX), partition)

    def _note_stray(self, path: str, partition: TopicPartition) -> None:
        self._strays[path] = inputs.StrayLog(partition=partition, topic_id=read_topic_id(self._filesystem, path))

    def delete_strays(self, stray: inputs.StrayLog) -> None:
        """Removes every directory that was put aside for that partition with that topic id.

        Raises:
            StorageError: a removal failed.
        """
        for path in [path for path, known in self._strays.items() if known == stray]:
            del self._strays[path]
            self._remove_tree(path)
        self._filesystem.sync_directory(self.path)

    def _set_aside(self, partition: TopicPartition, suffix: str) -> str:
        log = self._logs.pop(partition)
        log.abandon()
        # They would be taken for those of the next log of that name (Kafka's ``asyncDelete`` has them
        # rewritten, too, but afterwards).
        self.write_recovery_points()
        self.write_log_starts()
        # The topic gives way, not the partition: what is left must still be known as a stray (Kafka's ``LocalLog``).
        tail = f"-{partition.partition}.{uuid.uuid4().hex}{suffix}"
        target = f"{self.path}/{partition.topic[: _LONGEST_NAME - len(tail)]}{tail}"
        self._filesystem.rename(log.path, target)
        self._filesystem.sync_directory(self.path)
        return target

    def delete_due(self, *, now_ms: int, delay_ms: int) -> None:
        """Removes logs renamed at least ``delay_ms`` ago, and notes those renamed since the last call.

        Raises:
            StorageError: a removal failed.
        """
        for log in self._logs.values():
            self._due += [(now_ms + delay_ms, path) for path in log.pop_doomed()]
        due = [path for due_ms, path in self._due if due_ms <= now_ms]
        self._due = [(due_ms, path) for due_ms, path in self._due if due_ms > now_ms]
        for path in due:
            if self._filesystem.is_directory(path):
                self._remove_tree(path)
            elif self._filesystem.exists(path):  # not where its whole partition went before it
                self._filesystem.unlink(path)

    def _remove_tree(self, path: str) -> None:
        for name in self._filesystem.list_directory(path):
            self._filesystem.unlink(f"{path}/{name}")
        self._filesystem.remove_directory(path)

    # --- Checkpoints and end --------------------------------------------------------------------------------------

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """Replaces the high-watermark checkpoint; partitions without a log here are left out.

        Raises:
            StorageError: the write failed.
        """
        here = {partition: offset for partition, offset in high_watermarks.items() if partition in self._logs}
        write_offsets(self._filesystem, f"{self.path}/{HIGH_WATERMARK_CHECKPOINT}", here)

    def write_recovery_points(self) -> None:
        """Replaces the recovery-point checkpoint.

        Raises:
            StorageError: the write failed.
        """
        points = {partition: log.recovery_point for partition, log in self._logs.items()}
        write_offsets(self._filesystem, f"{self.path}/{RECOVERY_POINT_CHECKPOINT}", points)

    def write_log_starts(self) -> None:
        """Replaces the log-start checkpoint, which names only logs that start above their first segment.

        Raises:
            StorageError: the write failed.
        """
        starts = {
            partition: log.log_start_offset
            for partition, log in self._logs.items()
            if log.log_start_offset > log.segment_bases[0]
        }
        write_offsets(self._filesystem, f"{self.path}/{LOG_START_OFFSET_CHECKPOINT}", starts)

    def close_logs(self, broker_epoch: BrokerEpoch | None) -> None:
        """Closes every log in order; only then the directory gets its clean-shutdown file with this epoch.

        No effect on the files if the logs were never loaded.

        Raises:
            StorageError: a file could not be written; the directory has no clean-shutdown file.
        """
        if self._is_loaded:
            for log in self._logs.values():
                log.close()
            self.write_recovery_points()
            self.write_log_starts()
            clean_shutdown.write(self._filesystem, self.path, broker_epoch)
            self._logs.clear()
        self._lock.release()


def make_log_directory(filesystem: FileSystem, path: str) -> None:
    """Creates a log directory if it is missing, and makes its name durable.

    Raises:
        StorageError: the directory cannot be made.
    """
    if not filesystem.exists(path):
        filesystem.make_directory(path)
    filesystem.sync_directory(parent_directory(path))
