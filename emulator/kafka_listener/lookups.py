"""Offsets: ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from collections import Counter
from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.topic_names import INTERNAL_TOPICS
from laststand.emulator.core.types import BrokerId, LeaderEpoch
from laststand.emulator.kafka.numbers import broker_or_none, leader_epoch_or_none, number_of, offset_or_none
from laststand.emulator.kafka_listener.messages import Message
from laststand.emulator.kafka_listener.requests import ClientRequest, Served
from laststand.emulator.kafka_listener.topic_entries import by_topic, in_topics, partitions_of

_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6
_FIRST_VERSIONS: Final = {
    messages.LATEST_TIMESTAMP: 1,
    messages.EARLIEST_TIMESTAMP: 1,
    messages.MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
"""Version of ListOffsets from which each special timestamp may be asked for."""

_TIERED: Final = (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD)
_OFFSET_NOT_AVAILABLE_VERSION: Final = 5


async def list_offsets(served: Served, request: ClientRequest) -> Message:
    """Answers ListOffsets."""
    body = request.body
    asked: dict[tuple[str, int], messages.ListOffsetsPosition] = {}
    answers: dict[tuple[str, int], Message] = {}
    entries = [((topic, each["partitionIndex"]), each) for topic, each in partitions_of(body["topics"])]
    counts = Counter(place for place, _ in entries)
    isolation_level = request.isolation_level
    for place, each in entries:
        timestamp = each["timestamp"]
        if isolation_level is None:
            answers[place] = _no_offset(place[1], ErrorCode.UNKNOWN_SERVER_ERROR)
        elif counts[place] > 1:
            answers[place] = _no_offset(place[1], ErrorCode.INVALID_REQUEST)
        elif timestamp < 0 and _FIRST_VERSIONS.get(timestamp, 1 << 15) > request.version:
            answers[place] = _no_offset(place[1], ErrorCode.UNSUPPORTED_VERSION)
        else:
            asked[place] = messages.ListOffsetsPosition(
                topic=place[0],
                partition=place[1],
                timestamp=messages.EARLIEST_TIMESTAMP if timestamp == _EARLIEST_LOCAL else timestamp,
                current_leader_epoch=leader_epoch_or_none(each["currentLeaderEpoch"]),
            )
    if asked and isolation_level is not None:
        core_request = messages.ListOffsetsRequest(
            partitions=tuple(asked.values()),
            replica_id=broker_or_none(body["replicaId"]),
            isolation_level=isolation_level,
        )
        response = (await served.core.ask(core_request)).response
        assert isinstance(response, messages.ListOffsetsResponse), "a ListOffsets request has this response"
        for (place, position), found in zip(asked.items(), response.partitions, strict=True):
            answers[place] = _found(position, found, version=request.version)
    return {"topics": in_topics(body["topics"], (answers[place] for place, _ in entries))}


def _found(asked: messages.ListOffsetsPosition, found: messages.ListOffsetsResult, *, version: int) -> Message:
    error = found.error
    if error is ErrorCode.OFFSET_NOT_AVAILABLE and version < _OFFSET_NOT_AVAILABLE_VERSION:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    if error is not ErrorCode.NONE or found.offset is None or asked.timestamp in _TIERED:
        return _no_offset(asked.partition, error)
    return {
        "partitionIndex": asked.partition,
        "errorCode": error,
        "timestamp": number_of(found.timestamp),
        "offset": found.offset,
        "leaderEpoch": number_of(found.leader_epoch),
    }


def _no_offset(partition: int, error: ErrorCode) -> Message:
    return {"partitionIndex": partition, "errorCode": error, "timestamp": -1, "offset": -1, "leaderEpoch": -1}


async def offset_for_leader_epoch(served: Served, request: ClientRequest) -> Message:
    """Answers OffsetForLeaderEpoch."""
    body = request.body
    positions = [
        messages.EpochPosition(
            topic=topic,
            partition=each["partition"],
            leader_epoch=LeaderEpoch(each["leaderEpoch"]),
            current_leader_epoch=leader_epoch_or_none(each["currentLeaderEpoch"]),
        )
        for topic, each in partitions_of(body["topics"], "topic")
    ]
    replica_id = body["replicaId"]
    core_request = messages.OffsetForLeaderEpochRequest(
        partitions=tuple(positions), replica_id=None if replica_id < 0 else BrokerId(replica_id)
    )
    response = (await served.core.ask(core_request)).response
    assert isinstance(response, messages.OffsetForLeaderEpochResponse), (
        "an OffsetForLeaderEpoch request has this response"
    )
    ends = (
        {
            "errorCode": result.error,
            "partition": result.partition,
            "leaderEpoch": number_of(result.leader_epoch),
            "endOffset": number_of(result.end_offset),
        }
        for result in response.partitions
    )
    return {"topics": in_topics(body["topics"], ends, "topic")}


async def delete_records(served: Served, request: ClientRequest) -> Message:
    """Answers DeleteRecords."""
    body = request.body
    targets: dict[tuple[str, int], messages.DeleteRecordsTarget] = {}
    answers: dict[tuple[str, int], Message] = {}
    entries = [((topic, each["partitionIndex"]), each) for topic, each in partitions_of(body["topics"])]
    for place, each in entries:
        if place[0] in INTERNAL_TOPICS:
            answers[place] = _no_watermark(place[1], ErrorCode.INVALID_TOPIC_EXCEPTION)
        elif each["offset"] < -1:
            answers[place] = _no_watermark(place[1], ErrorCode.OFFSET_OUT_OF_RANGE)
        else:
            targets[place] = messages.DeleteRecordsTarget(
                topic=place[0], partition=place[1], offset=offset_or_none(each["offset"])
            )
    if targets:
        core_request = messages.DeleteRecordsRequest(partitions=tuple(targets.values()), timeout_ms=body["timeoutMs"])
        served.note(request, core_request, to=served.broker_id)
        response = (await served.core.ask(core_request)).response
        assert isinstance(response, messages.DeleteRecordsResponse), "a DeleteRecords request has this response"
        for place, result in zip(targets, response.partitions, strict=True):
            answers[place] = {
                "partitionIndex": place[1],
                "lowWatermark": number_of(result.low_watermark),
                "errorCode": result.error,
            }
    topics = by_topic((place[0], answer) for place, answer in answers.items())
    return {"topics": [{"name": topic, "partitions": partitions} for topic, partitions in topics.items()]}


def _no_watermark(partition: int, error: ErrorCode) -> Message:
    return {"partitionIndex": partition, "lowWatermark": -1, "errorCode": error}
