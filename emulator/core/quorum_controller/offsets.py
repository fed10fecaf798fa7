"""Offsets of one of several controllers: the committed end, the stable end, and the offset of its next write.

A committed record is not stable while the metadata transaction that it lies in is open: the controller does not answer
yet, and a deposed one goes back to the state before it. Kafka's ``OffsetControlManager``; as there, a transaction is
over for the active controller with the record that ends it, committed or not.
"""

from laststand.emulator.core import records
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.metadata_transactions import open_after
from laststand.emulator.core.types import MetadataOffset


class ControllerOffsets:
    """Offsets of one controller, active or not; all of them are ends (exclusive).

    Attributes:
        committed_end: end of the records that it knows to be committed.
        stable_end: end of what counts; never falls.
        write_end: where the active controller writes next; ``None`` while it is not active.
        transaction_start: where the open metadata transaction began, as far as this controller has read or written.
    """

    def __init__(self) -> None:
        self.committed_end = MetadataOffset(0)
        self.stable_end = MetadataOffset(0)
        self.write_end: MetadataOffset | None = None
        self.transaction_start: MetadataOffset | None = None
        self._committed_start: MetadataOffset | None = None

    @property
    def is_active(self) -> bool:
        """The controller is the active one."""
        return self.write_end is not None

    def activate(self, write_end: MetadataOffset) -> None:
        """Notes that it has become active.

        Raises:
            InvariantError: the controller is already active, or would write below the committed end.
        """
        if self.is_active:
            raise InvariantError("a controller is activated that is active")
        if write_end < self.committed_end:
            raise InvariantError(f"a controller writes at {write_end}, and below {self.committed_end} all is committed")
        self.write_end = write_end

    def deactivate(self) -> None:
        """Notes that the controller is no longer active; it forgets what it wrote and did not see committed.

        Raises:
            InvariantError: the controller was not active.
        """
        if not self.is_active:
            raise InvariantError("a controller is deactivated that is not active")
        self.write_end = None
        self.transaction_start = self._committed_start

    def append(self, batch: records.MetadataBatch) -> None:
        """Notes a batch that the active controller writes.

        Raises:
            InvariantError: the batch is not the next one of an active controller, or ends a transaction that is not
                open.
            open.
        """
        if batch.base_offset != self.write_end:
            raise InvariantError(
                f"a batch is written at {batch.base_offset}, and the next one is due at {self.write_end}"
            )
        self.transaction_start = _open_after(self.transaction_start, batch)
        self.write_end = batch.end_offset

    def commit(self, batch: records.MetadataBatch) -> None:
        """Notes that a batch is committed.

        Raises:
            InvariantError: the batch ends or aborts a transaction that is not open.
        """
        self.committed_end = batch.end_offset
        self._committed_start = _open_after(self._committed_start, batch)
        if not self.is_active:
            self.transaction_start = self._committed_start
        stable = self.committed_end if self.transaction_start is None else self.transaction_start
        self.stable_end = max(self.stable_end, min(stable, self.committed_end))


def _open_after(start: MetadataOffset | None, batch: records.MetadataBatch) -> MetadataOffset | None:
    for offset, record in enumerate(batch.records, batch.base_offset):
        start = open_after(start, record, offset=MetadataOffset(offset))
    return start
