"""Contents of the metadata log: batches of records, control records, and snapshots of the resulting state (KIP-630).

The values that controllers write are opaque here. Control records are the quorum's own; they are in the same log and
take offsets like any other record.
"""

from typing import NamedTuple, TypeAlias

import msgspec

from laststand.emulator.core.quorum.voter_set import VoterSet
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId


class LogPosition(NamedTuple):
    """End of a log: epoch of its last record, and its end offset. Ordered by how up to date a log is: epoch first."""

    leader_epoch: LeaderEpoch
    end_offset: MetadataOffset


class LeaderChange(msgspec.Struct, frozen=True, kw_only=True, tag="LeaderChange"):
    """The first record of an epoch: without it nothing of older epochs could be committed (KIP-595)."""

    leader_id: NodeId
    voters: tuple[NodeId, ...]
    granting_voters: tuple[NodeId, ...]


class KRaftVersion(msgspec.Struct, frozen=True, kw_only=True, tag="KRaftVersion"):
    """The finalized ``kraft.version``: 1 has directory ids and changes of voters (KIP-853)."""

    level: int


class KRaftVoters(msgspec.Struct, frozen=True, kw_only=True, tag="KRaftVoters"):
    """The set of voters from this record on, committed or not (KIP-853)."""

    voters: VoterSet


ControlRecord: TypeAlias = LeaderChange | KRaftVersion | KRaftVoters


class QuorumBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Records that are appended, replicated and cut together.

    Attributes:
        base_offset: of the first record.
        leader_epoch: in which a leader appended it.
        control: control records; then there are no values.
        values: opaque records of the state machine.
    """

    base_offset: MetadataOffset
    leader_epoch: LeaderEpoch
    control: tuple[ControlRecord, ...] = ()
    values: tuple[bytes, ...] = ()

    @property
    def end_offset(self) -> MetadataOffset:
        """The offset after its last record."""
        return MetadataOffset(self.base_offset + len(self.control) + len(self.values))


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state at an offset, in place of the records below it.

    Attributes:
        position: epoch of the last record that it contains, and the offset after that; its id.
        voters: the set at that offset; ``None`` where voters are static.
        kraft_version: at that offset.
        content: opaque; what FetchSnapshot carries, by position in bytes.
    """

    position: LogPosition
    voters: VoterSet | None
    kraft_version: int
    content: bytes
