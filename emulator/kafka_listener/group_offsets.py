"""The positions of groups: OffsetCommit, OffsetFetch, OffsetDelete."""

from collections.abc import Sequence
from typing import Final

import msgspec

from laststand.emulator.core import group_messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.kafka.numbers import leader_epoch_or_none, number_of
from laststand.emulator.kafka_listener.messages import Message
from laststand.emulator.kafka_listener.requests import ClientRequest, Served
from laststand.emulator.kafka_listener.topic_entries import by_topic, in_topics, partitions_of

_TOPIC_ID_VERSION: Final = 10
_SEVERAL_GROUPS_VERSION: Final = 8
_GROUP_ERROR_VERSION: Final = 2
"""Version of OffsetFetch from which an error stands beside the group, where it stood beside each position before."""


def _known(served: Served, topic: str | None, partition: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    is_known = TopicPartition(topic, partition) in served.broker.image.partitions
    return ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def offset_commit(served: Served, request: ClientRequest) -> Message:
    """Answers OffsetCommit, once the positions are committed."""
    body = request.body
    retention_ms = body["retentionTimeMs"]
    asked = group_messages.OffsetCommitRequest(
        api_version=request.version,
        group_id=body["groupId"],
        member_id=body["memberId"],
        instance_id=body["groupInstanceId"],
        generation_id=body["generationIdOrMemberEpoch"],
        offsets=(),
        retention_ms=None if retention_ms < 0 else retention_ms,
    )
    return await commit_offsets(served, asked, body["topics"], has_ids=request.version >= _TOPIC_ID_VERSION)


async def commit_offsets(
    served: Served, asked: group_messages.OffsetCommitRequest, topics: Sequence[Message], *, has_ids: bool = False
) -> Message:
    """Returns the answer to a request that commits positions; partitions are known by this broker's metadata.

    Args:
        served: the broker.
        asked: the request, without positions.
        topics: positions, as in the client's request.
        has_ids: whether they name topics by id.
    """
    errors: list[ErrorCode] = []
    offsets: list[group_messages.CommittedOffset] = []
    for topic in topics:
        name = served.topic_name(topic)
        for each in topic["partitions"]:
            error = _known(served, name, each["partitionIndex"])
            errors.append(error)
            if error is ErrorCode.NONE:
                offsets.append(
                    group_messages.CommittedOffset(
                        partition=TopicPartition(name or "", each["partitionIndex"]),
                        offset=each["committedOffset"],
                        leader_epoch=leader_epoch_or_none(each["committedLeaderEpoch"]),
                        metadata=each["committedMetadata"] or "",
                        topic_id=topic["topicId"] if has_ids else None,
                    )
                )
    if offsets:
        request = msgspec.structs.replace(asked, offsets=tuple(offsets))
        outcomes = iter((await served.ask(request, group_messages.OffsetCommitResponse)).errors)
        errors = [next(outcomes) if error is ErrorCode.NONE else error for error in errors]
    error_of_each = iter(errors)
    return {
        "topics": [
            {
                "name": topic.get("name"),
                "topicId": topic.get("topicId"),
                "partitions": [
                    {"partitionIndex": each["partitionIndex"], "errorCode": next(error_of_each)}
                    for each in topic["partitions"]
                ],
            }
            for topic in topics
        ]
    }


async def offset_fetch(served: Served, request: ClientRequest) -> Message:
    """Answers OffsetFetch."""
    body, version = request.body, request.version
    if version >= _SEVERAL_GROUPS_VERSION:
        return {"groups": [await _fetched(served, group, version, body) for group in body["groups"]]}
    fetched = await _fetched(served, body, version, body)
    return {"errorCode": fetched["errorCode"], "topics": fetched["topics"]}


async def _fetched(served: Served, group: Message, version: int, body: Message) -> Message:
    topics: Sequence[Message] | None = group["topics"]
    names = None if topics is None else [served.topic_name(topic) for topic in topics]
    asked = group_messages.OffsetFetchRequest(
        group_id=group["groupId"],
        partitions=None
        if topics is None or names is None
        else tuple(
            TopicPartition(name, index)
            for topic, name in zip(topics, names, strict=True)
            if name is not None
            for index in topic["partitionIndexes"]
        ),
        require_stable=body["requireStable"],
    )
    response = await served.ask(asked, group_messages.OffsetFetchResponse)
    answer: Message = {"groupId": group["groupId"], "errorCode": response.error, "topics": []}
    if response.error is not ErrorCode.NONE and version >= _GROUP_ERROR_VERSION:
        return answer
    offsets = {offset.partition: offset for offset in response.offsets}
    unstable = set(response.unstable)
    if topics is None or names is None:
        answer["topics"] = _all_topics(served, offsets, version)
        return answer
    for topic, name in zip(topics, names, strict=True):
        error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else response.error
        found = []
        for index in topic["partitionIndexes"]:
            place = TopicPartition(name or "", index)
            outcome = ErrorCode.UNSTABLE_OFFSET_COMMIT if place in unstable else error
            found.append(_position(index, _of_topic(offsets.get(place), topic, version), outcome))
        answer["topics"].append({"name": topic["name"], "topicId": topic.get("topicId"), "partitions": found})
    return answer


def _of_topic(
    offset: group_messages.CommittedOffset | None, topic: Message, version: int
) -> group_messages.CommittedOffset | None:
    """Returns a position unless it belongs to another topic of the same name."""
    is_another = (
        offset is not None
        and version >= _TOPIC_ID_VERSION
        and offset.topic_id is not None
        and offset.topic_id != topic["topicId"]
    )
    return None if is_another else offset


def _all_topics(
    served: Served, offsets: dict[TopicPartition, group_messages.CommittedOffset], version: int
) -> list[Message]:
    topics = by_topic(
        (partition.topic, _position(partition.partition, offset, ErrorCode.NONE))
        for partition, offset in sorted(offsets.items())
    )
    ids = served.broker.image.topics
    return [
        {"name": name, "topicId": ids.get(name), "partitions": partitions}
        for name, partitions in topics.items()
        if version < _TOPIC_ID_VERSION or name in ids
    ]


def _position(index: int, offset: group_messages.CommittedOffset | None, error: ErrorCode) -> Message:
    return {
        "partitionIndex": index,
        "committedOffset": -1 if offset is None else offset.offset,
        "committedLeaderEpoch": number_of(None if offset is None else offset.leader_epoch),
        "metadata": "" if offset is None else offset.metadata,
        "errorCode": error,
    }


async def offset_delete(served: Served, request: ClientRequest) -> Message:
    """Answers OffsetDelete."""
    body = request.body
    if not body["groupId"]:
        return {"errorCode": ErrorCode.INVALID_GROUP_ID}
    entries = [TopicPartition(topic, each["partitionIndex"]) for topic, each in partitions_of(body["topics"])]
    errors = [_known(served, partition.topic, partition.partition) for partition in entries]
    known = [partition for partition, error in zip(entries, errors, strict=True) if error is ErrorCode.NONE]
    if known:
        asked = group_messages.OffsetDeleteRequest(group_id=body["groupId"], partitions=tuple(known))
        response = await served.ask(asked, group_messages.OffsetDeleteResponse)
        if response.error is not ErrorCode.NONE:
            return {"errorCode": response.error}
        outcomes = iter(response.errors)
        errors = [next(outcomes) if error is ErrorCode.NONE else error for error in errors]
    answers = (
        {"partitionIndex": partition.partition, "errorCode": error}
        for partition, error in zip(entries, errors, strict=True)
    )
    return {"errorCode": ErrorCode.NONE, "topics": in_topics(body["topics"], answers)}
