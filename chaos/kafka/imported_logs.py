"""Lays out a broker's logs for an imported run: one data directory for all its log directories."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from laststand.emulator.autopsy.broker_logs import BrokerLog, Deciding, choose_logs
from laststand.emulator.autopsy.log_directories import LogDirectoryFacts
from laststand.emulator.autopsy.replica_reader import CrcScope, read_replica, topic_id_of
from laststand.emulator.core.controller.recovery import log_rank
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, Offset, TopicId, TopicPartition
from laststand.emulator.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    format_offsets,
)
from laststand.emulator.storage.clean_shutdown import CLEAN_SHUTDOWN_FILE
from laststand.emulator.storage.meta_properties import META_PROPERTIES
from laststand.emulator.user_files import read_bytes

Logs = Mapping[TopicPartition, BrokerLog]


def chosen_logs(
    directories: Sequence[LogDirectoryFacts],
    partitions: Collection[TopicPartition],
    image: MetadataImage,
    assigned: Mapping[tuple[TopicId, int], Mapping[BrokerId, str]],
    problems: list[str],
) -> Logs:
    """Returns, for each partition, the log in a broker's directories that counts.

    Args:
        directories: of one broker.
        partitions: that are imported.
        image: the state at the end of the metadata log.
        assigned: the directory of each replica, as far as the metadata log says.
        problems: receives unreadable files, and which log was taken if nothing decides.
    """
    found: dict[TopicPartition, list[BrokerLog]] = {}
    for directory in directories:
        for partition, folder in directory.partitions():
            if partition in partitions:
                try:
                    found.setdefault(partition, []).append(BrokerLog(directory, folder, topic_id_of(folder)))
                except OSError as error:
                    problems.append(f"{error.filename or folder}: {error.strerror or error}")
    chosen: dict[TopicPartition, BrokerLog] = {}
    for partition, logs in sorted(found.items()):
        topic_id = image.partitions[partition].topic_id
        of_topic = [log for log in logs if log.topic_id in (None, topic_id)]
        if not of_topic:
            names = ", ".join(str(log.folder) for log in logs)
            problems.append(f"{names}: left out, as the metadata log has another topic of that name")
            continue
        broker_id = BrokerId(logs[0].directory.node_id)
        directory_id = assigned.get((topic_id, partition.partition), {}).get(broker_id)
        choice = choose_logs(of_topic, topic_id=topic_id, directory_id=directory_id)
        chosen[partition] = max(choice.logs, key=lambda log: _rank(log, partition))
        if choice.deciding is Deciding.NOTHING and len(choice.logs) > 1:
            problems.append(
                f"broker {broker_id} has {len(choice.logs)} logs of {partition}, and nothing says which of them "
                f"counts: {chosen[partition].folder} was taken, the longest"
            )
    return chosen


def lay_out_broker(directories: Sequence[LogDirectoryFacts], logs: Logs, data: Path) -> None:
    """Makes a broker's data directory: links to its logs, and the lines about them in its directories' small files.

    Args:
        directories: of one broker, at least one.
        logs: that count.
        data: the directory to make.

    Raises:
        OSError: a file cannot be read or written.
    """
    data.mkdir(parents=True)
    starts: dict[TopicPartition, Offset] = {}
    recovery_points: dict[TopicPartition, Offset] = {}
    high_watermarks: dict[TopicPartition, Offset] = {}
    for partition, log in logs.items():
        (data / log.folder.name).symlink_to(log.folder.resolve(), target_is_directory=True)
        facts = log.directory
        for mine, of_directory in (
            (starts, facts.log_start_offsets),
            (recovery_points, facts.recovery_points),
            (high_watermarks, facts.high_watermarks),
        ):
            if partition in of_directory:
                mine[partition] = of_directory[partition]
    for name, offsets in (
        (LOG_START_OFFSET_CHECKPOINT, starts),
        (RECOVERY_POINT_CHECKPOINT, recovery_points),
        (HIGH_WATERMARK_CHECKPOINT, high_watermarks),
    ):
        (data / name).write_text(format_offsets(offsets), encoding="utf-8")
    used = [each for each in directories if any(log.directory is each for log in logs.values())] or list(directories)
    names = [META_PROPERTIES]
    if all(each.is_clean for each in used):
        names.append(CLEAN_SHUTDOWN_FILE)
    for name in names:
        try:
            (data / name).write_bytes(read_bytes(used[0].path / name))
        except OSError:  # the directory's problems name it
            continue


def _rank(log: BrokerLog, partition: TopicPartition) -> tuple[int, int]:
    try:
        with ThreadPoolExecutor(1) as reader:
            reading = read_replica(
                log.folder,
                checkpointed_start=log.directory.log_start_offsets.get(partition, Offset(0)),
                recovery_point=log.directory.recovery_points.get(partition),
                scope=CrcScope.TAIL,
                readers=reader,
            )
    except StorageError:
        return -1, -1
    return log_rank(reading.log.last_leader_epoch, reading.log.log_end_offset)
