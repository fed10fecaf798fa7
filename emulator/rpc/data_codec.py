"""Produce and Fetch on the wire: small messages around record batches, which pass unchanged.

The core names batches by their headers, the wire carries their bytes. So a message travels together with
*attachments*: one block of bytes per partition, in the order of its partitions. What a block means is the caller's
knowledge: it passes the function that reads batch headers, because this package knows no log format.

A frame is what a stream carries in one go: any number of messages that were ready together. Frames, and messages that
carry batches, are protobuf put together by hand, so that a batch is copied once, when its frame is joined::

    frame     = { tag 0x0a | varint length | message }
    message   = its other fields | { tag of partitions | varint length | partition }
    partition = its other fields | tag of records | varint length | batches
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec
from google.protobuf.message import DecodeError, Message

from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor, InvalidBatch
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import CauseId, CorrelationId, TopicId
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.rpc.generated import broker_pb2
from laststand.emulator.rpc.struct_codec import StructCodec

Attachment: TypeAlias = bytes | memoryview
"""The bytes of one partition's record batches; empty where there are none."""

ParseProduced: TypeAlias = Callable[[bytes], BatchDescriptor | InvalidBatch]
"""Reads the header of the one batch that a producer sent for a partition."""

ParseFetched: TypeAlias = Callable[[bytes], tuple[BatchDescriptor, ...]]
"""Reads the headers of all batches in a fetched block; raises ``CodecError`` where it holds anything else."""

PRODUCE: Final = "Produce"
FETCH: Final = "Fetch"

_FRAME_TAG: Final = b"\x0a"
_LENGTH_DELIMITED: Final = 2

_FETCH_REQUEST: Final = StructCodec(messages.FetchRequest, broker_pb2.FetchRequest, ("cause_id", "correlation_id"))
_FETCH_RESULT: Final = StructCodec(
    messages.FetchPartitionResponse,
    broker_pb2.FetchPartitionResponse,
    transport_fields=("records",),
    driver_fields=("span", "batches"),
)
_PRODUCE_RESULT: Final = StructCodec(messages.ProducePartitionResponse, broker_pb2.ProducePartitionResponse)

FrameT = TypeVar("FrameT", bound=Message)
MessageT = TypeVar(
    "MessageT", messages.ProduceRequest, messages.ProduceResponse, messages.FetchRequest, messages.FetchResponse
)


class Streamed(msgspec.Struct, Generic[MessageT], frozen=True, kw_only=True):
    """A message as it arrived on a stream, with the bytes of its batches.

    Attributes:
        correlation_id: the sender's handle; the answer repeats it.
        cause_id: cause of the message.
        message: the core's message.
        attachments: one block per partition of the message, in order; empty for messages without batches.
    """

    correlation_id: CorrelationId
    cause_id: CauseId
    message: MessageT
    attachments: tuple[bytes, ...] = ()


class Payload(msgspec.Struct, frozen=True):
    """An encoded message in pieces, and its size in bytes."""

    pieces: tuple[Attachment, ...]
    size: int


def join_frame(payloads: Iterable[Payload]) -> bytes:
    """Returns the frame that carries these encoded messages."""
    parts: list[Attachment] = []
    for payload in payloads:
        parts += (_FRAME_TAG, _varint(payload.size), *payload.pieces)
    return b"".join(parts)


def _payload(encoded: bytes) -> Payload:
    return Payload((encoded,), len(encoded))


def _payload_with_records(
    message: Message, partitions: Iterable[Message], attachments: Sequence[Attachment]
) -> Payload:
    """Returns a message whose partitions have the attachments as records."""
    partitions_tag, records_tag = _RECORDS_TAGS[type(message)]
    pieces: list[Attachment] = [message.SerializeToString()]
    for partition, records in zip(partitions, attachments, strict=True):
        fields = partition.SerializeToString()
        if records:
            fields += records_tag + _varint(len(records))
        pieces += (partitions_tag + _varint(len(fields) + len(records)) + fields, records)
    return Payload(tuple(pieces), sum(map(len, pieces)))


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _tag(message: type[Message], field: str) -> bytes:
    return _varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | _LENGTH_DELIMITED)


_RECORDS_TAGS: Final[dict[type[Message], tuple[bytes, bytes]]] = {
    message: (_tag(message, "partitions"), _tag(partition, "records"))
    for message, partition in (
        (broker_pb2.ProduceRequest, broker_pb2.ProducePartition),
        (broker_pb2.FetchResponse, broker_pb2.FetchPartitionResponse),
    )
}
"""The tags by message: of a partition in it, and of the records in a partition."""


def _parse_frame(frame_type: type[FrameT], frame: bytes) -> FrameT:
    try:
        return frame_type.FromString(frame)
    except DecodeError as error:
        raise CodecError(message=frame_type.DESCRIPTOR.name, reason=str(error)) from error


def encode_produce_request(
    request: messages.ProduceRequest,
    *,
    correlation_id: CorrelationId,
    cause_id: CauseId,
    attachments: Sequence[Attachment],
) -> Payload:
    """Returns an encoded produce request; the batches are the attachments, one per partition."""
    message = broker_pb2.ProduceRequest(
        cause_id=cause_id,
        correlation_id=correlation_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        transactional_id=request.transactional_id,
        transaction_version=request.transaction_version,
        knows_abortable=request.knows_abortable,
    )
    partitions = [
        broker_pb2.ProducePartition(
            topic=partition.topic,
            topic_id=partition.topic_id,
            partition=partition.partition,
            cause_id=partition.cause_id,
        )
        for partition in request.partitions
    ]
    return _payload_with_records(message, partitions, attachments)


def decode_produce_requests(frame: bytes, parse: ParseProduced) -> list[Streamed[messages.ProduceRequest]]:
    """Returns the requests of a frame, each batch's header read by ``parse``.

    Raises:
        CodecError: the bytes are no such frame.
    """
    decoded = []
    for message in _parse_frame(broker_pb2.ProduceRequestFrame, frame).messages:
        attachments = tuple([partition.records for partition in message.partitions])
        request = messages.ProduceRequest(
            acks=message.acks,
            timeout_ms=message.timeout_ms,
            transactional_id=message.transactional_id if message.HasField("transactional_id") else None,
            transaction_version=message.transaction_version,
            knows_abortable=message.knows_abortable,
            partitions=tuple(
                [
                    messages.ProducePartition(
                        topic=entry.topic,
                        topic_id=TopicId(entry.topic_id) if entry.HasField("topic_id") else None,
                        partition=entry.partition,
                        batch=parse(records),
                        cause_id=CauseId(entry.cause_id) if entry.HasField("cause_id") else None,
                    )
                    for entry, records in zip(message.partitions, attachments, strict=True)
                ]
            ),
        )
        decoded.append(
            Streamed(
                correlation_id=CorrelationId(message.correlation_id),
                cause_id=CauseId(message.cause_id),
                message=request,
                attachments=attachments,
            )
        )
    return decoded


def encode_produce_response(
    response: messages.ProduceResponse, *, correlation_id: CorrelationId, cause_id: CauseId
) -> Payload:
    """Returns a produce response, encoded."""
    message = broker_pb2.ProduceResponse(cause_id=cause_id, correlation_id=correlation_id)
    for result in response.partitions:
        _PRODUCE_RESULT.write(result, message.partitions.add())
    return _payload(message.SerializeToString())


def decode_produce_responses(frame: bytes) -> list[Streamed[messages.ProduceResponse]]:
    """Returns the responses of a frame.

    Raises:
        CodecError: the bytes are no such frame.
    """
    return [
        Streamed(
            correlation_id=CorrelationId(message.correlation_id),
            cause_id=CauseId(message.cause_id),
            message=messages.ProduceResponse(
                partitions=tuple([_PRODUCE_RESULT.read(entry) for entry in message.partitions])
            ),
        )
        for message in _parse_frame(broker_pb2.ProduceResponseFrame, frame).messages
    ]


def encode_fetch_request(
    request: messages.FetchRequest, *, correlation_id: CorrelationId, cause_id: CauseId
) -> Payload:
    """Returns a fetch request, encoded."""
    return _payload(_FETCH_REQUEST.serialize(request, cause_id=cause_id, correlation_id=correlation_id))


def decode_fetch_requests(frame: bytes) -> list[Streamed[messages.FetchRequest]]:
    """Returns the requests of a frame.

    Raises:
        CodecError: the bytes are no such frame.
    """
    return [
        Streamed(
            correlation_id=CorrelationId(message.correlation_id),
            cause_id=CauseId(message.cause_id),
            message=_FETCH_REQUEST.read(message),
        )
        for message in _parse_frame(broker_pb2.FetchRequestFrame, frame).messages
    ]


def encode_fetch_response(
    response: messages.FetchResponse,
    *,
    correlation_id: CorrelationId,
    cause_id: CauseId,
    attachments: Sequence[Attachment],
) -> Payload:
    """Returns an encoded fetch response; the attachments replace the partitions' spans."""
    message = broker_pb2.FetchResponse(cause_id=cause_id, correlation_id=correlation_id, error=response.error)
    partitions = []
    for partition in response.partitions:
        partitions.append(broker_pb2.FetchPartitionResponse())
        _FETCH_RESULT.write(partition, partitions[-1])
    return _payload_with_records(message, partitions, attachments)


def decode_fetch_responses(frame: bytes, parse: ParseFetched) -> list[Streamed[messages.FetchResponse]]:
    """Returns the responses of a frame, the headers of their batches read by ``parse``.

    Raises:
        CodecError: the bytes are no such frame.
    """
    decoded = []
    for message in _parse_frame(broker_pb2.FetchResponseFrame, frame).messages:
        attachments = tuple([partition.records for partition in message.partitions])
        partitions = tuple(
            [
                _FETCH_RESULT.read(entry, span=None, batches=parse(records) if records else ())
                for entry, records in zip(message.partitions, attachments, strict=True)
            ]
        )
        decoded.append(
            Streamed(
                correlation_id=CorrelationId(message.correlation_id),
                cause_id=CauseId(message.cause_id),
                message=messages.FetchResponse(partitions=partitions, error=_error(message.error)),
                attachments=attachments,
            )
        )
    return decoded


def _error(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError as error:
        raise CodecError(message="FetchResponse", reason=str(error)) from error
