"""Every message survives the way to bytes and back, and bytes that are no message are refused."""

import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laststand.emulator.core import admin_messages, group_messages, messages, records, transaction_messages
from laststand.emulator.core.batch import BatchDescriptor, InvalidBatch
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    CorrelationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    Offset,
    ProducerId,
    TopicId,
)
from laststand.emulator.rpc.apis import BROKER_APIS, CONTROLLER_APIS, UnaryApi, api_of
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.rpc.data_codec import (
    decode_fetch_requests,
    decode_fetch_responses,
    decode_produce_requests,
    decode_produce_responses,
    encode_fetch_request,
    encode_fetch_response,
    encode_produce_request,
    encode_produce_response,
    join_frame,
)
from laststand.emulator.rpc.generated import broker_pb2
from laststand.emulator.rpc.metadata_codec import (
    MetadataStreamRequest,
    MetadataStreamResponse,
    decode_stream_request,
    decode_stream_response,
    encode_stream_request,
    encode_stream_response,
)
from tests.unit.random_structs import structs

CAUSE = CauseId("send-7")
CORRELATION = CorrelationId(41)

BATCH = BatchDescriptor(
    base_offset=Offset(0), last_offset=Offset(2), leader_epoch=LeaderEpoch(0), crc=9, size=80, record_count=3
)
INVALID = InvalidBatch(error=ErrorCode.CORRUPT_MESSAGE, reason="too short")


def _response_type(api: UnaryApi) -> type[msgspec.Struct]:
    name = f"{api.name}Response"
    response: type[msgspec.Struct] = next(
        getattr(module, name)
        for module in (messages, admin_messages, transaction_messages, group_messages)
        if hasattr(module, name)
    )
    return response


@pytest.mark.parametrize("api", [*CONTROLLER_APIS, *BROKER_APIS], ids=lambda api: f"{api.service}.{api.name}")
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_unary_messages_survive(api: UnaryApi, data: st.DataObject) -> None:
    request = data.draw(structs(api.request_type))
    response = data.draw(structs(_response_type(api)))

    assert api.decode_request(api.encode_request(request, cause_id=CAUSE)) == (request, CAUSE)
    assert api.decode_response(api.encode_response(response, cause_id=CAUSE)) == (response, CAUSE)


def test_every_request_between_nodes_has_an_api() -> None:
    unary = {api.request_type for api in (*CONTROLLER_APIS, *BROKER_APIS)}
    of_clients_of_kafka = {
        *typing.get_args(group_messages.CoordinatorRequest),
        transaction_messages.DescribeTransactionRequest,
        transaction_messages.ListTransactionsRequest,
    }

    of_clients_of_kafka -= {
        group_messages.OffsetCommitRequest,
        group_messages.OffsetFetchRequest,
        group_messages.JoinGroupRequest,
        group_messages.SyncGroupRequest,
        group_messages.HeartbeatRequest,
        group_messages.LeaveGroupRequest,
    }

    sent = set(typing.get_args(messages.Request)) - of_clients_of_kafka
    assert unary | {messages.ProduceRequest, messages.FetchRequest} == sent


def test_the_destination_determines_the_service() -> None:
    request = messages.DescribeTopicPartitionsRequest()

    assert api_of(request, NodeId(100)).path == "/laststand.Controller/DescribeTopicPartitions"
    assert api_of(request, NodeId(2)).path == "/laststand.Broker/DescribeTopicPartitions"
    assert api_of(request, NodeId(0), controller_id=NodeId(0)).path == "/laststand.Controller/DescribeTopicPartitions"


@given(
    request=structs(messages.ProduceRequest, "partitions", "acks"),
    acks=st.sampled_from((-1, 0, 1, 7)),
    topic_id=st.none() | st.just(TopicId("T" * 22)),
    cause_id=st.none() | st.just(CAUSE),
    blocks=st.lists(st.binary(max_size=100), max_size=3),
)
@settings(deadline=None)
def test_produce_requests_survive_with_their_bytes(
    request: messages.ProduceRequest,
    acks: int,
    topic_id: TopicId | None,
    cause_id: CauseId | None,
    blocks: list[bytes],
) -> None:
    read = {block: BATCH if len(block) % 2 else INVALID for block in blocks}
    partitions = tuple(
        messages.ProducePartition(
            topic="orders", topic_id=topic_id, partition=number, batch=read[block], cause_id=cause_id
        )
        for number, block in enumerate(blocks)
    )
    request = msgspec.structs.replace(request, acks=acks, partitions=partitions)

    payload = encode_produce_request(request, correlation_id=CORRELATION, cause_id=CAUSE, attachments=blocks)
    first, second = decode_produce_requests(join_frame([payload, payload]), read.__getitem__)

    assert first == second
    assert (first.message, first.attachments) == (request, tuple(blocks))
    assert (first.correlation_id, first.cause_id) == (CORRELATION, CAUSE)


@given(response=structs(messages.ProduceResponse))
@settings(deadline=None)
def test_produce_responses_survive(response: messages.ProduceResponse) -> None:
    payload = encode_produce_response(response, correlation_id=CORRELATION, cause_id=CAUSE)
    (decoded,) = decode_produce_responses(join_frame([payload]))

    assert (decoded.message, decoded.correlation_id, decoded.cause_id) == (response, CORRELATION, CAUSE)


def test_the_timestamp_of_a_batch_that_is_repeated_has_64_bits() -> None:
    repeated = messages.ProducePartitionResponse(
        topic="orders", partition=0, error=ErrorCode.NONE, duplicate_timestamp_ms=1_795_734_861_205
    )
    response = messages.ProduceResponse(partitions=(repeated,))
    payload = encode_produce_response(response, correlation_id=CORRELATION, cause_id=CAUSE)
    (decoded,) = decode_produce_responses(join_frame([payload]))
    assert decoded.message == response


@given(request=structs(messages.FetchRequest))
@settings(deadline=None)
def test_fetch_requests_survive(request: messages.FetchRequest) -> None:
    payload = encode_fetch_request(request, correlation_id=CORRELATION, cause_id=CAUSE)
    (decoded,) = decode_fetch_requests(join_frame([payload]))

    assert (decoded.message, decoded.correlation_id, decoded.cause_id) == (request, CORRELATION, CAUSE)


@given(
    answers=st.lists(
        st.tuples(structs(messages.FetchPartitionResponse, "span", "batches"), st.binary(max_size=100)), max_size=3
    ),
    error=st.sampled_from(ErrorCode),
)
@settings(deadline=None)
def test_fetch_responses_turn_spans_into_bytes_and_bytes_into_batches(
    answers: list[tuple[messages.FetchPartitionResponse, bytes]], error: ErrorCode
) -> None:
    sent = messages.FetchResponse(partitions=tuple(answer for answer, _ in answers), error=error)
    blocks = [block for _, block in answers]

    payload = encode_fetch_response(sent, correlation_id=CORRELATION, cause_id=CAUSE, attachments=blocks)
    (decoded,) = decode_fetch_responses(join_frame([payload]), lambda _block: (BATCH,))

    assert decoded.attachments == tuple(blocks)
    assert decoded.message.error is error
    assert decoded.message.partitions == tuple(
        msgspec.structs.replace(answer, batches=(BATCH,) if block else ()) for answer, block in answers
    )


@given(sizes=st.lists(st.sampled_from((0, 1, 127, 128, 16_383, 16_384, 70_000)), max_size=4))
@settings(deadline=None)
def test_a_frame_put_together_by_hand_is_protobuf(sizes: list[int]) -> None:
    payloads = [
        encode_produce_request(
            messages.ProduceRequest(
                acks=1,
                timeout_ms=0,
                partitions=(messages.ProducePartition(topic="t", partition=0, batch=BATCH),),
            ),
            correlation_id=CorrelationId(number),
            cause_id=CAUSE,
            attachments=[bytes(size)],
        )
        for number, size in enumerate(sizes)
    ]

    frame = join_frame(payloads)
    decoded = decode_produce_requests(frame, lambda _records: BATCH)

    assert [len(request.attachments[0]) for request in decoded] == sizes
    assert [payload.size for payload in payloads] == [sum(map(len, payload.pieces)) for payload in payloads]
    assert broker_pb2.ProduceRequestFrame.FromString(frame).SerializeToString() == frame


@given(sizes=st.lists(st.sampled_from((0, 1, 127, 128, 70_000)), max_size=4))
@settings(deadline=None)
def test_a_fetch_response_put_together_by_hand_is_protobuf(sizes: list[int]) -> None:
    partitions = tuple(
        messages.FetchPartitionResponse(
            topic="t", partition=number, error=ErrorCode.NONE, high_watermark=Offset(number)
        )
        for number in range(len(sizes))
    )
    payload = encode_fetch_response(
        messages.FetchResponse(partitions=partitions),
        correlation_id=CORRELATION,
        cause_id=CAUSE,
        attachments=[memoryview(bytes(size)) for size in sizes],
    )

    frame = join_frame([payload])
    (message,) = broker_pb2.FetchResponseFrame.FromString(frame).messages

    assert [len(partition.records) for partition in message.partitions] == sizes
    assert broker_pb2.FetchResponseFrame.FromString(frame).SerializeToString() == frame


def test_the_metadata_stream_survives() -> None:
    batches = (
        records.MetadataBatch(
            base_offset=MetadataOffset(3), records=(records.TopicRecord(name="orders", topic_id=TopicId("A" * 22)),)
        ),
        records.MetadataBatch(
            base_offset=MetadataOffset(4),
            records=(
                records.ProducerIdsRecord(
                    broker_id=BrokerId(NodeId(1)), broker_epoch=BrokerEpoch(2), next_producer_id=ProducerId(1000)
                ),
            ),
        ),
    )
    request = MetadataStreamRequest(from_offset=MetadataOffset(3), cause_id=CAUSE)

    assert decode_stream_request(encode_stream_request(request)) == request
    assert decode_stream_response(
        encode_stream_response(batches, end_offset=MetadataOffset(5), cause_id=CAUSE)
    ) == MetadataStreamResponse(end_offset=MetadataOffset(5), batches=batches, cause_id=CAUSE)


@pytest.mark.parametrize(
    "decode",
    [
        api_of(messages.MetadataRequest(), NodeId(0)).decode_request,
        decode_produce_responses,
        decode_fetch_requests,
        decode_stream_request,
        decode_stream_response,
    ],
)
def test_bytes_that_are_no_message_are_refused(decode: typing.Callable[[bytes], object]) -> None:
    with pytest.raises(CodecError):
        decode(b"\xff\xff\xff")


def test_an_unknown_error_code_is_refused() -> None:
    api = api_of(messages.InitProducerIdRequest(), NodeId(0))
    response = messages.InitProducerIdResponse(error=typing.cast(ErrorCode, 31_999))

    with pytest.raises(CodecError):
        api.decode_response(api.encode_response(response, cause_id=CAUSE))
