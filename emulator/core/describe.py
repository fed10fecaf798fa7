"""DescribeTopicPartitions: partitions page by page, with what Metadata does not show (KIP-966).

Any node answers from its own image, so two pages may show different moments. A page holds at most ``partition_limit``
partitions over all topics; topics that do not exist cost nothing. Kafka's ``DescribeTopicPartitionsRequestHandler``.
"""

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import TopicPartition


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    topics: tuple[messages.DescribedTopic, ...]
    next_cursor: messages.TopicCursor | None


def describe_topic_partitions(
    image: MetadataImage,
    request: messages.DescribeTopicPartitionsRequest,
    *,
    partition_limit: int,
    unauthorized: frozenset[str] = frozenset(),
) -> messages.DescribeTopicPartitionsResponse:
    """Returns the page that a request asks for.

    Args:
        image: the answering node's metadata.
        request: topics (none: all of them) and where to start.
        partition_limit: ``max.request.partition.size.limit`` of the answering node; the smaller limit counts.
        unauthorized: topics that the requester may not see. If requested by name, each page ends with errors for them;
            otherwise they are hidden.
    """
    cursor = request.cursor
    if cursor is not None and (cursor.partition < 0 or (request.topics and cursor.topic not in request.topics)):
        return messages.DescribeTopicPartitionsResponse(error=ErrorCode.INVALID_REQUEST)
    first = "" if cursor is None else cursor.topic
    names = sorted(name for name in set(request.topics or image.topics) if name >= first)
    limit = max(1, min(partition_limit, request.response_partition_limit))
    page = _fill(image, [name for name in names if name not in unauthorized], cursor, limit=limit)
    forbidden = [name for name in names if name in unauthorized] if request.topics else []
    return messages.DescribeTopicPartitionsResponse(
        error=ErrorCode.NONE,
        topics=(*page.topics, *(_failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in forbidden)),
        next_cursor=page.next_cursor,
    )


def _fill(image: MetadataImage, names: list[str], cursor: messages.TopicCursor | None, *, limit: int) -> _Page:
    topics: list[messages.DescribedTopic] = []
    remaining = limit
    for name in names:
        if remaining == 0:
            return _Page(topics=tuple(topics), next_cursor=messages.TopicCursor(topic=name, partition=0))
        if name not in image.topics:
            topics.append(_failed(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        start = cursor.partition if cursor is not None and cursor.topic == name else 0
        partitions = image.partitions_of(name)
        described = tuple(_describe(image, partition) for partition in partitions[start : start + remaining])
        topics.append(
            messages.DescribedTopic(name=name, error=ErrorCode.NONE, topic_id=image.topics[name], partitions=described)
        )
        remaining -= len(described)
        end = start + len(described)
        if end < len(partitions):
            return _Page(topics=tuple(topics), next_cursor=messages.TopicCursor(topic=name, partition=end))
    return _Page(topics=tuple(topics), next_cursor=None)


def _failed(name: str, error: ErrorCode) -> messages.DescribedTopic:
    return messages.DescribedTopic(name=name, error=error, topic_id=None, partitions=())


def _describe(image: MetadataImage, partition: TopicPartition) -> messages.DescribedPartition:
    state = image.partitions[partition]
    alive = {broker.broker_id for broker in image.brokers.values() if not broker.fenced}
    return messages.DescribedPartition(
        partition=partition.partition,
        error=ErrorCode.NONE,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        replicas=state.replicas,
        isr=state.isr,
        elr=state.elr,
        last_known_elr=state.last_known_elr,
        last_known_leader=state.last_known_leader,
        offline_replicas=tuple(broker_id for broker_id in state.replicas if broker_id not in alive),
        leader_recovery_state=state.leader_recovery_state,
    )
