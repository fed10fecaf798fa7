"""Requests of transactional producers and of readers for groups: the coordinator's, and those about positions.

The versions of requests show transaction version 2 (KIP-890): a client that has it sends Produce 12, EndTxn 5 and
TxnOffsetCommit 5.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from kio.schema.add_partitions_to_txn.v3 import request as add_partitions
from kio.schema.add_partitions_to_txn.v3 import response as partitions_added
from kio.schema.end_txn.v4 import request as end_version_1
from kio.schema.end_txn.v4 import response as ended_version_1
from kio.schema.end_txn.v5 import request as end_version_2
from kio.schema.end_txn.v5 import response as ended_version_2
from kio.schema.init_producer_id.v4 import request as init_producer_id
from kio.schema.init_producer_id.v4 import response as producer_id_given
from kio.schema.offset_commit.v8 import request as offset_commit
from kio.schema.offset_commit.v8 import response as offset_committed
from kio.schema.offset_fetch.v7 import request as offset_fetch
from kio.schema.offset_fetch.v7 import response as offset_fetched
from kio.schema.txn_offset_commit.v3 import request as commit_version_1
from kio.schema.txn_offset_commit.v3 import response as committed_version_1
from kio.schema.txn_offset_commit.v5 import request as commit_version_2
from kio.schema.txn_offset_commit.v5 import response as committed_version_2
from kio.schema.types import GroupId, TransactionalId
from kio.schema.types import ProducerId as KafkaProducerId
from kio.static.primitive import i16, i32, i64
from kio.static.protocol import Entity

from laststand.emulator.core import messages
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import (
    CommittedOffset,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from laststand.emulator.core.transaction_messages import (
    AddPartitions,
    AddPartitionsOutcome,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitTransactionRequest,
    InitTransactionResponse,
)
from laststand.emulator.core.types import ProducerEpoch, ProducerId, TopicPartition
from laststand.emulator.kafka.calls import Call, call_of, error_of, to_epoch, to_milliseconds, to_name
from laststand.emulator.kafka.numbers import NONE, leader_epoch_or_none, number_of

TopicT = TypeVar("TopicT")


def init_transaction_call(request: InitTransactionRequest) -> Call:
    """Returns the call of InitTransactionRequest: an InitProducerId with a transactional id."""
    return call_of(
        init_producer_id.InitProducerIdRequest(
            transactional_id=TransactionalId(request.transactional_id),
            transaction_timeout=to_milliseconds(request.timeout_ms),
            producer_id=KafkaProducerId(number_of(request.producer_id)),
            producer_epoch=i16(number_of(request.producer_epoch)),
        ),
        producer_id_given.InitProducerIdResponse,
        _session,
    )


def _session(given: producer_id_given.InitProducerIdResponse) -> messages.Response:
    return InitTransactionResponse(
        error=error_of(given.error_code),
        producer_id=ProducerId(given.producer_id),
        producer_epoch=ProducerEpoch(given.producer_epoch),
    )


def add_partitions_call(request: AddPartitionsToTxnRequest) -> Call:
    """Returns the call of a producer's AddPartitionsToTxnRequest, which is about one transaction."""
    (asked,) = request.transactions
    topics = sorted({partition.topic for partition in asked.partitions})
    return call_of(
        add_partitions.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TransactionalId(asked.transactional_id),
            v3_and_below_producer_id=KafkaProducerId(asked.producer_id),
            v3_and_below_producer_epoch=i16(asked.producer_epoch),
            v3_and_below_topics=tuple(
                add_partitions.AddPartitionsToTxnTopic(
                    name=to_name(topic),
                    partitions=tuple(i32(each.partition) for each in asked.partitions if each.topic == topic),
                )
                for topic in topics
            ),
        ),
        partitions_added.AddPartitionsToTxnResponse,
        _added(asked),
    )


def _added(asked: AddPartitions) -> Callable[[partitions_added.AddPartitionsToTxnResponse], messages.Response]:
    def decode(response: partitions_added.AddPartitionsToTxnResponse) -> messages.Response:
        errors = {
            TopicPartition(topic.name, each.partition_index): error_of(each.partition_error_code)
            for topic in response.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        }
        outcome = AddPartitionsOutcome(errors=tuple(errors[partition] for partition in asked.partitions))
        return AddPartitionsToTxnResponse(transactions=(outcome,))

    return decode


_TxnEnded: TypeAlias = ended_version_1.EndTxnResponse | ended_version_2.EndTxnResponse


def end_txn_call(request: EndTxnRequest) -> Call:
    """Returns the call of EndTxnRequest, in the version that shows the transaction version."""
    is_version_2 = request.client_version == 2
    schema = end_version_2.EndTxnRequest if is_version_2 else end_version_1.EndTxnRequest
    answer: type[_TxnEnded] = ended_version_2.EndTxnResponse if is_version_2 else ended_version_1.EndTxnResponse
    return call_of(
        schema(
            transactional_id=TransactionalId(request.transactional_id),
            producer_id=KafkaProducerId(request.producer_id),
            producer_epoch=i16(request.producer_epoch),
            committed=request.result is TransactionResult.COMMIT,
        ),
        answer,
        _ended,
    )


def _ended(response: _TxnEnded) -> messages.Response:
    error = error_of(response.error_code)
    if isinstance(response, ended_version_1.EndTxnResponse):
        return EndTxnResponse(error=error)
    return EndTxnResponse(
        error=error,
        producer_id=ProducerId(response.producer_id),
        producer_epoch=ProducerEpoch(response.producer_epoch),
    )


def offset_commit_call(request: OffsetCommitRequest) -> Call:
    """Returns the call of OffsetCommitRequest; of a transaction's it is a TxnOffsetCommit."""
    if request.producer is None:
        return call_of(
            offset_commit.OffsetCommitRequest(
                group_id=GroupId(request.group_id),
                generation_id_or_member_epoch=i32(request.generation_id),
                member_id=request.member_id,
                group_instance_id=request.instance_id,
                topics=_topics(
                    offset_commit.OffsetCommitRequestTopic,
                    offset_commit.OffsetCommitRequestPartition,
                    request.offsets,
                ),
            ),
            offset_committed.OffsetCommitResponse,
            _committed(request.offsets),
        )
    schema = commit_version_2 if request.adds_partition else commit_version_1
    topics = _topics(schema.TxnOffsetCommitRequestTopic, schema.TxnOffsetCommitRequestPartition, request.offsets)
    answer = committed_version_2 if request.adds_partition else committed_version_1
    return call_of(
        schema.TxnOffsetCommitRequest(
            transactional_id=TransactionalId(request.transactional_id),
            group_id=GroupId(request.group_id),
            producer_id=KafkaProducerId(request.producer.producer_id),
            producer_epoch=i16(request.producer.producer_epoch),
            generation_id=i32(request.generation_id),
            member_id=request.member_id,
            group_instance_id=request.instance_id,
            topics=topics,
        ),
        answer.TxnOffsetCommitResponse,
        _committed(request.offsets),
    )


def _topics(
    topic: Callable[..., TopicT], partition: Callable[..., Entity], offsets: Sequence[CommittedOffset]
) -> tuple[TopicT, ...]:
    """Returns the topics of a request that commits offsets, in the types of its schema."""
    return tuple(
        topic(
            name=to_name(each.partition.topic),
            partitions=(
                partition(
                    partition_index=i32(each.partition.partition),
                    committed_offset=i64(each.offset),
                    committed_leader_epoch=to_epoch(each.leader_epoch),
                    committed_metadata=each.metadata,
                ),
            ),
        )
        for each in offsets
    )


_OffsetsCommitted: TypeAlias = (
    offset_committed.OffsetCommitResponse
    | committed_version_1.TxnOffsetCommitResponse
    | committed_version_2.TxnOffsetCommitResponse
)


def _committed(asked: Sequence[CommittedOffset]) -> Callable[[_OffsetsCommitted], messages.Response]:
    def decode(response: _OffsetsCommitted) -> messages.Response:
        errors = {
            TopicPartition(topic.name, each.partition_index): error_of(each.error_code)
            for topic in response.topics
            for each in topic.partitions
        }
        return OffsetCommitResponse(errors=tuple(errors[each.partition] for each in asked))

    return decode


def offset_fetch_call(request: OffsetFetchRequest) -> Call:
    """Returns the call of OffsetFetchRequest."""
    partitions = request.partitions or ()
    topics = tuple(
        offset_fetch.OffsetFetchRequestTopic(
            name=to_name(topic),
            partition_indexes=tuple(i32(each.partition) for each in partitions if each.topic == topic),
        )
        for topic in sorted({partition.topic for partition in partitions})
    )
    return call_of(
        offset_fetch.OffsetFetchRequest(
            group_id=GroupId(request.group_id),
            topics=None if request.partitions is None else topics,
            require_stable=request.require_stable,
        ),
        offset_fetched.OffsetFetchResponse,
        _positions,
    )


def _positions(response: offset_fetched.OffsetFetchResponse) -> messages.Response:
    found = [
        (TopicPartition(topic.name, each.partition_index), each, error_of(each.error_code))
        for topic in response.topics
        for each in topic.partitions
    ]
    offsets = tuple(
        CommittedOffset(
            partition=partition,
            offset=each.committed_offset,
            leader_epoch=leader_epoch_or_none(each.committed_leader_epoch),
            metadata=each.metadata or "",
        )
        for partition, each, error in found
        if error is ErrorCode.NONE and each.committed_offset != NONE
    )
    unstable = tuple(partition for partition, _, error in found if error is ErrorCode.UNSTABLE_OFFSET_COMMIT)
    other = _first_error(error for _, _, error in found if error is not ErrorCode.UNSTABLE_OFFSET_COMMIT)
    error = error_of(response.error_code) or other
    return OffsetFetchResponse(error=error, offsets=offsets, unstable=unstable)


def _first_error(errors: Iterable[ErrorCode]) -> ErrorCode:
    return next((error for error in errors if error is not ErrorCode.NONE), ErrorCode.NONE)
