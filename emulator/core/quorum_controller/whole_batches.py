"""Committed batches for all but the active controller: a metadata transaction appears at once, or not at all.

Kafka's ``MetadataBatchLoader``.
"""

from laststand.emulator.core import records
from laststand.emulator.core.events import ControllerEvent
from laststand.emulator.core.metadata_transactions import open_after
from laststand.emulator.core.quorum_controller.values import CommittedBatch
from laststand.emulator.core.types import MetadataOffset


class WholeBatches:
    """Batches of one log, in the order in which they were committed."""

    def __init__(self) -> None:
        self._start: MetadataOffset | None = None
        self._held: list[CommittedBatch] = []

    def add(self, committed: CommittedBatch) -> CommittedBatch | None:
        """Returns a batch, joined with the batches of its transaction; ``None`` while a transaction is open.

        Events of the records of an aborted transaction are left out.

        Raises:
            InvariantError: the batch ends or aborts a transaction that is not open.
        """
        aborted = False
        for offset, record in enumerate(committed.batch.records, committed.batch.base_offset):
            self._start = open_after(self._start, record, offset=MetadataOffset(offset))
            if isinstance(record, records.AbortTransactionRecord):
                aborted = True
        self._held.append(committed)
        if self._start is not None:
            return None
        held, self._held = self._held, []
        whole = held[0] if len(held) == 1 else _joined(held)
        return _without_aborted(whole) if aborted else whole


def _joined(batches: list[CommittedBatch]) -> CommittedBatch:
    return CommittedBatch(
        batch=records.MetadataBatch(
            base_offset=batches[0].batch.base_offset,
            records=tuple(record for each in batches for record in each.batch.records),
        ),
        events=tuple(event for each in batches for event in each.events),
    )


def _without_aborted(whole: CommittedBatch) -> CommittedBatch:
    undone: set[int] = set()
    start: MetadataOffset | None = None
    for offset, record in enumerate(whole.batch.records, whole.batch.base_offset):
        before, start = start, open_after(start, record, offset=MetadataOffset(offset))
        if before is not None and isinstance(record, records.AbortTransactionRecord):
            undone.update(range(before + 1, offset))
    return CommittedBatch(batch=whole.batch, events=tuple(event for event in whole.events if not _is_of(event, undone)))


def _is_of(event: ControllerEvent, offsets: set[int]) -> bool:
    return getattr(event, "metadata_offset", None) in offsets
