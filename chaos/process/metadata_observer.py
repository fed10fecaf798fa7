"""The harness's view of committed metadata: the folded stream of whichever controller is active, past all proxies."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from laststand.emulator.core import inputs
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import CauseId, MetadataOffset, NodeId
from laststand.emulator.rpc.channel import Channel, Keepalive, open_channel
from laststand.emulator.rpc.metadata_codec import NO_EPOCH
from laststand.emulator.rpc.metadata_stream import read_metadata
from laststand.emulator.rpc.run_token import RunToken

_CAUSE: Final = CauseId("harness")
_RETRY_S: Final = 0.1
_COMMITTED_TIMEOUT_S: Final = 2.0


class MetadataObserver:
    """Subscribes at every controller until cancelled, and again whenever a stream is lost: all but the active end it.

    Args:
        addresses: of the controllers.
        keepalive: settings after which a silent stream is given up.
        token: of the cluster.
        on_change: called when there is new metadata.

    Attributes:
        image: fold of everything that the active controller has sent. With several controllers each stream is read from
            its beginning, because they may have lost committed metadata.
    """

    def __init__(
        self,
        addresses: Mapping[NodeId, str],
        *,
        keepalive: Keepalive,
        token: RunToken,
        on_change: Callable[[], None],
    ) -> None:
        self.image = MetadataImage()
        self._addresses = addresses
        self._keepalive = keepalive
        self._token = token
        self._on_change = on_change
        self._controller_epoch = NO_EPOCH
        self._in_charge, self._known_end = self.image, MetadataOffset(0)

    async def run(self) -> None:
        """Follows the streams until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for node_id in self._addresses:
                tasks.create_task(self._follow(node_id))

    async def _follow(self, node_id: NodeId) -> None:
        async with self._channel(node_id) as channel:
            while True:
                image = MetadataImage() if len(self._addresses) > 1 else self.image
                await read_metadata(
                    channel, from_offset=image.next_offset, cause_id=_CAUSE, deliver=partial(self._deliver, image)
                )
                await asyncio.sleep(_RETRY_S)

    async def committed_end(self) -> MetadataOffset:
        """Returns the active controller's committed end offset; the last known one if no controller answers."""
        ends = [self.image.next_offset]

        def deliver(seen: inputs.MetadataStreamOpened | inputs.MetadataReceived | inputs.MetadataStreamLost) -> None:
            if isinstance(seen, inputs.MetadataStreamOpened):
                ends.append(seen.end_offset)
                is_known.set()

        async def ask(node_id: NodeId) -> None:
            async with self._channel(node_id) as channel:
                await read_metadata(channel, from_offset=ends[0], cause_id=_CAUSE, deliver=deliver)

        is_known = asyncio.Event()
        known = asyncio.ensure_future(is_known.wait())
        asking = [asyncio.ensure_future(ask(node_id)) for node_id in self._addresses]
        lost = asyncio.gather(*asking)
        await asyncio.wait((known, lost), timeout=_COMMITTED_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        for task in (known, lost):
            task.cancel()
        await asyncio.gather(known, *asking, return_exceptions=True)
        with contextlib.suppress(asyncio.CancelledError):
            await lost
        return max(ends)

    @asynccontextmanager
    async def _channel(self, node_id: NodeId) -> AsyncIterator[Channel]:
        channel = open_channel(self._addresses[node_id], self._keepalive, token=self._token, peer=node_id)
        try:
            yield channel
        finally:
            await channel.close()

    def _deliver(
        self,
        image: MetadataImage,
        seen: inputs.MetadataStreamOpened | inputs.MetadataReceived | inputs.MetadataStreamLost,
    ) -> None:
        match seen:
            case inputs.MetadataStreamOpened(controller_epoch=epoch) if epoch >= self._controller_epoch:
                self._controller_epoch = epoch
                self._in_charge, self._known_end = image, seen.end_offset
            case inputs.MetadataReceived(batches=batches):
                for batch in batches:
                    for position, record in enumerate(batch.records):
                        offset = MetadataOffset(batch.base_offset + position)
                        if offset >= image.next_offset:
                            image.replay(record, offset=offset)
                if image is self._in_charge and image.next_offset >= self._known_end:
                    self.image = image
                    self.image.pop_delta()
                    self._on_change()
            case _:
                pass
