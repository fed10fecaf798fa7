"""The harness's view of the controller's committed state: the folded metadata stream, bypassing all proxies."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from laststand.emulator.core import inputs
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import CauseId, MetadataOffset
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.rpc.channel import Keepalive, open_channel
from laststand.emulator.rpc.metadata_stream import read_metadata
from laststand.emulator.rpc.run_token import RunToken

_CAUSE: Final = CauseId("harness")
_RETRY_S: Final = 0.1
_COMMITTED_TIMEOUT_S: Final = 2.0


class MetadataObserver:
    """Subscribes until cancelled, and again whenever the connection to the controller is lost.

    Attributes:
        image: fold of all that was received.
    """

    def __init__(self, address: str, *, keepalive: Keepalive, token: RunToken, on_change: Callable[[], None]) -> None:
        self.image = MetadataImage()
        self._address = address
        self._keepalive = keepalive
        self._token = token
        self._on_change = on_change

    async def run(self) -> None:
        """Follows the stream until cancelled."""
        channel = open_channel(self._address, self._keepalive, token=self._token, peer=CONTROLLER)
        try:
            while True:
                await read_metadata(channel, from_offset=self.image.next_offset, cause_id=_CAUSE, deliver=self._deliver)
                await asyncio.sleep(_RETRY_S)
        finally:
            await channel.close()

    async def committed_end(self) -> MetadataOffset:
        """Returns the controller's committed end offset; the last known one if the controller does not answer."""
        is_changed = asyncio.Event()
        ends: list[MetadataOffset] = []

        def deliver(seen: inputs.MetadataStreamOpened | inputs.MetadataReceived | inputs.MetadataStreamLost) -> None:
            if isinstance(seen, inputs.MetadataStreamOpened):
                ends.append(seen.end_offset)
            is_changed.set()

        channel = open_channel(self._address, self._keepalive, token=self._token, peer=CONTROLLER)
        reader = asyncio.ensure_future(
            read_metadata(channel, from_offset=self.image.next_offset, cause_id=_CAUSE, deliver=deliver)
        )
        try:
            async with asyncio.timeout(_COMMITTED_TIMEOUT_S):
                await is_changed.wait()
        except TimeoutError:
            pass
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
            await channel.close()
        return max((*ends, self.image.next_offset))

    def _deliver(self, seen: inputs.MetadataStreamOpened | inputs.MetadataReceived | inputs.MetadataStreamLost) -> None:
        if not isinstance(seen, inputs.MetadataReceived):
            return
        for batch in seen.batches:
            for position, record in enumerate(batch.records):
                offset = MetadataOffset(batch.base_offset + position)
                if offset >= self.image.next_offset:
                    self.image.replay(record, offset=offset)
        self.image.pop_delta()
        self._on_change()
