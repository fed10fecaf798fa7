"""Offsets and producer ids: ListOffsets, OffsetForLeaderEpoch, DeleteRecords, InitProducerId."""

from collections import Counter
from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, IsolationLevel, LeaderEpoch, Offset
from laststand.emulator.kafka_listener.messages import Message
from laststand.emulator.kafka_listener.requests import ClientRequest, Served
from laststand.emulator.kafka_listener.topic_names import INTERNAL_TOPICS
from laststand.emulator.kafka_listener.wire_errors import WireError

_CONSUMER: Final = -1
_FIRST_VERSIONS: Final = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
"""Version of ListOffsets from which each special timestamp may be asked for."""

_EARLIEST: Final = -2
_EARLIEST_LOCAL: Final = -4
_TIERED: Final = (-5, -6)
_OFFSET_NOT_AVAILABLE_VERSION: Final = 5


def _epoch(value: int) -> LeaderEpoch | None:
    return None if value < 0 else LeaderEpoch(value)


async def list_offsets(served: Served, request: ClientRequest) -> Message:
    """Answers ListOffsets."""
    body = request.body
    asked: dict[tuple[str, int], messages.ListOffsetsPosition] = {}
    answers: dict[tuple[str, int], Message] = {}
    counts = Counter(
        (topic["name"], each["partitionIndex"]) for topic in body["topics"] for each in topic["partitions"]
    )
    for topic in body["topics"]:
        for partition in topic["partitions"]:
            place = topic["name"], partition["partitionIndex"]
            timestamp = partition["timestamp"]
            if counts[place] > 1:
                answers[place] = _no_offset(place[1], ErrorCode.INVALID_REQUEST)
            elif timestamp < 0 and _FIRST_VERSIONS.get(timestamp, 1 << 15) > request.version:
                answers[place] = _no_offset(place[1], ErrorCode.UNSUPPORTED_VERSION)
            else:
                asked[place] = messages.ListOffsetsPosition(
                    topic=place[0],
                    partition=place[1],
                    timestamp=_EARLIEST if timestamp == _EARLIEST_LOCAL else timestamp,
                    current_leader_epoch=_epoch(partition["currentLeaderEpoch"]),
                )
    if asked:
        is_committed = body["isolationLevel"] == 1
        replica_id = body["replicaId"]
        core_request = messages.ListOffsetsRequest(
            partitions=tuple(asked.values()),
            replica_id=None if replica_id == _CONSUMER else BrokerId(replica_id),
            isolation_level=IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED,
        )
        response = (await served.core.ask(core_request)).response
        assert isinstance(response, messages.ListOffsetsResponse), "a ListOffsets request has this response"
        for place, found in zip(asked, response.partitions, strict=True):
            error = found.error
            if error is ErrorCode.OFFSET_NOT_AVAILABLE and request.version < _OFFSET_NOT_AVAILABLE_VERSION:
                error = ErrorCode.LEADER_NOT_AVAILABLE
            if error is not ErrorCode.NONE or found.offset is None or asked[place].timestamp in _TIERED:
                answers[place] = _no_offset(place[1], error)
            else:
                answers[place] = {
                    "partitionIndex": place[1],
                    "errorCode": error,
                    "timestamp": -1 if found.timestamp is None else found.timestamp,
                    "offset": found.offset,
                    "leaderEpoch": -1 if found.leader_epoch is None else found.leader_epoch,
                }
    return {
        "topics": [
            {
                "name": topic["name"],
                "partitions": [answers[topic["name"], each["partitionIndex"]] for each in topic["partitions"]],
            }
            for topic in body["topics"]
        ]
    }


def _no_offset(partition: int, error: ErrorCode) -> Message:
    return {"partitionIndex": partition, "errorCode": error, "timestamp": -1, "offset": -1, "leaderEpoch": -1}


async def offset_for_leader_epoch(served: Served, request: ClientRequest) -> Message:
    """Answers OffsetForLeaderEpoch."""
    body = request.body
    positions = [
        messages.EpochPosition(
            topic=topic["topic"],
            partition=each["partition"],
            leader_epoch=LeaderEpoch(each["leaderEpoch"]),
            current_leader_epoch=_epoch(each["currentLeaderEpoch"]),
        )
        for topic in body["topics"]
        for each in topic["partitions"]
    ]
    replica_id = body["replicaId"]
    core_request = messages.OffsetForLeaderEpochRequest(
        partitions=tuple(positions), replica_id=None if replica_id < 0 else BrokerId(replica_id)
    )
    response = (await served.core.ask(core_request)).response
    assert isinstance(response, messages.OffsetForLeaderEpochResponse), (
        "an OffsetForLeaderEpoch request has this response"
    )
    results = iter(response.partitions)
    return {
        "topics": [
            {
                "topic": topic["topic"],
                "partitions": [
                    {
                        "errorCode": result.error,
                        "partition": result.partition,
                        "leaderEpoch": -1 if result.leader_epoch is None else result.leader_epoch,
                        "endOffset": -1 if result.end_offset is None else result.end_offset,
                    }
                    for _, result in zip(topic["partitions"], results, strict=False)
                ],
            }
            for topic in body["topics"]
        ]
    }


async def delete_records(served: Served, request: ClientRequest) -> Message:
    """Answers DeleteRecords."""
    body = request.body
    targets: dict[tuple[str, int], messages.DeleteRecordsTarget] = {}
    answers: dict[tuple[str, int], Message] = {}
    for topic in body["topics"]:
        for each in topic["partitions"]:
            place = topic["name"], each["partitionIndex"]
            if topic["name"] in INTERNAL_TOPICS:
                answers[place] = _no_watermark(place[1], ErrorCode.INVALID_TOPIC_EXCEPTION)
            elif each["offset"] < -1:
                answers[place] = _no_watermark(place[1], ErrorCode.OFFSET_OUT_OF_RANGE)
            else:
                offset = None if each["offset"] < 0 else Offset(each["offset"])
                targets[place] = messages.DeleteRecordsTarget(topic=place[0], partition=place[1], offset=offset)
    if targets:
        core_request = messages.DeleteRecordsRequest(partitions=tuple(targets.values()), timeout_ms=body["timeoutMs"])
        response = (await served.core.ask(core_request)).response
        assert isinstance(response, messages.DeleteRecordsResponse), "a DeleteRecords request has this response"
        for place, result in zip(targets, response.partitions, strict=True):
            answers[place] = {
                "partitionIndex": place[1],
                "lowWatermark": -1 if result.low_watermark is None else result.low_watermark,
                "errorCode": result.error,
            }
    return {
        "topics": [
            {
                "name": topic["name"],
                "partitions": [answers[topic["name"], each["partitionIndex"]] for each in topic["partitions"]],
            }
            for topic in body["topics"]
        ]
    }


def _no_watermark(partition: int, error: ErrorCode) -> Message:
    return {"partitionIndex": partition, "lowWatermark": -1, "errorCode": error}


async def init_producer_id(served: Served, request: ClientRequest) -> Message:
    """Answers InitProducerId: a new id each time, as Kafka does where there is no transactional id."""
    body = request.body
    if body["transactionalId"] == "" or (body["producerId"] < 0) is not (body["producerEpoch"] < 0):
        return {"errorCode": ErrorCode.INVALID_REQUEST, "producerEpoch": -1}
    if body["transactionalId"] is not None:
        return {"errorCode": WireError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "producerEpoch": -1}
    response = (await served.core.ask(messages.InitProducerIdRequest())).response
    assert isinstance(response, messages.InitProducerIdResponse), "an InitProducerId request has this response"
    return {
        "errorCode": response.error,
        "producerId": response.producer_id,
        "producerEpoch": response.producer_epoch,
    }
