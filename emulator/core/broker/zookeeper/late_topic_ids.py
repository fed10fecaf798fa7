"""Topics that got their id while in use: requests name them by id only if both sides know the id.

A cluster that is upgraded from before 2.8 gives its topics ids while they are in use (KIP-516), and each broker learns
them from LeaderAndIsr requests. Before that, a log without an id is compared by name, as Kafka
does (``Partition.hasConsistentTopicId``: an id that only one side knows contradicts nothing).
"""

from typing import TypeVar

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.zookeeper.metadata_cache import real_topic_id

_Request = TypeVar("_Request", bound=messages.Request)
_Asked = TypeVar("_Asked", bound=messages.FetchPartition | messages.ProducePartition)


def by_known_ids(request: _Request, hosted: HostedPartitions) -> _Request:
    """Returns a fetch or produce request without topic ids that one side does not know; any other unchanged."""
    if not isinstance(request, messages.FetchRequest | messages.ProduceRequest):
        return request
    partitions = tuple(_by_known_id(each, hosted) for each in request.partitions)
    return request if partitions == request.partitions else msgspec.structs.replace(request, partitions=partitions)


def _by_known_id(asked: _Asked, hosted: HostedPartitions) -> _Asked:
    partition = hosted.get(asked.topic_partition)
    if asked.topic_id is None or partition is None or asked.topic_id == partition.log.topic_id:
        return asked
    if real_topic_id(asked.topic_id) is None or real_topic_id(partition.log.topic_id) is None:
        return msgspec.structs.replace(asked, topic_id=None)
    return asked
