"""The harness's view of what Kafka's controller committed: its metadata log, read from its disk."""

import asyncio
from collections.abc import Callable
from typing import Final

from laststand.chaos.kafka.witness import NodeWitness
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import MetadataOffset
from laststand.emulator.kafka.metadata_log import METADATA_LOG, MetadataLogReader

_LOOK_INTERVAL_S: Final = 0.02
"""A file in another process's hands changes without a word."""


class KafkaMetadata:
    """Follows the log until cancelled; see ``CommittedMetadata``.

    Args:
        layout: of the cluster.
        witness: is called with every batch.
        on_change: called when there was one.

    """

    def __init__(self, layout: ClusterLayout, *, witness: NodeWitness, on_change: Callable[[], None]) -> None:
        self._reader = MetadataLogReader(layout.data_directory(layout.controller_id) / METADATA_LOG)
        self._witness = witness
        self._on_change = on_change

    @property
    def image(self) -> MetadataImage:
        """Fold of all that was read."""
        return self._witness.image

    async def run(self) -> None:
        """Follows the log until cancelled.

        Raises:
            StorageError: the log holds anything but metadata records.
        """
        while True:
            self.read()
            await asyncio.sleep(_LOOK_INTERVAL_S)

    async def committed_end(self) -> MetadataOffset:
        """Reads to the end of the log."""
        self.read()
        return self.image.next_offset

    def read(self) -> None:
        """Takes in what was written since the last call, and what brokers printed."""
        batches = self._reader.read_new()
        for batch in batches:
            self._witness.committed(batch)
        self._witness.poll()
        if batches:
            self._on_change()
