"""Finds the bytes of a batch: the core identifies batches by their headers, and their bytes arrived with the input."""

from collections.abc import Sequence
from itertools import islice

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.batch import BatchDescriptor, InvalidBatch
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.core.zookeeper import exchange
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.storage import record_batch
from laststand.emulator.storage.filesystem import Buffer
from laststand.emulator.storage.record_batch import PARSE_ANYTHING, split_batches


def parse_produced(records: bytes) -> BatchDescriptor | InvalidBatch:
    """Reads the header of a batch that a producer sent; limits of size are the core's to check."""
    return record_batch.parse_produced(records, max_message_bytes=PARSE_ANYTHING)


def parse_fetched(records: bytes) -> tuple[BatchDescriptor, ...]:
    """Reads the headers of fetched batches.

    Raises:
        CodecError: the bytes are not complete, intact batches.
    """
    batches = split_batches(records)
    if isinstance(batches, InvalidBatch):
        raise CodecError(message="FetchResponse", reason=batches.reason)
    return tuple([descriptor for _, descriptor in batches])


def batch_bytes(
    incoming: inputs.BrokerInput | exchange.ZooKeeperInput,
    attachments: Sequence[bytes],
    partition: TopicPartition,
    *,
    count: int,
) -> list[Buffer]:
    """Returns the bytes of the first ``count`` batches that an input carries for a partition.

    Args:
        incoming: a produce request or a fetch response.
        attachments: one block of bytes for each partition of the input.
        partition: the batches' partition.
        count: number of batches.

    Raises:
        InvariantError: the input carries no batches for it.
    """
    match incoming:
        case inputs.RequestReceived(request=messages.ProduceRequest(partitions=produced)):
            for block, entry in zip(attachments, produced, strict=True):
                if entry.topic_partition == partition:
                    return [block]
        case inputs.ResponseReceived(response=messages.FetchResponse(partitions=fetched)):
            for block, answer in zip(attachments, fetched, strict=True):
                if answer.topic_partition == partition:
                    return _cut(block, answer.batches, count)
        case _:
            pass
    raise InvariantError(f"{type(incoming).__name__} carries no batch of {partition}")


def _cut(block: bytes, batches: Sequence[BatchDescriptor], count: int) -> list[Buffer]:
    if len(batches) == 1:
        return [block]
    view = memoryview(block)
    contents: list[Buffer] = []
    position = 0
    for batch in islice(batches, count):
        contents.append(view[position : position + batch.size])
        position += batch.size
    return contents
