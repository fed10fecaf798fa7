"""Adapter of ``describe_topic_partitions``, which both files have."""

from typing import Any

from laststand.emulator.core import messages
from laststand.emulator.core.describe import describe_topic_partitions
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.records import PartitionRecord, Record, TopicRecord
from laststand.emulator.core.types import MetadataOffset, TopicId
from tests.conformance.controller_world import broker, error_name
from tests.conformance.harness import Fields, Vector, mismatches, step_mismatches

_LIMIT = 2000


def run_describe_topic_partitions(vector: Vector) -> list[str]:
    if vector.steps:
        return _run_steps(vector)
    event = vector.event
    cursor = event.get("cursor")
    response = describe_topic_partitions(
        _image(event["catalog"]),
        messages.DescribeTopicPartitionsRequest(
            topics=tuple(event.get("topics") or ()),
            cursor=None
            if cursor is None
            else messages.TopicCursor(topic=cursor["topic"], partition=cursor["partition"]),
            response_partition_limit=event.get("limit", _LIMIT),
        ),
        partition_limit=event.get("server_limit", _LIMIT),
        unauthorized=frozenset(event.get("unauthorized", [])),
    )
    return mismatches(vector.expect, _observed(response))


def _run_steps(vector: Vector) -> list[str]:
    image = _image(vector.before["topics"])
    limit = vector.config.get("max.request.partition.size.limit", _LIMIT)
    found: list[str] = []
    observed: dict[str, Any] = {}
    for index, step in enumerate(vector.steps):
        cursor = step.get("cursor")
        response = describe_topic_partitions(
            image,
            messages.DescribeTopicPartitionsRequest(
                topics=tuple(step.get("topics") or ()),
                cursor=None if cursor is None else messages.TopicCursor(topic=cursor[0], partition=cursor[1]),
                response_partition_limit=step.get("limit", _LIMIT),
            ),
            partition_limit=limit,
        )
        observed = _observed(response)
        following = response.next_cursor
        observed["next_cursor"] = None if following is None else [following.topic, following.partition]
        observed["returned"] = [
            [topic.name, partition.partition] for topic in response.topics for partition in topic.partitions
        ]
        found += step_mismatches(index, step, observed, outcome="error")
    return found + mismatches(vector.final, observed)


def _observed(response: messages.DescribeTopicPartitionsResponse) -> dict[str, Any]:
    following = response.next_cursor
    return {
        "error": error_name(response.error),
        "topics": [
            {
                "topic": topic.name,
                "error": error_name(topic.error),
                "partitions": [partition.partition for partition in topic.partitions],
            }
            for topic in response.topics
        ],
        "next_cursor": None if following is None else {"topic": following.topic, "partition": following.partition},
    }


def _image(catalog: Fields) -> MetadataImage:
    image = MetadataImage()
    for name, count in catalog.items():
        topic_id = TopicId(f"{name}-id")
        records: list[Record] = [TopicRecord(name=name, topic_id=topic_id)]
        records += [_partition(topic_id, partition) for partition in range(count)]
        for record in records:
            image.replay(record, offset=MetadataOffset(image.next_offset))
    return image


def _partition(topic_id: TopicId, partition: int) -> PartitionRecord:
    nodes = (broker(0),)
    return PartitionRecord(topic_id=topic_id, partition=partition, replicas=nodes, isr=nodes, leader=nodes[0])
