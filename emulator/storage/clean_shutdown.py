"""``.kafka_cleanshutdown``: one file with two facts that must not be confused (Kafka's ``LogManager``).

Its *existence*, whatever its content, means that the logs of its directory were closed in order and need no recovery.
Its *content*, ``{"version":0,"brokerEpoch":N}``, is the proof that a registration sends to the controller (KIP-966).

Life cycle: read for the registration, deleted (and the directory synced, so that it cannot come back) before the
directory's logs are opened, written after all of them were flushed and closed without error. A process that stops
before it opens them writes its own epoch into it.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import BrokerEpoch
from laststand.emulator.storage.filesystem import FileSystem, OpenMode, parent_directory, read_file

CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"

_NO_EPOCH: Final = -1


class _Content(msgspec.Struct, frozen=True, rename="camel"):
    version: int = 0
    broker_epoch: int | None = None


def clean_shutdown_path(directory: str) -> str:
    """Returns the file's path in a log directory."""
    return f"{directory}/{CLEAN_SHUTDOWN_FILE}"


def is_clean(filesystem: FileSystem, directory: str) -> bool:
    """Returns whether the logs of a directory skip recovery: the file exists, whatever its content."""
    return filesystem.exists(clean_shutdown_path(directory))


def read_broker_epoch(filesystem: FileSystem, directory: str) -> int | None:
    """Returns the epoch in one directory's file as written (-1 is possible), or ``None`` if there is none to read."""
    path = clean_shutdown_path(directory)
    if not filesystem.exists(path):
        return None
    try:
        return parse_broker_epoch(read_file(filesystem, path))
    except StorageError:
        return None


def parse_broker_epoch(content: bytes) -> int | None:
    """Returns the epoch that a file's content names (-1 is possible), or ``None`` if it names none."""
    try:
        return msgspec.json.decode(content, type=_Content).broker_epoch
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def previous_broker_epoch(epochs: Iterable[int | None]) -> BrokerEpoch | None:
    """Returns the broker epoch that the next registration may claim.

    Args:
        epochs: results of ``read_broker_epoch`` for each configured directory, in order; ``None`` also for one that is
            not live.

    Returns:
        The epoch that all directories agree on, else ``None`` (-1 on the wire). A leading -1 counts as "nothing seen
        yet", as in Kafka's ``LogManager.readBrokerEpochFromCleanShutdownFiles``, so [-1, 5] yields 5.
    """
    seen = _NO_EPOCH
    for epoch in epochs:
        if epoch is None or (seen != _NO_EPOCH and epoch != seen):
            return None
        seen = epoch
    return None if seen == _NO_EPOCH else BrokerEpoch(seen)


def delete(filesystem: FileSystem, directory: str) -> None:
    """Removes the file durably; no effect if it is missing.

    Kafka does not sync the directory; without it the file could come back after a power loss and hide a torn log.

    Raises:
        StorageError: the removal failed.
    """
    path = clean_shutdown_path(directory)
    if filesystem.exists(path):
        filesystem.unlink(path)
        filesystem.sync_directory(directory)


def write(filesystem: FileSystem, directory: str, broker_epoch: BrokerEpoch | None) -> None:
    """Writes the file in place and syncs it; ``None`` (never registered) is written as -1.

    Raises:
        StorageError: the write failed.
    """
    path = clean_shutdown_path(directory)
    if filesystem.exists(path):
        filesystem.unlink(path)
    content = _Content(broker_epoch=_NO_EPOCH if broker_epoch is None else broker_epoch)
    file = filesystem.open(path, OpenMode.APPEND)
    try:
        file.append((msgspec.json.encode(content),))
        file.sync()
    finally:
        file.close()
    filesystem.sync_directory(parent_directory(path))
