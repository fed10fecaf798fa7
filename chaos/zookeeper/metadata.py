"""The harness's view of the committed state in ZooKeeper: the server's transaction log, read from its disk."""

import asyncio
from collections.abc import Callable
from typing import Final

from laststand.chaos.zookeeper.server_events import ServerEvents
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, MetadataOffset
from laststand.emulator.core.zookeeper.identifiers import SessionId, Zxid
from laststand.emulator.core.zookeeper.nodes import paths

_LOOK_INTERVAL_S: Final = 0.02
"""A file in another process's hands changes without a word."""


class ZooKeeperMetadata:
    """Follows the log until cancelled; see ``CommittedMetadata``.

    Args:
        events: reads the log.
        on_change: called when there were new writes.
    """

    def __init__(self, events: ServerEvents, *, on_change: Callable[[], None]) -> None:
        self._events = events
        self._on_change = on_change

    @property
    def image(self) -> MetadataImage:
        """Fold of all writes that were read."""
        return self._events.image

    def session_of(self, broker_id: BrokerId) -> SessionId | None:
        """Returns the session under which a broker registered last."""
        return self._events.session_of(broker_id)

    def controller_node(self) -> Zxid | None:
        """Returns the zxid that created ``/controller``; ``None`` if there is none."""
        node = self._events.log.tree(paths.CONTROLLER).get(paths.CONTROLLER)
        return None if node is None else node.czxid

    async def run(self) -> None:
        """Follows the log until cancelled.

        Raises:
            StorageError: a file is not a transaction log.
        """
        while True:
            self.read()
            await asyncio.sleep(_LOOK_INTERVAL_S)

    async def committed_end(self) -> MetadataOffset:
        """Reads to the end of the log."""
        if self._events.read_all():
            self._on_change()
        return MetadataOffset(self._events.log.last_zxid + 1)

    def read(self) -> None:
        """Reads the writes since the last call."""
        if self._events.read():
            self._on_change()
