"""The disk of one voter: its metadata log, with its synced part; its snapshots; its ``quorum-state``.

A truncation is synced at once, together with everything below it. A snapshot is stored completely or not at all.
"""

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.quorum.batches import LogPosition, QuorumBatch, Snapshot
from laststand.emulator.core.quorum.effects import Election, WriteElection
from laststand.emulator.core.quorum.voter_set import DirectoryId
from laststand.emulator.core.types import MetadataOffset


class MetadataDisk:
    """Survives the process.

    Attributes:
        directory_id: drawn when it was formatted.
        batches: of the log, as a process reads them.
        synced: number of batches that survive a power loss.
        snapshots: by position, ascending.
        election: ``quorum-state`` as a process reads it; ``None`` if it is missing.
        cuts: number of truncations; a sync that began before the latest one proves nothing about the present log.
    """

    def __init__(self, directory_id: DirectoryId) -> None:
        self.directory_id = directory_id
        self.batches: list[QuorumBatch] = []
        self.synced = 0
        self.snapshots: list[Snapshot] = []
        self.election: Election | None = None
        self.cuts = 0
        self._durable_election: Election | None = None

    @property
    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def start_offset(self) -> MetadataOffset:
        """The offset at which the log begins."""
        if self.batches:
            return self.batches[0].base_offset
        latest = self.latest_snapshot
        return MetadataOffset(0) if latest is None else latest.position.end_offset

    @property
    def durable_end_offset(self) -> MetadataOffset:
        """The end of what would survive a loss of power."""
        return self.batches[self.synced - 1].end_offset if self.synced else self.start_offset

    def append(self, batches: tuple[QuorumBatch, ...]) -> None:
        """Appends to the page cache."""
        for batch in batches:
            end_offset = self.batches[-1].end_offset if self.batches else self.start_offset
            if batch.base_offset != end_offset:
                raise InvariantError(f"{batch} appended at {end_offset}")
            self.batches.append(batch)

    def sync(self, end_offset: MetadataOffset) -> None:
        """Makes the log durable below an offset."""
        while self.synced < len(self.batches) and self.batches[self.synced].end_offset <= end_offset:
            self.synced += 1

    def truncate(self, end_offset: MetadataOffset) -> None:
        """Truncates the log, and syncs it."""
        while self.batches and self.batches[-1].end_offset > end_offset:
            self.batches.pop()
        self.synced = len(self.batches)
        self.cuts += 1

    def restart(self, position: LogPosition) -> None:
        """Replaces the log by the latest snapshot, and drops earlier snapshots."""
        latest = self.latest_snapshot
        if latest is None or latest.position != position:
            raise InvariantError(f"no snapshot {position} to begin again from")
        self.snapshots = [latest]
        self.batches, self.synced = [], 0
        self.cuts += 1

    def write_election(self, effect: WriteElection) -> None:
        """Replaces ``quorum-state``; a power loss undoes this write, and only this one, if it was not synced."""
        self._durable_election = effect.election if effect.is_synced else self.election
        self.election = effect.election

    def lose_power(self, *, kept: int) -> None:
        """Loses the unsynced batches, except for the first ``kept`` of them."""
        del self.batches[self.synced + kept :]
        self.synced = len(self.batches)
        self.election = self._durable_election
        self.cuts += 1

    def lose_election(self) -> None:
        """Loses ``quorum-state``."""
        self.election = self._durable_election = None
