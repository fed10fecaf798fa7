"""Produce: batches to the core, outcomes to the client."""

import asyncio
import time
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.acls import AclOperation, Resource, ResourceType
from laststand.emulator.core.batch import BatchDescriptor, InvalidBatch
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.topic_names import INTERNAL_TOPICS
from laststand.emulator.core.types import Acks, TopicPartition
from laststand.emulator.kafka.numbers import number_of
from laststand.emulator.kafka_listener.client_history import Sent
from laststand.emulator.kafka_listener.connection import RefusedError
from laststand.emulator.kafka_listener.messages import Message
from laststand.emulator.kafka_listener.produced_batch import (
    ProducedBatch,
    framing_problem,
    is_transactional,
    validated,
)
from laststand.emulator.kafka_listener.requests import ClientRequest, Served
from laststand.emulator.kafka_listener.topic_entries import by_topic

_HINT_VERSION: Final = 10
_ABORTABLE_VERSION: Final = 11
"""Version from which a producer knows TRANSACTION_ABORTABLE (KIP-890)."""

_ADDING_VERSION: Final = 12
"""Version from which leaders add partitions to a producer's transaction (KIP-890)."""

_BY_ID_VERSION: Final = 13
_WITHOUT_LOG_START: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""Errors beside which Kafka does not say where the log starts (``ReplicaManager.appendToLocalLog``)."""

_ACKS: Final = frozenset(Acks)
_NO_OFFSET: Final = {"baseOffset": -1, "logAppendTimeMs": -1, "logStartOffset": -1}

_Place = tuple[str, int]
"""A topic, by name or id as the request has it, and a partition."""


async def produce(served: Served, request: ClientRequest) -> Message | None:
    """Answers a request; ``None`` with acks=0, where a failure closes the connection."""
    body, connection = request.body, request.connection
    answers: dict[_Place, Message] = {}
    asked: dict[_Place, _Asked] = {}
    has_transaction = _has_transaction(body)
    now_ms = time.time_ns() // 1_000_000
    for place, name, partition in _entries(served, request):
        index, records = place[1], partition["records"] or b""
        if name is None:
            answers[place] = {**_NO_OFFSET, "index": index, "errorCode": ErrorCode.UNKNOWN_TOPIC_ID}
            continue
        topic_partition = TopicPartition(name, index)
        problem = _problem(
            served,
            request,
            topic_partition,
            records,
            lacks_transactional_id=has_transaction and not _may_use(served, request, body["transactionalId"]),
        )
        if problem is not None:
            error, message = problem
            answers[place] = {**_NO_OFFSET, "index": index, "errorCode": error, "errorMessage": message}
            continue
        batch = validated(records, topic_partition, served.broker.topic_properties(name), now_ms=now_ms)
        entry = messages.ProducePartition(topic=name, partition=index, batch=batch.header)
        asked[place] = _Asked(entry, batch)
    sent = _on_record(served, request, asked.values())
    core_request = messages.ProduceRequest(
        acks=body["acks"],
        timeout_ms=body["timeoutMs"],
        partitions=tuple([_with_cause(each.entry, sent) for each in asked.values()]),
        transactional_id=body["transactionalId"] if has_transaction else None,
        transaction_version=2 if request.version >= _ADDING_VERSION else 0,
        knows_abortable=request.version >= _ABORTABLE_VERSION,
    )
    records = tuple([each.batch.records for each in asked.values()])
    throttle_ms = served.produced.record(served.broker.image.client_quotas, connection, request.size)
    if body["acks"] == Acks.NONE:
        connection.mute(throttle_ms)
        if asked:
            served.core.append_without_answer(core_request, records, on_failure=connection.close)
        served.history.complete_unanswered(connection, sent.values())
        if answers:
            connection.close()
        return None
    answered: Iterable[messages.ProducePartitionResponse] = ()
    if asked:
        try:
            response, _ = await served.core.ask(core_request, records)
        except (asyncio.CancelledError, RefusedError):
            served.history.complete(connection, sent, {}, is_written=False)
            raise
        assert isinstance(response, messages.ProduceResponse), "a produce request has this response"
        answered = response.partitions
    outcomes: dict[TopicPartition, messages.ProducePartitionResponse] = {}
    leaders: set[int] = set()
    for (place, each), outcome in zip(asked.items(), answered, strict=True):
        outcomes[outcome.topic_partition] = outcome
        _note_earlier_time(sent, each.batch, outcome)
        answers[place] = _outcome(outcome, each.batch, version=request.version)
        if request.version >= _HINT_VERSION and outcome.current_leader is not None:
            leaders.add(outcome.current_leader)
    if sent:
        connection.when_written(
            lambda is_written: served.history.complete(connection, sent, outcomes, is_written=is_written)
        )
    topics = by_topic((topic, answer) for (topic, _), answer in answers.items())
    connection.mute(throttle_ms)
    return {
        "throttleTimeMs": throttle_ms,
        "responses": [
            {"name": topic, "topicId": topic, "partitionResponses": partitions} for topic, partitions in topics.items()
        ],
        "nodeEndpoints": served.node_endpoints(leaders),
    }


class _Asked(NamedTuple):
    entry: messages.ProducePartition
    batch: ProducedBatch


def _entries(served: Served, request: ClientRequest) -> Iterable[tuple[_Place, str | None, Message]]:
    """Returns the partitions of a request; if one occurs twice, the last entry, as in Kafka."""
    entries: dict[_Place, tuple[_Place, str | None, Message]] = {}
    for topic in request.body["topicData"]:
        name = served.topic_name(topic)
        for partition in topic["partitionData"]:
            place = topic["topicId"] if request.version >= _BY_ID_VERSION else topic["name"], partition["index"]
            entries[place] = place, name, partition
    return entries.values()


def _has_transaction(body: Message) -> bool:
    """Returns whether a request has batches of a transaction."""
    batches = (partition["records"] for topic in body["topicData"] for partition in topic["partitionData"])
    return any(records and is_transactional(records) for records in batches)


def _may_use(served: Served, request: ClientRequest, transactional_id: str | None) -> bool:
    """Returns whether a request may have batches of a transaction."""
    return transactional_id is not None and served.may(
        request, AclOperation.WRITE, Resource(ResourceType.TRANSACTIONAL_ID, transactional_id)
    )


def _problem(
    served: Served, request: ClientRequest, partition: TopicPartition, records: bytes, *, lacks_transactional_id: bool
) -> tuple[int, str | None] | None:
    """Returns the error, and the message with it, of a batch that Kafka refuses before it looks up the leader."""
    if lacks_transactional_id:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None
    if not served.may(request, AclOperation.WRITE, Resource(ResourceType.TOPIC, partition.topic)):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
    is_internal = partition.topic in INTERNAL_TOPICS
    if partition not in served.broker.image.partitions and not is_internal:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    problem = framing_problem(records, version=request.version)
    if problem is not None:
        return problem
    if request.body["acks"] not in _ACKS:
        return ErrorCode.INVALID_REQUIRED_ACKS, None
    return (ErrorCode.INVALID_TOPIC_EXCEPTION, None) if is_internal else None


def _on_record(served: Served, request: ClientRequest, asked: Collection[_Asked]) -> dict[TopicPartition, Sent]:
    """Records the batches of a request before the core gets them."""
    topics = served.broker.image.topics
    batches = [
        (each.entry.topic_partition, topics.get(each.entry.topic), each.entry.batch)
        for each in asked
        if isinstance(each.entry.batch, BatchDescriptor)
    ]
    if not batches:
        return {}
    records = {each.entry.topic_partition: each.batch.records for each in asked}
    return served.history.invoke(request.connection, batches, Acks(request.body["acks"]), records=records)


def _with_cause(entry: messages.ProducePartition, sent: dict[TopicPartition, Sent]) -> messages.ProducePartition:
    """Gives a batch the cause id of its recorded operation, if there is one."""
    operation = sent.get(entry.topic_partition)
    return entry if operation is None else msgspec.structs.replace(entry, cause_id=operation.operation_id)


def _note_earlier_time(
    sent: dict[TopicPartition, Sent], batch: ProducedBatch, outcome: messages.ProducePartitionResponse
) -> None:
    """Gives a repeated batch in the history the time that was stamped into it when it was appended."""
    earlier_ms = outcome.duplicate_timestamp_ms
    if batch.append_time_ms is not None and earlier_ms is not None:
        header = batch.stamped(earlier_ms).header
        assert isinstance(header, BatchDescriptor), "a time changes nothing but times and the CRC"
        sent[outcome.topic_partition] = sent[outcome.topic_partition]._replace(batch=header)


def _outcome(outcome: messages.ProducePartitionResponse, batch: ProducedBatch, *, version: int) -> Message:
    append_time_ms = outcome.duplicate_timestamp_ms
    if append_time_ms is None and outcome.error is ErrorCode.NONE:
        append_time_ms = batch.append_time_ms
    has_log_start = outcome.error not in _WITHOUT_LOG_START
    answer: Message = {
        "index": outcome.partition,
        "errorCode": outcome.error,
        "baseOffset": number_of(outcome.base_offset),
        "logAppendTimeMs": number_of(append_time_ms),
        "logStartOffset": number_of(outcome.log_start_offset) if has_log_start else -1,
    }
    if batch.record_errors and isinstance(batch.header, InvalidBatch) and outcome.error is batch.header.error:
        answer["errorMessage"] = batch.header.reason
        answer["recordErrors"] = [
            {"batchIndex": each.batch_index, "batchIndexErrorMessage": each.message} for each in batch.record_errors
        ]
    if version >= _HINT_VERSION and outcome.current_leader is not None:
        answer["currentLeader"] = {"leaderId": outcome.current_leader, "leaderEpoch": outcome.current_leader_epoch}
    return answer
