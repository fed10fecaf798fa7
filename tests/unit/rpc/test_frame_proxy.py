"""Frames of protocols that are not ours."""

import asyncio

import pytest

from laststand.emulator.rpc.frame_proxy import read_frame
from laststand.emulator.rpc.limits import MESSAGE_BYTES_MAX


async def test_a_frame_that_is_longer_than_any_message_breaks_the_connection() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data((MESSAGE_BYTES_MAX + 1).to_bytes(4, "big"))
    with pytest.raises(OSError, match="a frame of 104857601 bytes"):
        await read_frame(reader)
