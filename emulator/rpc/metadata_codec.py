"""The metadata stream on the wire: committed batches in the metadata log's own encoding of records."""

from collections.abc import Sequence
from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from laststand.emulator.core import records
from laststand.emulator.core.types import CauseId, LeaderEpoch, MetadataOffset
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.rpc.generated import controller_pb2

METADATA_STREAM: Final = "MetadataStream"

NO_EPOCH: Final = LeaderEpoch(0)
"""The controller epoch where there is one controller."""


class MetadataStreamRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Subscribes to committed batches.

    Attributes:
        from_offset: of the first one; the start of a batch, or the end of the log.
        cause_id: of the subscription.
        controller_epoch: the highest one that the caller has seen.
    """

    from_offset: MetadataOffset
    cause_id: CauseId
    controller_epoch: LeaderEpoch = NO_EPOCH


class MetadataStreamResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Committed batches in order; none in the first message, which says where the log ended at opening.

    Attributes:
        end_offset: end of the committed log when the message was made (exclusive).
        batches: consecutive batches.
        cause_id: cause of the newest batch.
        controller_epoch: of the controller that serves the stream; 0 if there is only one controller.
    """

    end_offset: MetadataOffset
    batches: tuple[records.MetadataBatch, ...]
    cause_id: CauseId
    controller_epoch: LeaderEpoch = NO_EPOCH


def encode_stream_request(request: MetadataStreamRequest) -> bytes:
    """Returns a subscription's bytes."""
    message = controller_pb2.MetadataStreamRequest(
        cause_id=request.cause_id, from_offset=request.from_offset, controller_epoch=request.controller_epoch
    )
    return message.SerializeToString()


def decode_stream_request(payload: bytes) -> MetadataStreamRequest:
    """Inverse of ``encode_stream_request``.

    Raises:
        CodecError: the bytes are no subscription.
    """
    try:
        message = controller_pb2.MetadataStreamRequest.FromString(payload)
    except DecodeError as error:
        raise CodecError(message="MetadataStreamRequest", reason=str(error)) from error
    return MetadataStreamRequest(
        from_offset=MetadataOffset(message.from_offset),
        cause_id=CauseId(message.cause_id),
        controller_epoch=LeaderEpoch(message.controller_epoch),
    )


def encode_stream_response(
    batches: Sequence[records.MetadataBatch],
    *,
    end_offset: MetadataOffset,
    cause_id: CauseId,
    controller_epoch: LeaderEpoch = NO_EPOCH,
) -> bytes:
    """Returns the bytes of one message of the stream."""
    message = controller_pb2.MetadataStreamResponse(
        cause_id=cause_id, end_offset=end_offset, controller_epoch=controller_epoch
    )
    for batch in batches:
        message.batches.add(
            base_offset=batch.base_offset,
            record_count=len(batch.records),
            records=records.encode_records(batch.records),
        )
    return message.SerializeToString()


def decode_stream_response(payload: bytes) -> MetadataStreamResponse:
    """Inverse of ``encode_stream_response``.

    Raises:
        CodecError: the bytes are no message of the stream, or hold unknown records.
    """
    try:
        message = controller_pb2.MetadataStreamResponse.FromString(payload)
        batches = tuple(
            [
                records.MetadataBatch(
                    base_offset=MetadataOffset(batch.base_offset), records=records.decode_records(batch.records)
                )
                for batch in message.batches
            ]
        )
    except (DecodeError, msgspec.DecodeError) as error:
        raise CodecError(message="MetadataStreamResponse", reason=str(error)) from error
    return MetadataStreamResponse(
        end_offset=MetadataOffset(message.end_offset),
        batches=batches,
        cause_id=CauseId(message.cause_id),
        controller_epoch=LeaderEpoch(message.controller_epoch),
    )
