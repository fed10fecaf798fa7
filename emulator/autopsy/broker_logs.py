"""Chooses the current log among several logs of a partition in one broker's directories.

A broker with several disks has several log directories (``log.dirs``, JBOD), and each of its partitions is in one of
them; a copied directory may also hold a restored backup. The metadata log decides in two ways: by the topic's id, which
``partition.metadata`` has, too, and, since Kafka 3.7, by the directory of each replica, whose id ``meta.properties``
has. If neither decides, both logs may be the broker's.
"""

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from laststand.emulator.autopsy.log_directories import LogDirectoryFacts
from laststand.emulator.core.types import TopicId


class Deciding(Enum):
    """The evidence that decides which of a broker's logs of a partition counts."""

    TOPIC_ID = "topic_id"
    """Only one log is of the topic that the metadata log names."""

    DIRECTORY_ID = "directory_id"
    """The metadata log assigns the replica to the directory of one."""

    NOTHING = "nothing"
    """Several may be the broker's log."""


class BrokerLog(NamedTuple):
    """A log of a partition in a directory of a broker.

    Attributes:
        topic_id: as in its ``partition.metadata``; ``None`` if that file is missing.
    """

    directory: LogDirectoryFacts
    folder: Path
    topic_id: TopicId | None


class Choice(NamedTuple):
    """The choice among a broker's logs of a partition: one log, or all that may be the current one.

    Attributes:
        others: the logs that are not current.
    """

    logs: tuple[BrokerLog, ...]
    others: tuple[BrokerLog, ...]
    deciding: Deciding


def choose_logs(logs: Sequence[BrokerLog], *, topic_id: TopicId | None, directory_id: str | None) -> Choice:
    """Returns which of a broker's logs of a partition count.

    Args:
        logs: at least one.
        topic_id: the id in the metadata log; ``None`` if it does not have the partition.
        directory_id: the log directory that the metadata assigns the replica to; ``None`` if the metadata does not name
            one.
    """
    candidates = tuple(logs)
    deciding = Deciding.NOTHING
    # A log without an id may be of any topic: brokers write the file since Kafka 2.8.
    of_topic = tuple(log for log in logs if log.topic_id in (None, topic_id))
    if topic_id is not None and of_topic and len(of_topic) < len(candidates):
        candidates, deciding = of_topic, Deciding.TOPIC_ID
    of_directory = tuple(log for log in candidates if log.directory.directory_id == directory_id)
    if len(candidates) > 1 and directory_id is not None and of_directory and len(of_directory) < len(candidates):
        candidates, deciding = of_directory, Deciding.DIRECTORY_ID
    if len(candidates) > 1:
        deciding = Deciding.NOTHING
    return Choice(candidates, tuple(log for log in logs if log not in candidates), deciding)
