"""The six states of a node of the quorum (Kafka's ``QuorumState`` and the classes of its states).

    Unattached   knows no leader that it could follow        -> Prospective, Follower
    Prospective  asks whether it could win (KIP-996)         -> Candidate, Follower, Unattached
    Candidate    asks for votes of its own epoch             -> Leader, Prospective, Follower, Unattached
    Leader       appends, and counts what voters have        -> Resigned, Follower, Unattached
    Follower     fetches from the leader                     -> Prospective, Follower, Unattached
    Resigned     led this epoch, and leads it no more        -> Unattached, Follower

A higher epoch leads from any state to Unattached or Follower. An observer is only ever Unattached or Follower.
Deadlines are in the node's own time.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.quorum.batches import ControlRecord, LogPosition
from laststand.emulator.core.quorum.tally import VoteTally
from laststand.emulator.core.quorum.voter_set import ReplicaKey, Voter
from laststand.emulator.core.types import CauseId, LeaderEpoch, MetadataOffset, NodeId, RequestId


class IllegalQuorumState(InvariantError):
    """A state that no correct node reaches: two leaders of one epoch, or a withdrawn vote. The process stops."""


class IllegalCall(InvariantError):
    """The state machine on top made a request that no rule allows; nothing was changed."""


@dataclass(slots=True, kw_only=True)
class Unattached:
    """Attributes as in ``Prospective``."""

    leader_epoch: LeaderEpoch
    leader_id: NodeId | None
    voted: ReplicaKey | None
    high_watermark: MetadataOffset | None
    election_deadline_ms: int


@dataclass(slots=True, kw_only=True)
class Prospective:
    """Asks for pre-votes.

    Attributes:
        leader_epoch: of the node; asking for pre-votes does not raise it.
        leader_id: of that epoch, if known.
        voted: the candidate that this node has voted for in that epoch.
        high_watermark: the last known one.
        election_deadline_ms: end of this attempt.
        tally: of pre-votes.
    """

    leader_epoch: LeaderEpoch
    leader_id: NodeId | None
    voted: ReplicaKey | None
    high_watermark: MetadataOffset | None
    election_deadline_ms: int
    tally: VoteTally


@dataclass(slots=True, kw_only=True)
class Candidate:
    """Asks for votes; has its own. Attributes as in ``Prospective``."""

    leader_epoch: LeaderEpoch
    voted: ReplicaKey
    high_watermark: MetadataOffset | None
    election_deadline_ms: int
    tally: VoteTally
    leader_id: None = None


@dataclass(slots=True, kw_only=True)
class Progress:
    """The leader's knowledge of one replica; ``None`` where there is none.

    Attributes:
        end_offset: of its log, synced, if it is a voter.
        last_fetch_ms: of its last valid fetch.
        last_fetch_end_offset: the leader's end at that time.
        last_caught_up_ms: when it last had all records of the leader.
    """

    end_offset: MetadataOffset | None = None
    last_fetch_ms: int | None = None
    last_fetch_end_offset: MetadataOffset | None = None
    last_caught_up_ms: int | None = None


@dataclass(slots=True, kw_only=True)
class PendingChange:
    """A waiting request to add or remove a voter.

    Attributes:
        request_id: to be answered.
        cause_id: of the request.
        deadline_ms: deadline of its answer; an appended record stays.
        adding: the voter, until its versions are known.
        correlation_id: of the ApiVersions request for its versions.
        ack_when_committed: answer at the commit, not at the append.
        last_offset: of the record, once it is appended.
    """

    request_id: RequestId
    cause_id: CauseId
    deadline_ms: int
    adding: Voter | None = None
    ack_when_committed: bool = True
    last_offset: MetadataOffset | None = None


@dataclass(slots=True, kw_only=True)
class Collected:
    """Records that wait to be appended as one batch, by ``deadline_ms``."""

    control: tuple[ControlRecord, ...] = ()
    values: tuple[bytes, ...] = ()
    deadline_ms: int

    @property
    def count(self) -> int:
        """The number of records."""
        return len(self.control) + len(self.values)


@dataclass(slots=True, kw_only=True)
class Leader:
    """Leads its epoch.

    Attributes:
        leader_epoch: its epoch.
        leader_id: itself.
        epoch_start_offset: end of its log when it was elected; nothing is committed until a majority is past it.
        high_watermark: ``None`` until then.
        progress: of voters, by replica key.
        observers: of all others that fetch.
        fetched: voters that have fetched since ``check_quorum_deadline_ms`` was set.
        check_quorum_deadline_ms: when it resigns.
        begin_quorum_deadline_ms: when it next announces itself.
        collected: batches to be appended, in order.
        granted: the voters that voted for it.
        change: of voters, that waits.
        is_resigning: its state machine asked it to resign, or it was removed from the set.
    """

    leader_epoch: LeaderEpoch
    leader_id: NodeId
    epoch_start_offset: MetadataOffset
    progress: dict[ReplicaKey, Progress]
    check_quorum_deadline_ms: int
    begin_quorum_deadline_ms: int
    granted: tuple[NodeId, ...]
    high_watermark: MetadataOffset | None = None
    observers: dict[ReplicaKey, Progress] = field(default_factory=dict)
    fetched: set[ReplicaKey] = field(default_factory=set)
    collected: list[Collected] = field(default_factory=list)
    change: PendingChange | None = None
    is_resigning: bool = False
    voted: None = None


@dataclass(slots=True, kw_only=True)
class Download:
    """A snapshot that arrives in parts."""

    position: LogPosition
    content: bytes = b""


@dataclass(slots=True, kw_only=True)
class Follower:
    """Follows the leader of its epoch.

    Attributes:
        has_fetched: successfully from this leader; then it refuses pre-votes.
        fetch_deadline_ms: when it gives up the leader.
        update_voter_deadline_ms: when it next checks that the voters record has its current address and versions.
        download: of a snapshot, in place of fetching.
    """

    leader_epoch: LeaderEpoch
    leader_id: NodeId
    voted: ReplicaKey | None
    high_watermark: MetadataOffset | None
    fetch_deadline_ms: int
    update_voter_deadline_ms: int
    has_fetched: bool = False
    download: Download | None = None


@dataclass(slots=True, kw_only=True)
class Resigned:
    """Was leader of this epoch.

    Attributes:
        unacknowledged: voters that have not confirmed EndQuorumEpoch.
        preferred_successors: the longest log first.
    """

    leader_epoch: LeaderEpoch
    leader_id: NodeId
    election_deadline_ms: int
    unacknowledged: set[NodeId]
    preferred_successors: tuple[ReplicaKey, ...]
    voted: None = None
    high_watermark: None = None


QuorumState: TypeAlias = Unattached | Prospective | Candidate | Leader | Follower | Resigned
