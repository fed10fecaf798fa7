"""Produce: batches to the core, outcomes to the client."""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor, InvalidBatch
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import Acks, TopicPartition
from laststand.emulator.kafka.numbers import number_of
from laststand.emulator.kafka_listener.client_history import Sent
from laststand.emulator.kafka_listener.connection import RefusedError
from laststand.emulator.kafka_listener.messages import Message
from laststand.emulator.kafka_listener.requests import ClientRequest, Served
from laststand.emulator.kafka_listener.topic_names import INTERNAL_TOPICS
from laststand.emulator.kafka_listener.wire_errors import WireError
from laststand.emulator.storage.record_batch import MAGIC as CURRENT_MAGIC
from laststand.emulator.storage.record_batch import PARSE_ANYTHING, parse_batch, parse_produced

_ZSTD_VERSION: Final = 7
_ATTRIBUTES: Final = 22
"""Offset of the byte of a batch whose bits say codec, timestamp type and transaction."""

_MAGIC: Final = 16
_CODEC_BITS: Final = 0x07
_LAST_CODEC: Final = 4
_ZSTD: Final = 4
_TRANSACTIONAL_BIT: Final = 0x10
_HINT_VERSION: Final = 10


_FOUND_BEFORE_APPEND: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.INVALID_REQUIRED_ACKS,
    }
)

_ACKS: Final = frozenset(Acks)
_NO_OFFSET: Final = {"baseOffset": -1, "logAppendTimeMs": -1, "logStartOffset": -1}

_Place = tuple[int, int]
"""Index of a topic in the request, and of a partition in the topic."""


async def produce(served: Served, request: ClientRequest) -> Message | None:
    """Answers a request; ``None`` with acks=0, where a failure closes the connection."""
    body, connection = request.body, request.connection
    answers: dict[_Place, Message] = {}
    asked: dict[_Place, _Asked] = {}
    for place, name, partition in _entries(served, body):
        records = partition["records"] or b""
        error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else _refusal(name, records, request)
        if name is None or error != ErrorCode.NONE:
            answers[place] = {**_NO_OFFSET, "index": partition["index"], "errorCode": error}
        else:
            batch = parse_produced(records, max_message_bytes=PARSE_ANYTHING)
            asked[place] = _Asked(
                messages.ProducePartition(topic=name, partition=partition["index"], batch=batch), records
            )
    acks = body["acks"]
    sent = _on_record(served, request, asked.values()) if acks in _ACKS else {}
    # Each batch is a request of its own: what follows of it has its operation as its cause.
    core_requests = [
        (
            messages.ProduceRequest(acks=acks, timeout_ms=body["timeoutMs"], partitions=(each.entry,)),
            (each.records,),
            sent[each.entry.topic_partition].operation_id if each.entry.topic_partition in sent else None,
        )
        for each in asked.values()
    ]
    if acks == Acks.NONE:
        for core_request, block, cause_id in core_requests:
            served.core.give(core_request, block, cause_id=cause_id, on_failure=connection.close)
        served.history.complete_unanswered(connection, sent.values())
        if answers:
            connection.close()
        return None
    try:
        answered = await asyncio.gather(
            *(
                served.core.ask(core_request, block, cause_id=cause_id)
                for core_request, block, cause_id in core_requests
            )
        )
    except (asyncio.CancelledError, RefusedError):
        served.history.complete(connection, sent, {}, is_written=False)
        raise
    outcomes: dict[TopicPartition, messages.ProducePartitionResponse] = {}
    leaders: set[int] = set()
    for (place, each), (response, _) in zip(asked.items(), answered, strict=True):
        assert isinstance(response, messages.ProduceResponse), "a produce request has this response"
        (outcome,) = response.partitions
        outcomes[outcome.topic_partition] = outcome
        answers[place] = _outcome(outcome, each, version=request.version)
        if request.version >= _HINT_VERSION and outcome.current_leader is not None:
            leaders.add(outcome.current_leader)
    if sent:
        connection.when_written(
            lambda is_written: served.history.complete(connection, sent, outcomes, is_written=is_written)
        )
    return {
        "responses": [
            {
                "name": topic["name"],
                "topicId": topic["topicId"],
                "partitionResponses": [
                    answers[number, index] for index in range(len(topic["partitionData"])) if (number, index) in answers
                ],
            }
            for number, topic in enumerate(body["topicData"])
        ],
        "nodeEndpoints": served.node_endpoints(leaders),
    }


class _Asked(NamedTuple):
    entry: messages.ProducePartition
    records: bytes


def _on_record(served: Served, request: ClientRequest, asked: Iterable[_Asked]) -> dict[TopicPartition, Sent]:
    """Puts the batches of a request on record before the core gets them."""
    topics = served.broker.image.topics
    batches = [
        (each.entry.topic_partition, topics.get(each.entry.topic), each.entry.batch)
        for each in asked
        if isinstance(each.entry.batch, BatchDescriptor)
    ]
    return served.history.invoke(request.connection, batches, Acks(request.body["acks"]))


def _entries(served: Served, body: Message) -> list[tuple[_Place, str | None, Message]]:
    """Returns the partitions of a request; of one that is there twice the last entry, as in Kafka."""
    entries: dict[tuple[str | None, int], tuple[_Place, str | None, Message]] = {}
    for number, topic in enumerate(body["topicData"]):
        name = served.topic_name(topic)
        for index, partition in enumerate(topic["partitionData"]):
            entries[name or topic["topicId"], partition["index"]] = ((number, index), name, partition)
    return [*entries.values()]


def _refusal(topic: str, records: bytes, request: ClientRequest) -> int:
    """Returns the error of a batch that Kafka refuses before its leader looks at it."""
    if topic in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not records:
        return ErrorCode.INVALID_RECORD
    if len(records) > _ATTRIBUTES and records[_MAGIC] == CURRENT_MAGIC:
        attributes = records[_ATTRIBUTES]
        if attributes & _TRANSACTIONAL_BIT:
            is_named = request.body["transactionalId"] is not None
            return (
                WireError.INVALID_PRODUCER_ID_MAPPING if is_named else WireError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            )
        codec = attributes & _CODEC_BITS
        if codec > _LAST_CODEC:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if codec == _ZSTD and request.version < _ZSTD_VERSION:
            return WireError.UNSUPPORTED_COMPRESSION_TYPE
    return ErrorCode.NONE


def _has_log_start(outcome: messages.ProducePartitionResponse, records: bytes) -> bool:
    """Returns whether Kafka says where the log starts: beside errors only where the append itself found them."""
    if outcome.error is ErrorCode.INVALID_RECORD:
        return not isinstance(parse_batch(records, max_message_bytes=PARSE_ANYTHING), InvalidBatch)
    return outcome.error not in _FOUND_BEFORE_APPEND


def _outcome(outcome: messages.ProducePartitionResponse, asked: _Asked, *, version: int) -> Message:
    answer: Message = {
        "index": outcome.partition,
        "errorCode": outcome.error,
        "baseOffset": number_of(outcome.base_offset),
        "logAppendTimeMs": -1,
        "logStartOffset": number_of(outcome.log_start_offset) if _has_log_start(outcome, asked.records) else -1,
    }
    if outcome.error is ErrorCode.CORRUPT_MESSAGE and isinstance(asked.entry.batch, InvalidBatch):
        answer["errorMessage"] = asked.entry.batch.reason
    if version >= _HINT_VERSION and outcome.current_leader is not None:
        answer["currentLeader"] = {"leaderId": outcome.current_leader, "leaderEpoch": outcome.current_leader_epoch}
    return answer
