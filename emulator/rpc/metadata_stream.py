"""The reading end of the metadata stream: for brokers and observers."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast

import grpc.aio

from laststand.emulator.core import inputs
from laststand.emulator.core.types import CauseId, LeaderEpoch, MetadataOffset
from laststand.emulator.rpc.apis import method_path
from laststand.emulator.rpc.channel import Channel
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.rpc.metadata_codec import (
    METADATA_STREAM,
    NO_EPOCH,
    MetadataStreamRequest,
    decode_stream_response,
    encode_stream_request,
)
from laststand.emulator.rpc.services import CONTROLLER_SERVICE

_log: Final = logging.getLogger(__name__)


async def read_metadata(
    channel: Channel,
    *,
    from_offset: MetadataOffset,
    cause_id: CauseId,
    controller_epoch: LeaderEpoch = NO_EPOCH,
    deliver: Callable[[inputs.MetadataStreamOpened | inputs.MetadataReceived | inputs.MetadataStreamLost], None],
) -> None:
    """Subscribes once: delivers ``MetadataStreamOpened``, batches as they come, and in the end ``MetadataStreamLost``.

    Returns after the loss. A stream that never opened counts as lost; after a cancellation nothing more is delivered.
    """
    method = channel.answers(method_path(CONTROLLER_SERVICE, METADATA_STREAM))
    request = MetadataStreamRequest(from_offset=from_offset, cause_id=cause_id, controller_epoch=controller_epoch)
    call = method(encode_stream_request(request))
    is_open = False
    try:
        while (payload := await call.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]  # stubs lack it
            message = decode_stream_response(cast(bytes, payload))
            if not is_open:
                is_open = True
                opened = inputs.MetadataStreamOpened(
                    cause_id=cause_id, end_offset=message.end_offset, controller_epoch=message.controller_epoch
                )
                deliver(opened)
            if message.batches:
                deliver(inputs.MetadataReceived(cause_id=message.cause_id, batches=message.batches))
    except grpc.aio.AioRpcError as error:
        _log.debug("metadata stream lost code=%s", error.code().name)
    except CodecError as error:
        _log.warning("metadata stream lost reason=%s", error.reason)
    except asyncio.CancelledError:
        call.cancel()
        raise
    call.cancel()
    deliver(inputs.MetadataStreamLost(cause_id=cause_id))
