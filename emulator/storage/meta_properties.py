"""The two small property files: ``meta.properties`` of a log directory, ``partition.metadata`` of a partition.

::

    version=1                        version: 0
    cluster.id=4L6g3nShT-eMCtK--X86sw    topic_id: 7n5nSN7ZQzGjZvDvNl3ygA
    node.id=2
    directory.id=JsnDDNVyTL289kYk6sPzig
"""

from typing import Final

import msgspec

from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import NodeId, TopicId
from laststand.emulator.storage.filesystem import FileSystem, read_file, write_atomically

META_PROPERTIES: Final = "meta.properties"
PARTITION_METADATA: Final = "partition.metadata"

_META_VERSION: Final = "1"
_PARTITION_VERSION: Final = "0"


class MetaProperties(msgspec.Struct, frozen=True, kw_only=True):
    """The owner of the directory; the ids are UUIDs in Kafka's 22 characters of URL-safe base64."""

    cluster_id: str
    node_id: NodeId
    directory_id: str


def _pairs(filesystem: FileSystem, path: str, separator: str) -> dict[str, str]:
    try:
        return parse_pairs(read_file(filesystem, path).decode(), separator)
    except UnicodeDecodeError as error:
        raise StorageError(path=path, reason=str(error)) from error


def parse_pairs(text: str, separator: str) -> dict[str, str]:
    """Returns the keys and values of a property file."""
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            key, _, value = line.partition(separator)
            pairs[key.strip()] = value.strip()
    return pairs


def read_meta_properties(filesystem: FileSystem, directory: str) -> MetaProperties | None:
    """Returns a log directory's properties, or ``None`` if it was never formatted.

    Raises:
        StorageError: the file is no ``meta.properties`` of version 1.
    """
    path = f"{directory}/{META_PROPERTIES}"
    if not filesystem.exists(path):
        return None
    pairs = _pairs(filesystem, path, "=")
    if pairs.get("version") != _META_VERSION:
        raise StorageError(path=path, reason=f"unknown version {pairs.get('version')!r}")
    try:
        return MetaProperties(
            cluster_id=pairs["cluster.id"], node_id=NodeId(int(pairs["node.id"])), directory_id=pairs["directory.id"]
        )
    except (KeyError, ValueError) as error:
        raise StorageError(path=path, reason=f"missing or malformed {error}") from error


def write_meta_properties(filesystem: FileSystem, directory: str, meta: MetaProperties) -> None:
    """Writes a log directory's properties durably.

    Raises:
        StorageError: the write failed.
    """
    text = (
        f"version={_META_VERSION}\ncluster.id={meta.cluster_id}\n"
        f"node.id={meta.node_id}\ndirectory.id={meta.directory_id}\n"
    )
    write_atomically(filesystem, f"{directory}/{META_PROPERTIES}", text.encode())


def format_directory(filesystem: FileSystem, directory: str, fresh: MetaProperties) -> MetaProperties:
    """Formats a log directory with ``fresh`` unless it is formatted already; returns its properties.

    Raises:
        StorageError: the directory belongs to another node, or the write failed.
    """
    meta = read_meta_properties(filesystem, directory)
    if meta is None:
        write_meta_properties(filesystem, directory, fresh)
        return fresh
    if (meta.cluster_id, meta.node_id) != (fresh.cluster_id, fresh.node_id):
        raise StorageError(path=directory, reason=f"belongs to node {meta.node_id} of cluster {meta.cluster_id}")
    return meta


def read_topic_id(filesystem: FileSystem, directory: str) -> TopicId | None:
    """Returns the topic id of a partition directory, or ``None`` where the file is missing.

    Raises:
        StorageError: the file is no ``partition.metadata`` of version 0.
    """
    path = f"{directory}/{PARTITION_METADATA}"
    if not filesystem.exists(path):
        return None
    pairs = _pairs(filesystem, path, ":")
    if pairs.get("version") != _PARTITION_VERSION or not pairs.get("topic_id"):
        raise StorageError(path=path, reason="unknown version, or no topic id")
    return TopicId(pairs["topic_id"])


def write_topic_id(filesystem: FileSystem, directory: str, topic_id: TopicId) -> None:
    """Writes a partition directory's topic id durably.

    Raises:
        StorageError: the write failed.
    """
    text = f"version: {_PARTITION_VERSION}\ntopic_id: {topic_id}\n"
    write_atomically(filesystem, f"{directory}/{PARTITION_METADATA}", text.encode())
