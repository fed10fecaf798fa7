"""Effects of a node of the quorum, beside the requests and responses of ``core/effects.py``.

The driver executes them in list order, and each file effect is complete, and durable if documented so, before the next
one starts: above all before any message leaves.
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core.effects import Effect, SendRequest, SendResponse
from laststand.emulator.core.quorum.batches import LogPosition, QuorumBatch, Snapshot
from laststand.emulator.core.quorum.events import QuorumEvent
from laststand.emulator.core.quorum.voter_set import ReplicaKey
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId


class Election(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the file ``quorum-state``.

    Attributes:
        leader_epoch: the highest that this node has seen.
        leader_id: of that epoch, if known.
        voted: the candidate that this node has voted for in that epoch.
    """

    leader_epoch: LeaderEpoch = LeaderEpoch(0)
    leader_id: NodeId | None = None
    voted: ReplicaKey | None = None


class WriteElection(Effect, frozen=True, kw_only=True):
    """Replace ``quorum-state``; if ``is_synced``, file and name are durable before the next effect."""

    election: Election
    kraft_version: int
    is_synced: bool


class AppendBatches(Effect, frozen=True, kw_only=True):
    """Append to the metadata log, not yet durably."""

    batches: tuple[QuorumBatch, ...]


class SyncMetadata(Effect, frozen=True, kw_only=True):
    """Sync the metadata log; completes as ``LogSynced`` with the same fields. One sync may serve several.

    Attributes:
        end_offset: end of the records that become durable.
        generation: of the log; each truncation raises it, as a sync before a truncation does not cover later records.
    """

    end_offset: MetadataOffset
    generation: int


class TruncateMetadata(Effect, frozen=True, kw_only=True):
    """Cut the metadata log, durably."""

    end_offset: MetadataOffset


class StoreSnapshot(Effect, frozen=True, kw_only=True):
    """Write a snapshot: bytes, name and directory are durable before the next effect."""

    snapshot: Snapshot


class RestartMetadata(Effect, frozen=True, kw_only=True):
    """Replace the whole log by an empty one that begins at a snapshot which is stored."""

    position: LogPosition


class AnnounceLeader(Effect, frozen=True, kw_only=True):
    """Report the leader to the state machine. If it is this node, the state machine has all records below the epoch."""

    leader_epoch: LeaderEpoch
    leader_id: NodeId | None


class Commit(Effect, frozen=True, kw_only=True):
    """Records below ``end_offset`` are committed; the state machine may apply them."""

    end_offset: MetadataOffset


class LoadSnapshot(Effect, frozen=True, kw_only=True):
    """Reset the state machine to a stored snapshot."""

    position: LogPosition


class AcceptProposal(Effect, frozen=True, kw_only=True):
    """Proposed records got offsets, but may still be lost; once ``last_offset`` is committed, all of them are."""

    proposal_id: int
    last_offset: MetadataOffset


class RefuseProposal(Effect, frozen=True, kw_only=True):
    """Nothing was appended: this node does not lead, or no longer leads that epoch."""

    proposal_id: int


class EndProcess(Effect, frozen=True, kw_only=True):
    """An orderly stop is complete: another node leads, or no new leader was found in time."""


class RecordQuorumEvent(Effect, frozen=True, kw_only=True):
    """Write a line of evidence."""

    event: QuorumEvent


QuorumEffect: TypeAlias = (
    SendRequest
    | SendResponse
    | WriteElection
    | AppendBatches
    | SyncMetadata
    | TruncateMetadata
    | StoreSnapshot
    | RestartMetadata
    | AnnounceLeader
    | Commit
    | LoadSnapshot
    | AcceptProposal
    | RefuseProposal
    | EndProcess
    | RecordQuorumEvent
)
