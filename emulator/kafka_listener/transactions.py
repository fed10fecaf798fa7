"""Transactions: requests of producers and administrators to coordinators, and of coordinators to leaders."""

from collections.abc import Iterable, Mapping
from typing import Final

from laststand.emulator.core import group_messages, messages, transaction_messages
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.coordinator_partitions import partition_of
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.transaction_records import TransactionState
from laststand.emulator.core.types import ProducerEpoch, ProducerId, ProducerIdentity, TopicPartition
from laststand.emulator.kafka_listener.group_offsets import commit_offsets
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served
from laststand.emulator.kafka_listener.topic_entries import by_topic

_BATCHED_VERSION: Final = 4
"""Version of AddPartitionsToTxn from which it is about several transactions, and sent by brokers."""

_FENCED_VERSION: Final = 2
_FENCED_INIT_VERSION: Final = 4
"""Versions from which clients know PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before (KIP-588)."""

_EPOCH_VERSION: Final = 5
"""Version of EndTxn and TxnOffsetCommit from which a client's epoch rises with each transaction (KIP-890)."""

_DURATION_VERSION: Final = 1
_STATES: Final = frozenset(state.title for state in TransactionState)


def _known_to_client(error: ErrorCode, *, knows_fenced: bool) -> ErrorCode:
    is_unknown = error is ErrorCode.PRODUCER_FENCED and not knows_fenced
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_unknown else error


async def init_producer_id(served: Served, request: ClientRequest) -> Message:
    """Answers InitProducerId: without a transactional id a new producer id each time, as Kafka does."""
    body = request.body
    transactional_id = body["transactionalId"]
    if transactional_id == "" or (body["producerId"] < 0) is not (body["producerEpoch"] < 0):
        return {"errorCode": ErrorCode.INVALID_REQUEST, "producerEpoch": -1}
    if transactional_id is None:
        plain = (await served.core.ask(messages.InitProducerIdRequest())).response
        assert isinstance(plain, messages.InitProducerIdResponse), "an InitProducerId request has this response"
        return {"errorCode": plain.error, "producerId": plain.producer_id, "producerEpoch": plain.producer_epoch}
    has_producer = body["producerId"] >= 0
    asked = transaction_messages.InitTransactionRequest(
        transactional_id=transactional_id,
        timeout_ms=body["transactionTimeoutMs"],
        producer_id=ProducerId(body["producerId"]) if has_producer else None,
        producer_epoch=ProducerEpoch(body["producerEpoch"]) if has_producer else None,
    )
    response = await served.ask(asked, transaction_messages.InitTransactionResponse)
    return {
        "errorCode": _known_to_client(response.error, knows_fenced=request.version >= _FENCED_INIT_VERSION),
        "producerId": response.producer_id,
        "producerEpoch": response.producer_epoch,
    }


async def _added(served: Served, asked: transaction_messages.AddPartitions) -> tuple[ErrorCode, ...]:
    partitions = served.broker.image.partitions
    unknown = [name not in partitions for name in asked.partitions]
    if any(unknown):
        return tuple(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if each else ErrorCode.OPERATION_NOT_ATTEMPTED for each in unknown
        )
    request = transaction_messages.AddPartitionsToTxnRequest(transactions=(asked,))
    response = await served.ask(request, transaction_messages.AddPartitionsToTxnResponse)
    return response.transactions[0].errors


def _names(topics: Iterable[Message], partitions: str = "partitions") -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic["name"], index) for topic in topics for index in topic[partitions])


def _results(names: Iterable[TopicPartition], errors: Iterable[ErrorCode]) -> list[Message]:
    topics = by_topic(
        (name.topic, {"partitionIndex": name.partition, "partitionErrorCode": error})
        for name, error in zip(names, errors, strict=True)
    )
    return [{"name": topic, "resultsByPartition": partitions} for topic, partitions in topics.items()]


async def _add_partitions(served: Served, request: ClientRequest) -> Message:
    body = request.body
    if request.version < _BATCHED_VERSION:
        names = _names(body["v3AndBelowTopics"])
        asked = transaction_messages.AddPartitions(
            transactional_id=body["v3AndBelowTransactionalId"],
            producer_id=ProducerId(body["v3AndBelowProducerId"]),
            producer_epoch=ProducerEpoch(body["v3AndBelowProducerEpoch"]),
            partitions=names,
        )
        is_new = request.version >= _FENCED_VERSION
        errors = [_known_to_client(error, knows_fenced=is_new) for error in await _added(served, asked)]
        return {"resultsByTopicV3AndBelow": _results(names, errors)}
    results = []
    for each in body["transactions"]:
        names = _names(each["topics"])
        asked = transaction_messages.AddPartitions(
            transactional_id=each["transactionalId"],
            producer_id=ProducerId(each["producerId"]),
            producer_epoch=ProducerEpoch(each["producerEpoch"]),
            partitions=names,
            is_verify_only=each["verifyOnly"],
            client_version=2,
        )
        found = _results(names, await _added(served, asked))
        results.append({"transactionalId": each["transactionalId"], "topicResults": found})
    return {"errorCode": ErrorCode.NONE, "resultsByTransaction": results}


async def _add_offsets(served: Served, request: ClientRequest) -> Message:
    body = request.body
    count = served.broker.image.partition_counts.get(OFFSETS_TOPIC, 0)
    if not count:
        return {"errorCode": ErrorCode.COORDINATOR_NOT_AVAILABLE}
    asked = transaction_messages.AddPartitions(
        transactional_id=body["transactionalId"],
        producer_id=ProducerId(body["producerId"]),
        producer_epoch=ProducerEpoch(body["producerEpoch"]),
        partitions=(partition_of(body["groupId"], OFFSETS_TOPIC, count),),
    )
    (error,) = await _added(served, asked)
    return {"errorCode": _known_to_client(error, knows_fenced=request.version >= _FENCED_VERSION)}


async def _end_transaction(served: Served, request: ClientRequest) -> Message:
    body = request.body
    asked = transaction_messages.EndTxnRequest(
        transactional_id=body["transactionalId"],
        producer_id=ProducerId(body["producerId"]),
        producer_epoch=ProducerEpoch(body["producerEpoch"]),
        result=TransactionResult.COMMIT if body["committed"] else TransactionResult.ABORT,
        client_version=2 if request.version >= _EPOCH_VERSION else 0,
    )
    response = await served.ask(asked, transaction_messages.EndTxnResponse)
    return {
        "errorCode": _known_to_client(response.error, knows_fenced=request.version >= _FENCED_VERSION),
        "producerId": response.producer_id,
        "producerEpoch": response.producer_epoch,
    }


async def _commit_offsets(served: Served, request: ClientRequest) -> Message:
    body = request.body
    asked = group_messages.OffsetCommitRequest(
        api_version=request.version,
        group_id=body["groupId"],
        member_id=body["memberId"],
        instance_id=body["groupInstanceId"],
        generation_id=body["generationId"],
        offsets=(),
        producer=ProducerIdentity(ProducerId(body["producerId"]), ProducerEpoch(body["producerEpoch"])),
        transactional_id=body["transactionalId"],
        adds_partition=request.version >= _EPOCH_VERSION,
    )
    return await commit_offsets(served, asked, body["topics"])


async def _write_markers(served: Served, request: ClientRequest) -> Message:
    markers = tuple(
        transaction_messages.TransactionMarkers(
            producer_id=ProducerId(each["producerId"]),
            producer_epoch=ProducerEpoch(each["producerEpoch"]),
            result=TransactionResult.COMMIT if each["transactionResult"] else TransactionResult.ABORT,
            coordinator_epoch=each["coordinatorEpoch"],
            raises_epoch=each["transactionVersion"] == 2,
            partitions=_names(each["topics"], "partitionIndexes"),
        )
        for each in request.body["markers"]
    )
    asked = transaction_messages.WriteTxnMarkersRequest(markers=markers)
    response = await served.ask(asked, transaction_messages.WriteTxnMarkersResponse)
    return {
        "markers": [
            {
                "producerId": marker.producer_id,
                "topics": [
                    {"name": topic, "partitions": partitions}
                    for topic, partitions in by_topic(
                        (name.topic, {"partitionIndex": name.partition, "errorCode": error})
                        for name, error in zip(marker.partitions, outcome.errors, strict=True)
                    ).items()
                ],
            }
            for marker, outcome in zip(markers, response.markers, strict=True)
        ]
    }


async def _describe_transactions(served: Served, request: ClientRequest) -> Message:
    states: list[Message] = []
    for transactional_id in request.body["transactionalIds"]:
        asked = transaction_messages.DescribeTransactionRequest(transactional_id=transactional_id)
        found = await served.ask(asked, transaction_messages.DescribeTransactionResponse)
        if found.error is not ErrorCode.NONE:
            states.append({"errorCode": found.error, "transactionalId": transactional_id})
            continue
        topics: dict[str, list[int]] = {}
        for name in found.partitions:
            topics.setdefault(name.topic, []).append(name.partition)
        unseen = served.unseen(request, topics)
        states.append(
            {
                "errorCode": found.error,
                "transactionalId": transactional_id,
                "transactionState": found.state,
                "transactionTimeoutMs": found.timeout_ms,
                "transactionStartTimeMs": -1 if found.start_ms is None else found.start_ms,
                "producerId": found.producer_id,
                "producerEpoch": found.producer_epoch,
                "topics": [
                    {"topic": topic, "partitions": partitions}
                    for topic, partitions in topics.items()
                    if topic not in unseen
                ],
            }
        )
    return {"transactionStates": states}


async def _list_transactions(served: Served, request: ClientRequest) -> Message:
    body = request.body
    response = await served.ask(
        transaction_messages.ListTransactionsRequest(), transaction_messages.ListTransactionsResponse
    )
    states, producers = set(body["stateFilters"]), set(body["producerIdFilters"])
    longer_than_ms = body["durationFilter"] if request.version >= _DURATION_VERSION else -1
    return {
        "errorCode": response.error,
        "unknownStateFilters": sorted(states - _STATES),
        "transactionStates": [
            {
                "transactionalId": each.transactional_id,
                "producerId": each.producer_id,
                "transactionState": each.state,
            }
            for each in response.transactions
            if (not states or each.state in states)
            and (not producers or each.producer_id in producers)
            and (longer_than_ms < 0 or each.duration_ms > longer_than_ms)
        ],
    }


TRANSACTIONS: Final[Mapping[int, Handler]] = {
    api_named(name).key: handler
    for name, handler in (
        ("InitProducerId", init_producer_id),
        ("AddPartitionsToTxn", _add_partitions),
        ("AddOffsetsToTxn", _add_offsets),
        ("EndTxn", _end_transaction),
        ("TxnOffsetCommit", _commit_offsets),
        ("WriteTxnMarkers", _write_markers),
        ("DescribeTransactions", _describe_transactions),
        ("ListTransactions", _list_transactions),
    )
}
