"""Finds copies of brokers' log directories, and the copies of the metadata log among them.

::

    DIR/meta.properties              DIR is a log directory, and says of which node
    DIR/<any>/meta.properties        DIR holds some, however they are called, up to three folders down
    7=DIR                            DIR is a log directory of broker 7, whatever is in it

A directory without ``meta.properties`` is a log directory if it holds folders such as ``orders-0``; its broker is then
the number at the end of its name, or of the name of its parent folder.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.errors import ConfigError, StorageError
from laststand.emulator.core.types import NodeId, Offset, TopicPartition
from laststand.emulator.kafka.metadata_log import METADATA_LOG
from laststand.emulator.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    parse_offsets,
)
from laststand.emulator.storage.clean_shutdown import CLEAN_SHUTDOWN_FILE, parse_broker_epoch
from laststand.emulator.storage.log_directory import partition_of_directory
from laststand.emulator.storage.meta_properties import META_PROPERTIES, parse_pairs
from laststand.emulator.user_files import read_text

_NAMED: Final = re.compile(r"([0-9]{1,9})=(.+)", re.DOTALL)
_NUMBER_AT_END: Final = re.compile(r"(?<![0-9])([0-9]{1,9})$")
_NODE_ID: Final = re.compile(r"[0-9]{1,10}")
_NODE_ID_MAX: Final = 2**31 - 1
_DEPTH_MAX: Final = 3


class LogDirectoryFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A log directory, and what its small files say.

    Attributes:
        path: of the directory.
        node_id: the directory's broker or controller.
        directory_id: from ``meta.properties``; ``None`` if that names none.
        cluster_id: from ``meta.properties``; ``None`` if that is missing.
        is_clean: whether its logs were closed in order.
        clean_broker_epoch: epoch of the incarnation that closed the logs cleanly, -1 if it never registered; ``None``
            if unknown.
        high_watermarks: as checkpointed last, by partition.
        recovery_points: by partition, the offset below which its log was flushed.
        log_start_offsets: checkpointed offsets that differ from the first segment's, by partition.
        problems: files that could not be read, in words.
    """

    path: Path
    node_id: NodeId
    directory_id: str | None
    cluster_id: str | None
    is_clean: bool
    clean_broker_epoch: int | None
    high_watermarks: dict[TopicPartition, Offset]
    recovery_points: dict[TopicPartition, Offset]
    log_start_offsets: dict[TopicPartition, Offset]
    problems: tuple[str, ...]

    def partitions(self) -> Iterator[tuple[TopicPartition, Path]]:
        """Yields the partitions in the directory by name, with their folders, without the metadata log."""
        for folder in sorted(self.path.iterdir()):
            partition = partition_of_directory(folder.name)
            if partition is not None and folder.name != METADATA_LOG and folder.is_dir():
                yield partition, folder

    @property
    def metadata_log(self) -> Path | None:
        """The copy of the metadata log; ``None`` if there is none."""
        folder = self.path / METADATA_LOG
        return folder if folder.is_dir() else None


def find_log_directories(arguments: Sequence[str]) -> tuple[LogDirectoryFacts, ...]:
    """Returns the log directories that arguments name, in their order.

    Raises:
        ConfigError: an argument names no log directory, or one whose broker is unknown.
        StorageError: a directory cannot be read.
    """
    found: dict[Path, LogDirectoryFacts] = {}
    for argument in arguments:
        try:
            for facts in _find(argument):
                found[facts.path.resolve()] = facts
        except OSError as error:
            raise StorageError(path=str(error.filename or argument), reason=error.strerror or str(error)) from error
    return tuple(found.values())


def _find(argument: str) -> Iterator[LogDirectoryFacts]:
    named = _NAMED.fullmatch(argument)
    root = Path(named[2] if named is not None else argument)
    if not root.is_dir():
        raise ConfigError(key="DIR", value=argument, expected="a directory")
    if named is not None:
        yield _read(root, node_id=NodeId(int(named[1])))
        return
    paths = list(_log_directories(root, depth=0))
    if not paths:
        raise ConfigError(
            key="DIR",
            value=argument,
            expected=f"log directories of brokers: {META_PROPERTIES}, or folders such as orders-0",
        )
    for path in paths:
        yield _read(path, node_id=None)


def _log_directories(path: Path, *, depth: int) -> Iterator[Path]:
    if (path / META_PROPERTIES).exists() or _has_logs(path):
        yield path
    elif depth < _DEPTH_MAX:
        for folder in sorted(path.iterdir()):
            if folder.is_dir():
                yield from _log_directories(folder, depth=depth + 1)


def _has_logs(path: Path) -> bool:
    return any(
        partition_of_directory(folder.name) is not None
        and (any(folder.glob("[0-9]*.log")) or (folder.name == METADATA_LOG and any(folder.glob("*.checkpoint"))))
        for folder in path.iterdir()
    )


def _read(path: Path, *, node_id: NodeId | None) -> LogDirectoryFacts:
    problems: list[str] = []
    properties = parse_pairs(_text(path / META_PROPERTIES, problems) or "", "=")
    clean_shutdown = _text(path / CLEAN_SHUTDOWN_FILE, problems)
    return LogDirectoryFacts(
        path=path,
        node_id=_node_of(path, properties) if node_id is None else node_id,
        directory_id=properties.get("directory.id"),
        cluster_id=properties.get("cluster.id"),
        is_clean=(path / CLEAN_SHUTDOWN_FILE).exists(),
        clean_broker_epoch=None if clean_shutdown is None else parse_broker_epoch(clean_shutdown.encode()),
        high_watermarks=_offsets(path / HIGH_WATERMARK_CHECKPOINT, problems),
        recovery_points=_offsets(path / RECOVERY_POINT_CHECKPOINT, problems),
        log_start_offsets=_offsets(path / LOG_START_OFFSET_CHECKPOINT, problems),
        problems=tuple(problems),
    )


def _node_of(path: Path, properties: dict[str, str]) -> NodeId:
    # A broker of a ZooKeeper cluster wrote version 0, with broker.id.
    written = properties.get("node.id") or properties.get("broker.id") or ""
    if _NODE_ID.fullmatch(written) and int(written) <= _NODE_ID_MAX:
        return NodeId(int(written))
    resolved = path.resolve()
    for name in (resolved.name, resolved.parent.name):
        at_end = _NUMBER_AT_END.search(name)
        if at_end is not None:
            return NodeId(int(at_end[1]))
    raise ConfigError(
        key="DIR", value=str(path), expected=f"{META_PROPERTIES} with a node.id, or the broker before it: 1={path}"
    )


def _text(path: Path, problems: list[str]) -> str | None:
    try:
        return read_text(path)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path}: cannot be read: {error}")
        return None


def _offsets(path: Path, problems: list[str]) -> dict[TopicPartition, Offset]:
    try:
        return parse_offsets(_text(path, problems) or "", path=str(path))
    except StorageError as error:
        problems.append(str(error))
        return {}
