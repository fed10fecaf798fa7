"""The metadata log as its node sees it: batches, epochs, snapshots, and the voters that follow from them.

Kafka's ``ReplicatedLog`` and ``KRaftControlRecordStateMachine``. Epochs are recomputed from the batches, never stored
beside them. The set of voters in force is the last one in the log, committed or not.
"""

from collections.abc import Sequence
from enum import Enum

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.quorum.batches import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    LogPosition,
    QuorumBatch,
    Snapshot,
)
from laststand.emulator.core.quorum.voter_set import VoterSet
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset

_START = LogPosition(LeaderEpoch(0), MetadataOffset(0))


class Comparison(Enum):
    """The leader's verdict on the offset and epoch of a follower's fetch."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


class MetadataLog:
    """The log of one node, in memory.

    Args:
        bootstrap_voters: in force before the first set in the log.
        bootstrap_version: ``kraft.version`` likewise.
        snapshots: on the disk.
        batches: on the disk. If they end below the latest snapshot, that was stored to replace them.

    Raises:
        InvariantError: the log begins above offset 0 where no snapshot ends (KAFKA-14240), or has a hole.

    Attributes:
        start_offset: of the first batch that is left.
        end_offset: the offset after the last record.
        batches: in order.
        snapshots: by position, ascending; those that ``format`` makes (at offset 0) do not count.
    """

    def __init__(
        self,
        *,
        bootstrap_voters: VoterSet,
        bootstrap_version: int,
        snapshots: Sequence[Snapshot] = (),
        batches: Sequence[QuorumBatch] = (),
    ) -> None:
        self.start_offset = MetadataOffset(0)
        self.end_offset = MetadataOffset(0)
        self.batches: list[QuorumBatch] = []
        self.snapshots: list[Snapshot] = []
        self._epochs: list[LogPosition] = []  # epoch and the offset at which it begins
        self._bootstrap_voters = bootstrap_voters
        self._bootstrap_version = bootstrap_version
        self._voters: list[tuple[MetadataOffset, VoterSet]] = []
        self._versions: list[tuple[MetadataOffset, int]] = []
        latest_end = snapshots[-1].position.end_offset if snapshots else MetadataOffset(0)
        if latest_end and (not batches or batches[-1].end_offset < latest_end):
            self.restart(snapshots[-1])
            return
        self.snapshots += snapshots
        for snapshot in snapshots:
            if batches and snapshot.position.end_offset == batches[0].base_offset:
                self._begin_at(snapshot)
        for batch in batches:
            self.append(batch)

    # --- Contents ---------------------------------------------------------------------------------------------------

    @property
    def last_epoch(self) -> LeaderEpoch:
        """The epoch of the last record, or a later epoch that a leader has begun; 0 if there is none."""
        return self._epochs[-1].leader_epoch if self._epochs else LeaderEpoch(0)

    @property
    def position(self) -> LogPosition:
        """The end of the log, as candidates compare it."""
        return LogPosition(self.last_epoch, self.end_offset)

    @property
    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def voters(self) -> VoterSet:
        """The set in force."""
        return self._voters[-1][1] if self._voters else self._bootstrap_voters

    @property
    def voters_offset(self) -> MetadataOffset | None:
        """The offset of the set in force; ``None`` for the bootstrap voters, which no record of the log names."""
        return self._voters[-1][0] if self._voters else None

    @property
    def kraft_version(self) -> int:
        """The level of ``kraft.version`` in force."""
        return self._versions[-1][1] if self._versions else self._bootstrap_version

    def voters_at(self, end_offset: MetadataOffset) -> VoterSet:
        """Returns the set that was in force below an offset."""
        found = [voters for offset, voters in self._voters if offset < end_offset]
        return found[-1] if found else self._bootstrap_voters

    def read(self, offset: MetadataOffset, *, batches_max: int) -> tuple[QuorumBatch, ...]:
        """Returns batches from the one on that contains ``offset``, committed or not."""
        first = len(self.batches)
        while first > 0 and self.batches[first - 1].end_offset > offset:
            first -= 1
        return tuple(self.batches[first : first + batches_max])

    def starts_batch(self, offset: MetadataOffset) -> bool:
        """Returns whether an offset is the end of the log, or where a batch begins."""
        return offset == self.end_offset or any(batch.base_offset == offset for batch in self.batches)

    # --- Changes ----------------------------------------------------------------------------------------------------

    def append(self, batch: QuorumBatch) -> None:
        """Appends a batch.

        Raises:
            InvariantError: the batch does not begin where the log ends, or is of an older epoch.
        """
        if batch.base_offset != self.end_offset or batch.leader_epoch < self.last_epoch:
            raise InvariantError(f"{batch} appended at {self.position}")
        self.begin_epoch(batch.leader_epoch)
        self.batches.append(batch)
        for index, record in enumerate(batch.control):
            self._enter(record, MetadataOffset(batch.base_offset + index))
        self.end_offset = batch.end_offset

    def begin_epoch(self, leader_epoch: LeaderEpoch) -> None:
        """Notes that an epoch begins at the end of the log; without effect if it began before."""
        if leader_epoch > self.last_epoch:
            self._epochs.append(LogPosition(leader_epoch, self.end_offset))

    def truncate(self, end_offset: MetadataOffset) -> None:
        """Truncates the log. A batch that the offset lies in is removed whole, as in Kafka."""
        while self.batches and self.batches[-1].end_offset > end_offset:
            self.batches.pop()
        self._epochs = [entry for entry in self._epochs if entry.end_offset < end_offset]
        self._voters = [entry for entry in self._voters if entry[0] < end_offset]
        self._versions = [entry for entry in self._versions if entry[0] < end_offset]
        self.end_offset = min(self.end_offset, end_offset)
        if not self._epochs and self.snapshots and self.start_offset == self.end_offset:
            self._epochs = [LogPosition(self.snapshots[-1].position.leader_epoch, self.start_offset)]

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Adds a snapshot of what the log holds; the log stays as it is."""
        self.snapshots.append(snapshot)

    def restart(self, snapshot: Snapshot) -> None:
        """Replaces the log by a snapshot."""
        self.snapshots = [snapshot]
        self._begin_at(snapshot)

    def _begin_at(self, snapshot: Snapshot) -> None:
        self.batches, self._epochs, self._voters, self._versions = [], [], [], []
        self.start_offset = self.end_offset = snapshot.position.end_offset
        last_offset = MetadataOffset(self.end_offset - 1)
        if snapshot.voters is not None:
            self._enter(KRaftVoters(voters=snapshot.voters), last_offset)
        self._enter(KRaftVersion(level=snapshot.kraft_version), last_offset)
        self.begin_epoch(snapshot.position.leader_epoch)

    def _enter(self, record: ControlRecord, offset: MetadataOffset) -> None:
        match record:
            case KRaftVoters():
                self._voters.append((offset, record.voters))
            case KRaftVersion():
                self._versions.append((offset, record.level))

    # --- Comparison of logs -----------------------------------------------------------------------------------------

    def end_of_epoch(self, leader_epoch: LeaderEpoch) -> LogPosition:
        """Returns the largest epoch not above the given one, and where it ends in this log.

        If every epoch of the log is higher, the result is the given epoch at the log's start.
        """
        end_offset = self.end_offset
        for entry in reversed(self._epochs):
            if entry.leader_epoch <= leader_epoch:
                return LogPosition(entry.leader_epoch, end_offset)
            end_offset = entry.end_offset
        return LogPosition(leader_epoch, self.start_offset)

    def compare(self, position: LogPosition) -> tuple[Comparison, LogPosition]:
        """Returns whether a follower may fetch from its log's end; if not, where to truncate, or a snapshot to load.

        Kafka's ``ReplicatedLog.validateOffsetAndEpoch``.
        """
        latest = self.latest_snapshot
        if position.end_offset == 0 and latest is not None:
            return Comparison.SNAPSHOT, latest.position
        if position.end_offset == 0 and self.start_offset == 0:
            return Comparison.VALID, _START
        if latest is not None and self._is_before_snapshots(position):
            return Comparison.SNAPSHOT, latest.position
        end = self.end_of_epoch(position.leader_epoch)
        if end.leader_epoch != position.leader_epoch or end.end_offset < position.end_offset:
            return Comparison.DIVERGING, end
        return Comparison.VALID, position

    def _is_before_snapshots(self, position: LogPosition) -> bool:
        oldest = self.snapshots[0].position
        return (
            position.end_offset < self.start_offset
            or (position.end_offset == self.start_offset and position.leader_epoch != oldest.leader_epoch)
            or position.leader_epoch < oldest.leader_epoch
        )

    def truncation_offset(self, diverging: LogPosition) -> MetadataOffset:
        """Returns the offset to which a follower truncates a diverging log (``ReplicatedLog.truncateToEndOffset``)."""
        if diverging.leader_epoch == 0:
            return diverging.end_offset
        own = self.end_of_epoch(diverging.leader_epoch)
        return (
            min(own.end_offset, diverging.end_offset) if own.leader_epoch == diverging.leader_epoch else own.end_offset
        )
