"""Requests of transactions and of positions as calls in Kafka's protocol, and what becomes of Kafka's answers."""

import io
from datetime import timedelta
from typing import Final

import pytest
from kio.schema.add_partitions_to_txn.v3 import response as partitions_added
from kio.schema.end_txn.v4 import response as ended_version_1
from kio.schema.end_txn.v5 import response as ended_version_2
from kio.schema.errors import ErrorCode as KafkaError
from kio.schema.init_producer_id.v4 import response as producer_id_given
from kio.schema.offset_commit.v8 import response as offset_committed
from kio.schema.offset_fetch.v7 import response as offset_fetched
from kio.schema.produce.v11 import request as produce_by_name
from kio.schema.produce.v13 import request as produce_by_id
from kio.schema.txn_offset_commit.v3 import response as committed_version_1
from kio.schema.txn_offset_commit.v5 import response as committed_version_2
from kio.schema.types import ProducerId as KafkaProducerId
from kio.schema.types import TopicName
from kio.serial import entity_writer
from kio.static.primitive import i16, i32, i32Timedelta, i64
from kio.static.protocol import Entity

from laststand.emulator.core import messages
from laststand.emulator.core.batch import InvalidBatch, TransactionResult
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
from laststand.emulator.core.types import (
    Acks,
    LeaderEpoch,
    ProducerEpoch,
    ProducerId,
    ProducerIdentity,
    TopicId,
    TopicPartition,
)
from laststand.emulator.kafka.calls import Call
from laststand.emulator.kafka.client_calls import produce_call
from laststand.emulator.kafka.transaction_calls import (
    add_partitions_call,
    end_txn_call,
    init_transaction_call,
    offset_commit_call,
    offset_fetch_call,
)

NO_DELAY: Final = i32Timedelta.parse(timedelta(0))
PRODUCER: Final = ProducerIdentity(ProducerId(7), ProducerEpoch(3))
ORDERS: Final = TopicPartition("orders", 0)
REFUNDS: Final = TopicPartition("refunds", 1)
POSITION: Final = CommittedOffset(partition=ORDERS, offset=5, leader_epoch=LeaderEpoch(2))


def answer(call: Call, entity: Entity) -> messages.Response:
    """Returns what the core gets of an answer, after the request was seen to be one that can be written."""
    entity_writer(type(call.request))(io.BytesIO(), call.request)
    assert isinstance(entity, call.response)
    return call.decode(entity)[0]


def test_a_session_is_an_init_producer_id_with_a_transactional_id() -> None:
    call = init_transaction_call(InitTransactionRequest(transactional_id="t", timeout_ms=1000))
    given = producer_id_given.InitProducerIdResponse(
        throttle_time=NO_DELAY, error_code=KafkaError.none, producer_id=KafkaProducerId(7), producer_epoch=i16(3)
    )
    expected = InitTransactionResponse(
        error=ErrorCode.NONE, producer_id=PRODUCER.producer_id, producer_epoch=PRODUCER.producer_epoch
    )
    assert answer(call, given) == expected


def test_partitions_are_answered_in_the_order_in_which_they_were_asked_for() -> None:
    asked = AddPartitions(
        transactional_id="t", producer_id=ProducerId(7), producer_epoch=ProducerEpoch(3), partitions=(REFUNDS, ORDERS)
    )
    added = partitions_added.AddPartitionsToTxnResponse(
        throttle_time=NO_DELAY,
        results_by_topic_v3_and_below=tuple(
            partitions_added.AddPartitionsToTxnTopicResult(
                name=TopicName(topic),
                results_by_partition=(
                    partitions_added.AddPartitionsToTxnPartitionResult(
                        partition_index=i32(partition), partition_error_code=error
                    ),
                ),
            )
            for topic, partition, error in (
                ("orders", 0, KafkaError.none),
                ("refunds", 1, KafkaError.concurrent_transactions),
            )
        ),
    )
    outcome = AddPartitionsOutcome(errors=(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE))
    call = add_partitions_call(AddPartitionsToTxnRequest(transactions=(asked,)))
    assert answer(call, added) == AddPartitionsToTxnResponse(transactions=(outcome,))


@pytest.mark.parametrize(
    ("version", "ended", "expected"),
    [
        (
            1,
            ended_version_1.EndTxnResponse(throttle_time=NO_DELAY, error_code=KafkaError.none),
            EndTxnResponse(error=ErrorCode.NONE),
        ),
        (
            2,
            ended_version_2.EndTxnResponse(
                throttle_time=NO_DELAY,
                error_code=KafkaError.none,
                producer_id=KafkaProducerId(7),
                producer_epoch=i16(4),
            ),
            EndTxnResponse(error=ErrorCode.NONE, producer_id=ProducerId(7), producer_epoch=ProducerEpoch(4)),
        ),
    ],
)
def test_an_end_brings_the_next_epoch_with_version_2(version: int, ended: Entity, expected: EndTxnResponse) -> None:
    request = EndTxnRequest(
        transactional_id="t",
        producer_id=PRODUCER.producer_id,
        producer_epoch=PRODUCER.producer_epoch,
        result=TransactionResult.COMMIT,
        client_version=version,
    )
    assert answer(end_txn_call(request), ended) == expected


def commit(*, producer: ProducerIdentity | None, adds_partition: bool) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        api_version=9,
        group_id="readers",
        member_id="",
        instance_id=None,
        generation_id=-1,
        offsets=(POSITION,),
        producer=producer,
        transactional_id="t",
        adds_partition=adds_partition,
    )


def test_a_position_is_committed_by_itself_or_in_a_transaction() -> None:
    alone = offset_committed.OffsetCommitResponse(
        throttle_time=NO_DELAY,
        topics=(
            offset_committed.OffsetCommitResponseTopic(
                name=TopicName("orders"),
                partitions=(
                    offset_committed.OffsetCommitResponsePartition(
                        partition_index=i32(0), error_code=KafkaError.not_coordinator
                    ),
                ),
            ),
        ),
    )
    refused = OffsetCommitResponse(errors=(ErrorCode.NOT_COORDINATOR,))
    assert answer(offset_commit_call(commit(producer=None, adds_partition=False)), alone) == refused
    for schema, adds_partition in ((committed_version_1, False), (committed_version_2, True)):
        partition = schema.TxnOffsetCommitResponsePartition(partition_index=i32(0), error_code=KafkaError.none)
        topic = schema.TxnOffsetCommitResponseTopic(name=TopicName("orders"), partitions=(partition,))
        taken = schema.TxnOffsetCommitResponse(throttle_time=NO_DELAY, topics=(topic,))
        call = offset_commit_call(commit(producer=PRODUCER, adds_partition=adds_partition))
        assert answer(call, taken) == OffsetCommitResponse(errors=(ErrorCode.NONE,))


@pytest.mark.parametrize(
    ("offset", "error", "expected"),
    [
        (5, KafkaError.none, OffsetFetchResponse(error=ErrorCode.NONE, offsets=(POSITION,))),
        (-1, KafkaError.none, OffsetFetchResponse(error=ErrorCode.NONE)),
        (-1, KafkaError.unstable_offset_commit, OffsetFetchResponse(error=ErrorCode.NONE, unstable=(ORDERS,))),
        (-1, KafkaError.unknown_topic_or_partition, OffsetFetchResponse(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
    ],
)
def test_a_position_is_returned_or_missing_or_unstable(
    offset: int, error: KafkaError, expected: OffsetFetchResponse
) -> None:
    fetched = offset_fetched.OffsetFetchResponse(
        throttle_time=NO_DELAY,
        topics=(
            offset_fetched.OffsetFetchResponseTopic(
                name=TopicName("orders"),
                partitions=(
                    offset_fetched.OffsetFetchResponsePartition(
                        partition_index=i32(0),
                        committed_offset=i64(offset),
                        committed_leader_epoch=i32(2),
                        metadata="",
                        error_code=error,
                    ),
                ),
            ),
        ),
        error_code=KafkaError.none,
    )
    request = OffsetFetchRequest(group_id="readers", partitions=(ORDERS,), require_stable=True)
    assert answer(offset_fetch_call(request), fetched) == expected


@pytest.mark.parametrize(
    ("version", "schema"), [(1, produce_by_name.ProduceRequest), (2, produce_by_id.ProduceRequest)]
)
def test_records_of_version_1_are_sent_in_a_version_that_does_not_mean_2(version: int, schema: type) -> None:
    batch = InvalidBatch(error=ErrorCode.CORRUPT_MESSAGE, reason="its bytes are sent as they are")
    topic_id = TopicId("AAAAAAAAAAAAAAAAAAAAAA")
    partition = messages.ProducePartition(topic="orders", topic_id=topic_id, partition=0, batch=batch)
    request = messages.ProduceRequest(
        acks=Acks.ALL, timeout_ms=1000, partitions=(partition,), transactional_id="t", transaction_version=version
    )
    sent = produce_call(request, (b"",), {0: 13}).request
    assert isinstance(sent, schema)
    assert getattr(sent, "transactional_id", None) == "t"
