"""Batches and disks that the storage tests share."""

from collections.abc import Sequence
from functools import cache

import msgspec

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition
from laststand.emulator.storage.filesystem import FileSystem, OpenMode
from laststand.emulator.storage.record_batch import PARSE_ANYTHING, parse_batch, stamp
from laststand.emulator.storage.record_codec import ProducerFields, RecordContent, build_batch
from tests.memory_filesystem import MemoryFileSystem

PARTITION = TopicPartition("orders", 0)
TOPIC_ID = TopicId("AAAAAAAAAAAAAAAAAAAAAQ")


@cache
def make_batch(
    base_offset: int,
    records: int = 1,
    *,
    leader_epoch: int = 0,
    timestamp_ms: int = 1000,
    producer_id: int | None = None,
    base_sequence: int = 0,
    value: bytes = b"value",
) -> tuple[BatchDescriptor, bytes]:
    """A batch as the log holds it."""
    producer = (
        None
        if producer_id is None
        else ProducerFields(
            producer_id=ProducerId(producer_id), producer_epoch=ProducerEpoch(0), base_sequence=base_sequence
        )
    )
    content = build_batch([RecordContent(value=value, timestamp_ms=timestamp_ms)] * records, producer=producer)
    parsed = parse_batch(content, max_message_bytes=PARSE_ANYTHING)
    assert isinstance(parsed, BatchDescriptor)
    descriptor = msgspec.structs.replace(
        parsed,
        base_offset=Offset(base_offset),
        last_offset=Offset(base_offset + records - 1),
        leader_epoch=LeaderEpoch(leader_epoch),
    )
    return descriptor, bytes(stamp(content, descriptor))


def make_batches(bases: Sequence[int], *, leader_epoch: int = 0) -> tuple[list[BatchDescriptor], list[bytes]]:
    """Batches of one record each."""
    made = [make_batch(base, leader_epoch=leader_epoch) for base in bases]
    return [descriptor for descriptor, _ in made], [content for _, content in made]


def durable_directory(path: str) -> MemoryFileSystem:
    """An empty disk with one directory that no power loss takes."""
    filesystem = MemoryFileSystem()
    filesystem.make_directory(path)
    filesystem.sync_directory("/")
    return filesystem


def overwrite(filesystem: FileSystem, path: str, content: bytes) -> None:
    """Replaces a file, syncing nothing."""
    if filesystem.exists(path):
        filesystem.unlink(path)
    file = filesystem.open(path, OpenMode.APPEND)
    file.append((content,))
    file.close()
