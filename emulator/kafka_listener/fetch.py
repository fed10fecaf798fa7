"""Fetch: the request goes to the core, and record batches are sent to the client as they are on disk."""

from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.acls import CLUSTER, AclOperation, Resource, ResourceType
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, IsolationLevel, NodeId, Offset, TopicId
from laststand.emulator.kafka.numbers import NONE, leader_epoch_or_none, number_of
from laststand.emulator.kafka_listener.client_history import Polled
from laststand.emulator.kafka_listener.fetch_sessions import Place
from laststand.emulator.kafka_listener.messages import Message
from laststand.emulator.kafka_listener.requests import ClientRequest, Served
from laststand.emulator.kafka_listener.topic_entries import by_topic
from laststand.emulator.rpc.data_codec import Attachment

_RACK_VERSION: Final = 11
_HINT_VERSION: Final = 16
_BY_ID_VERSION: Final = 13
_UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_CONSUMERS: Final = (NONE, messages.DEBUGGING_CONSUMER)
"""Replica ids of clients."""

_MAX_BYTES: Final = 55 << 20
"""``fetch.max.bytes`` of a broker."""


async def fetch(served: Served, request: ClientRequest) -> Message:
    """Answers a request."""
    is_by_id = request.version >= _BY_ID_VERSION
    if request.isolation_level is None:
        return _failed_request(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    resolved = served.fetch_sessions.resolve(request.body, is_by_id=is_by_id)
    if resolved.error:
        return {"errorCode": resolved.error}
    answers: dict[Place, Message] = {}
    asked: dict[Place, messages.FetchPartition] = {}
    for place, partition in resolved.partitions.items():
        topic, index = place
        name = served.broker.image.topic_names.get(TopicId(topic)) if is_by_id else topic
        if name is None:
            answers[place] = _failed(index, ErrorCode.UNKNOWN_TOPIC_ID)
        elif not _may_fetch(served, request, name):
            answers[place] = _failed(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif request.body["maxBytes"] < 0 or partition["partitionMaxBytes"] < 0:
            answers[place] = _failed(index, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            asked[place] = _asked(name, served.broker.image.topics.get(name), partition)
    leaders: set[int] = set()
    # A partition that fails here ends the wait of all, as an error of the core does.
    core_request = _core_request(
        request,
        request.isolation_level,
        tuple(asked.values()),
        waits=not answers,
        max_bytes=_max_bytes(served, request),
    )
    response, attachments = await served.core.ask(core_request)
    assert isinstance(response, messages.FetchResponse), "a fetch request has this response"
    throttle_ms = _throttle_ms(
        served, request, sum(each.span.size for each in response.partitions if each.span is not None)
    )
    if throttle_ms:
        request.connection.mute(throttle_ms)
        return {"throttleTimeMs": throttle_ms, "sessionId": served.fetch_sessions.without_answer(resolved)}
    is_committed = core_request.isolation_level is IsolationLevel.READ_COMMITTED
    polls: list[Polled] = []
    for (place, entry), answer, records in zip(asked.items(), response.partitions, attachments, strict=True):
        given = records if answer.span is None else records[: answer.span.size]
        if len(given) and core_request.replica_id is None:
            polls.append(Polled(entry, answer, given))
        answers[place] = _answer(answer, given, is_committed=is_committed)
        if request.version >= _HINT_VERSION and answer.current_leader is not None:
            hint = {"leaderId": answer.current_leader, "leaderEpoch": answer.current_leader_epoch}
            answers[place]["currentLeader"] = hint
            if core_request.replica_id is None:
                leaders.add(answer.current_leader)
    served.history.add_polls(request.connection, polls)
    topics = by_topic(
        (place[0], answers[place]) for place in resolved.partitions if resolved.is_sent(place, answers[place])
    )
    return {
        "sessionId": resolved.session_id,
        "responses": [
            {"topic": topic, "topicId": topic, "partitions": partitions} for topic, partitions in topics.items()
        ],
        "nodeEndpoints": served.node_endpoints(leaders),
    }


def _max_bytes(served: Served, request: ClientRequest) -> int:
    """Returns the bytes that an answer may have: no more than the client's quota allows within a window."""
    most: int = min(request.body["maxBytes"], _MAX_BYTES)
    allowed = served.fetched.max_bytes(served.broker.image.client_quotas, request.connection)
    return most if allowed is None else min(most, allowed)


def _throttle_ms(served: Served, request: ClientRequest, size: int) -> int:
    """Returns how long a consumer has to wait before it gets bytes; 0 if it may have them at once."""
    if _replica_id(request.body) not in _CONSUMERS:
        return 0
    return served.fetched.record_unless_exceeded(served.broker.image.client_quotas, request.connection, size)


def _replica_id(body: Message) -> int:
    replica_id: int = (body["replicaState"] or body)["replicaId"]
    return replica_id


def _may_fetch(served: Served, request: ClientRequest, topic: str) -> bool:
    if _replica_id(request.body) in _CONSUMERS:
        return served.may(request, AclOperation.READ, Resource(ResourceType.TOPIC, topic))
    return served.may(request, AclOperation.CLUSTER_ACTION, CLUSTER)


def _asked(topic: str, topic_id: TopicId | None, partition: Message) -> messages.FetchPartition:
    return messages.FetchPartition(
        topic=topic,
        topic_id=topic_id,
        partition=partition["partition"],
        fetch_offset=Offset(partition["fetchOffset"]),
        current_leader_epoch=leader_epoch_or_none(partition["currentLeaderEpoch"]),
        last_fetched_epoch=leader_epoch_or_none(partition["lastFetchedEpoch"]),
        partition_max_bytes=partition["partitionMaxBytes"],
    )


def _core_request(
    request: ClientRequest,
    isolation_level: IsolationLevel,
    partitions: tuple[messages.FetchPartition, ...],
    *,
    waits: bool,
    max_bytes: int,
) -> messages.FetchRequest:
    body = request.body
    replica_id = _replica_id(body)
    return messages.FetchRequest(
        partitions=partitions,
        replica_id=None if replica_id in _CONSUMERS else BrokerId(NodeId(replica_id)),
        max_wait_ms=body["maxWaitMs"] if waits else 0,
        min_bytes=min(body["minBytes"], max_bytes),
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        client_rack=body["rackId"] if request.version >= _RACK_VERSION else None,
        is_cut_allowed=True,
    )


def _failed_request(request: ClientRequest, error: ErrorCode) -> Message:
    """Returns a response with an error for all partitions; in versions with topic ids it names none of them."""
    listed = [
        {
            **topic,
            "partitions": [
                {**_failed(each["partition"], error), "abortedTransactions": []} for each in topic["partitions"]
            ],
        }
        for topic in request.body["topics"]
    ]
    return {"errorCode": error, "responses": [] if request.version >= _BY_ID_VERSION else listed}


def _failed(partition: int, error: ErrorCode) -> Message:
    return {
        "partitionIndex": partition,
        "errorCode": error,
        "highWatermark": -1,
        "lastStableOffset": -1,
        "logStartOffset": -1,
        "abortedTransactions": [] if error in _UNKNOWN else None,
        "preferredReadReplica": -1,
        "records": b"",
    }


def _answer(answer: messages.FetchPartitionResponse, records: Attachment, *, is_committed: bool) -> Message:
    if answer.error is not ErrorCode.NONE:
        return _failed(answer.partition, answer.error)
    high_watermark = number_of(answer.high_watermark)
    aborted = [
        {"producerId": each.producer_id, "firstOffset": each.first_offset} for each in answer.aborted_transactions
    ]
    is_held = answer.last_stable_offset is not None
    fields: Message = {
        "partitionIndex": answer.partition,
        "errorCode": ErrorCode.NONE,
        "highWatermark": high_watermark,
        "lastStableOffset": answer.last_stable_offset if is_held else high_watermark,
        "logStartOffset": number_of(answer.log_start_offset),
        "abortedTransactions": aborted if is_committed else None,
        "preferredReadReplica": number_of(answer.preferred_read_replica),
        "records": records,
    }
    if answer.diverging_epoch is not None:
        fields["divergingEpoch"] = {"epoch": answer.diverging_epoch, "endOffset": answer.diverging_end_offset}
    return fields
