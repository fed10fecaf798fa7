"""Arithmetic of majorities: votes, and the offset that most voters have."""

from collections.abc import Iterable

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import MetadataOffset, NodeId


def majority_of(voters: int) -> int:
    """Returns the size of the smallest majority."""
    return voters // 2 + 1


class VoteTally:
    """Answers of voters to one candidate; if a voter answers twice, its last answer counts (``EpochElection``).

    Args:
        voters: as the set was when the election began.

    Attributes:
        granted: the voters that voted for the candidate.
        rejected: the voters that refused.
    """

    def __init__(self, voters: Iterable[NodeId]) -> None:
        self._voters = frozenset(voters)
        self.granted: set[NodeId] = set()
        self.rejected: set[NodeId] = set()

    def record(self, voter_id: NodeId, *, is_granted: bool) -> None:
        """Counts an answer.

        Raises:
            InvariantError: the answer does not come from a voter.
        """
        if voter_id not in self._voters:
            raise InvariantError(f"vote of {voter_id}, which is none of {sorted(self._voters)}")
        recorded, other = (self.granted, self.rejected) if is_granted else (self.rejected, self.granted)
        recorded.add(voter_id)
        other.discard(voter_id)

    @property
    def unanswered(self) -> tuple[NodeId, ...]:
        """Voters whose answer is missing, ascending."""
        return tuple(sorted(self._voters - self.granted - self.rejected))

    @property
    def is_won(self) -> bool:
        """A majority has granted."""
        return len(self.granted) >= majority_of(len(self._voters))

    @property
    def is_lost(self) -> bool:
        """A majority cannot be reached any more."""
        return len(self._voters) - len(self.rejected) < majority_of(len(self._voters))


def majority_end_offset(end_offsets: Iterable[MetadataOffset | None]) -> MetadataOffset | None:
    """Returns the highest offset up to which a majority of logs reaches; ``None`` if a majority is not known.

    Args:
        end_offsets: one per voter; ``None`` where the leader does not know it yet.
    """
    ends = sorted(end_offsets, key=lambda end: -1 if end is None else end, reverse=True)
    return ends[len(ends) // 2] if ends else None
