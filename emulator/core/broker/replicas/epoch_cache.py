"""The leader epoch cache: where each leader epoch started in one log (KIP-101, ``LeaderEpochFileCache``).

Entries rise strictly in both epoch and start offset. An epoch with an entry may have no records: a leader adds its
epoch when elected, so that followers of a later leader can find their truncation offset.
"""

from collections.abc import Iterable

from laststand.emulator.core.batch import EpochEndOffset, EpochEntry
from laststand.emulator.core.types import LeaderEpoch, Offset


class LeaderEpochCache:
    """Epoch entries of one log. Methods that may change them return whether the checkpoint has to be rewritten."""

    __slots__ = ("_entries", "latest_epoch")

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self._entries: list[EpochEntry] = list(entries)
        self.latest_epoch: LeaderEpoch | None = None
        self._remember_latest()

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, ascending."""
        return tuple(self._entries)

    def assign(self, leader_epoch: LeaderEpoch, start_offset: Offset) -> bool:
        """Adds that ``leader_epoch`` starts at ``start_offset``; removes entries that contradict it."""
        entries = self._entries
        if entries and entries[-1].leader_epoch == leader_epoch and start_offset >= entries[-1].start_offset:
            return False
        while entries and (entries[-1].leader_epoch >= leader_epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(leader_epoch, start_offset))
        self.latest_epoch = leader_epoch
        return True

    def truncate_from_end(self, end_offset: Offset) -> bool:
        """Drops entries that start at or above ``end_offset``."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        return end_offset >= 0 and self._replace(kept)

    def truncate_from_start(self, start_offset: Offset) -> bool:
        """Collapses entries that start at or below ``start_offset`` into the last of them, moved to that offset."""
        below = [entry for entry in self._entries if entry.start_offset <= start_offset]
        if start_offset < 0 or not below:
            return False
        return self._replace([EpochEntry(below[-1].leader_epoch, start_offset), *self._entries[len(below) :]])

    def drop_below(self, start_offset: Offset) -> bool:
        """Drops entries that end at or below ``start_offset``, except the last of them."""
        below = sum(entry.start_offset < start_offset for entry in self._entries)
        return self._replace(self._entries[max(0, below - 1) :])

    def clear(self) -> bool:
        """Drops every entry."""
        return self._replace([])

    def end_offset_for(self, leader_epoch: LeaderEpoch, *, log_end_offset: Offset) -> EpochEndOffset | None:
        """Returns the largest epoch not above ``leader_epoch`` with its end, or ``None`` where that is undefined.

        Below the first entry the epoch asked for is returned with the first entry's start.
        """
        entries = self._entries
        if not entries or leader_epoch < 0 or leader_epoch > entries[-1].leader_epoch:
            return None
        if leader_epoch == entries[-1].leader_epoch:
            return EpochEndOffset(leader_epoch=leader_epoch, end_offset=log_end_offset)
        floor = leader_epoch
        for entry in entries:
            if entry.leader_epoch > leader_epoch:
                return EpochEndOffset(leader_epoch=floor, end_offset=entry.start_offset)
            floor = entry.leader_epoch
        raise AssertionError("the last entry's epoch is above the one asked for")

    def floor_epoch_end(self, leader_epoch: LeaderEpoch, *, log_end_offset: Offset) -> EpochEndOffset | None:
        """Returns the largest epoch of this cache that is not above ``leader_epoch``, and its end.

        If all epochs are above ``leader_epoch``, returns ``leader_epoch`` itself, which ends where the first entry
        starts: a follower without records of that epoch truncates its whole log
        (``LeaderEpochFileCache.endOffsetFor``). ``None`` for an empty cache.
        """
        end = log_end_offset
        for entry in reversed(self._entries):
            if entry.leader_epoch <= leader_epoch:
                return EpochEndOffset(leader_epoch=entry.leader_epoch, end_offset=end)
            end = entry.start_offset
        return EpochEndOffset(leader_epoch=leader_epoch, end_offset=end) if self._entries else None

    def _replace(self, entries: list[EpochEntry]) -> bool:
        changed = entries != self._entries
        self._entries = entries
        self._remember_latest()
        return changed

    def _remember_latest(self) -> None:
        self.latest_epoch = self._entries[-1].leader_epoch if self._entries else None
