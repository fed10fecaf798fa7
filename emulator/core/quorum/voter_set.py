"""Voters of the metadata quorum: replica keys, and the set in force (Kafka's ``ReplicaKey``, ``VoterSet``).

A replica is a node id *and* a directory id (KIP-853): a node whose disk was replaced is another replica. Static voters
(``kraft.version`` 0) have no directory ids, and any disk of their node is the voter.
"""

from collections.abc import Iterable
from typing import NamedTuple, NewType

import msgspec

from laststand.emulator.core.types import NodeId

DirectoryId = NewType("DirectoryId", str)
"""Identity of a disk, drawn when it is formatted."""


class ReplicaKey(NamedTuple):
    """A replica of the metadata log; ``directory_id`` is ``None`` where it is not known, or static voters have none."""

    node_id: NodeId
    directory_id: DirectoryId | None = None

    def __str__(self) -> str:
        return f"{self.node_id}" if self.directory_id is None else f"{self.node_id}/{self.directory_id}"

    def is_matched_by(self, other: "ReplicaKey") -> bool:
        """Returns whether ``other`` may be this replica: the same node, and the same directory if this one has any."""
        return self.node_id == other.node_id and self.directory_id in (None, other.directory_id)


class VersionRange(NamedTuple):
    """Levels of ``kraft.version`` that a node supports, both inclusive."""

    lowest: int = 0
    highest: int = 1

    def contains(self, level: int) -> bool:
        """Returns whether the level is supported."""
        return self.lowest <= level <= self.highest


class Voter(msgspec.Struct, frozen=True, kw_only=True):
    """A voter as a voters record names it.

    Attributes:
        key: its node and directory.
        listener: its address, ``host:port``; empty where the transport finds nodes by id.
        versions: supported versions of ``kraft.version``.
    """

    key: ReplicaKey
    listener: str = ""
    versions: VersionRange = VersionRange()


class VoterSet(msgspec.Struct, frozen=True):
    """Voters by node id, ascending. At least one, except where a node does not know any set yet."""

    voters: tuple[Voter, ...] = ()

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> "VoterSet":
        """Returns a set of these voters."""
        return cls(tuple(sorted(voters, key=lambda voter: voter.key.node_id)))

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        """The replica keys of all voters."""
        return tuple(voter.key for voter in self.voters)

    @property
    def node_ids(self) -> tuple[NodeId, ...]:
        """The node ids of all voters."""
        return tuple(voter.key.node_id for voter in self.voters)

    def by_node(self, node_id: NodeId) -> Voter | None:
        """Returns the voter of a node."""
        return next((voter for voter in self.voters if voter.key.node_id == node_id), None)

    def has_voter(self, key: ReplicaKey) -> bool:
        """Returns whether a replica is in the set."""
        voter = self.by_node(key.node_id)
        return voter is not None and voter.key.is_matched_by(key)

    def has_only(self, key: ReplicaKey) -> bool:
        """Returns whether a replica is the only voter."""
        return len(self.voters) == 1 and self.has_voter(key)

    def with_added(self, voter: Voter) -> "VoterSet | None":
        """Returns the set with one more voter; ``None`` if the node is a voter already, with any directory."""
        if self.by_node(voter.key.node_id) is not None:
            return None
        return VoterSet.of((*self.voters, voter))

    def with_removed(self, key: ReplicaKey) -> "VoterSet | None":
        """Returns the set without a voter; ``None`` if it is not there with exactly this key, or the last one."""
        if key not in self.keys or len(self.voters) == 1:
            return None
        return VoterSet.of(voter for voter in self.voters if voter.key != key)

    def with_updated(self, voter: Voter) -> "VoterSet | None":
        """Returns the set with another address and versions of a voter; ``None`` if it is not there."""
        if not self.has_voter(voter.key):
            return None
        others = (other for other in self.voters if other.key.node_id != voter.key.node_id)
        return VoterSet.of((*others, voter))

    def has_overlapping_majority(self, other: "VoterSet") -> bool:
        """Returns whether any majority of one set has a member in any majority of the other: they differ by one."""
        ours, theirs = set(self.keys), set(other.keys)
        return len(ours - theirs) <= 1 and len(theirs - ours) <= 1
