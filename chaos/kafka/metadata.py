"""The harness's view of what Kafka's controllers committed: their metadata logs, read from their disks."""

import asyncio
from collections.abc import Callable
from typing import Final

from laststand.chaos.kafka.witness import NodeWitness
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import MetadataOffset, NodeId
from laststand.emulator.kafka.metadata_log import METADATA_LOG, MetadataLogReader
from laststand.emulator.kafka.quorum_logs import QuorumLogs

_LOOK_INTERVAL_S: Final = 0.02
"""A file in another process's hands changes without a word."""


class KafkaMetadata:
    """Follows the logs until cancelled; see ``CommittedMetadata``.

    Args:
        layout: of the cluster.
        witness: called with new batches.
        has_ledgers: whether the nodes' syncs are recorded, so that only synced records count.
        on_change: called when something was committed.
    """

    def __init__(
        self, layout: ClusterLayout, *, witness: NodeWitness, has_ledgers: bool, on_change: Callable[[], None]
    ) -> None:
        several = layout.controller_ids if len(layout.controller_ids) > 1 else ()
        self._layout = layout
        self._reader = MetadataLogReader(layout.data_directory(layout.controller_id) / METADATA_LOG)
        self._quorum = QuorumLogs(
            {node_id: layout.data_directory(node_id) / METADATA_LOG for node_id in several},
            ledgers={node_id: layout.ledger_directory(node_id) for node_id in several if has_ledgers},
            voters=self._voters,
        )
        self._witness = witness
        self._on_change = on_change

    @property
    def image(self) -> MetadataImage:
        """Fold of all batches that were read."""
        return self._witness.image

    async def run(self) -> None:
        """Follows the log until cancelled.

        Raises:
            StorageError: the log holds other data than metadata records.
        """
        while True:
            self.read()
            await asyncio.sleep(_LOOK_INTERVAL_S)

    async def committed_end(self) -> MetadataOffset:
        """Reads to the end of the log."""
        self.read()
        return self.image.next_offset

    def read(self) -> None:
        """Reads the batches written since the last call, and the new output of brokers."""
        self._witness.quorum.look()
        is_changed = self._read_quorum() if len(self._layout.controller_ids) > 1 else self._read_log()
        self._witness.poll()
        if is_changed:
            self._on_change()

    def _read_log(self) -> bool:
        batches = self._reader.read_new()
        for batch in batches:
            self._witness.committed(batch)
        return bool(batches)

    def _read_quorum(self) -> bool:
        before = self._quorum.committed
        news = self._quorum.read_new()
        if news is None:
            return False
        for batch in news.elected:
            self._witness.quorum.elected(batch)
        if news.kept < len(before):
            self._witness.forget([batch.content for batch in before[: news.kept]])
        for batch in news.committed:
            self._witness.committed(batch.content)
        if news.committed:
            self._witness.quorum.committed_up_to(news.committed[-1])
        return bool(news.committed)

    def _voters(self) -> tuple[NodeId, ...]:
        """Returns the controllers whose disks are voters; for a static voter any disk is."""
        layout = self._layout
        return tuple(
            node_id
            for node_id in layout.controller_ids
            if not layout.has_directory_ids or self._witness.quorum.has_first_disk(node_id)
        )
