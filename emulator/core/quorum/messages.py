"""Requests and responses of the quorum, with Kafka's names.

``None`` stands for Kafka's -1 and for an absent field. Node ids serve as addresses: a response that names a leader
needs no endpoint. FetchMetadata is Kafka's Fetch of ``__cluster_metadata``; brokers' Fetch of partitions is in
``core/messages.py``.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.message import Message
from laststand.emulator.core.quorum.batches import LogPosition, QuorumBatch
from laststand.emulator.core.quorum.voter_set import ReplicaKey, VersionRange, VoterSet
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId


class VoteRequest(Message, frozen=True, kw_only=True):
    """Asks for a vote (KIP-595), or whether there would be one (KIP-996).

    Attributes:
        cluster_id: not checked if it is absent.
        voter: the addressee.
        candidate: the sender.
        leader_epoch: of the election; of a pre-vote the epoch that the sender is in.
        last_epoch: of the candidate's log.
        last_offset: end of the candidate's log.
        is_pre_vote: asks for a pre-vote, which is not binding.
    """

    cluster_id: str | None
    voter: ReplicaKey | None
    candidate: ReplicaKey
    leader_epoch: LeaderEpoch
    last_epoch: LeaderEpoch
    last_offset: MetadataOffset
    is_pre_vote: bool


class QuorumResponse(Message, frozen=True, kw_only=True):
    """Fields of every response that names the leader.

    Attributes:
        error: or ``NONE``.
        leader_id: the leader, if the responding node knows it.
        leader_epoch: the epoch of the responding node.
        is_top_level: the request as a whole was refused; the response then does not describe the quorum.
    """

    error: ErrorCode
    leader_id: NodeId | None
    leader_epoch: LeaderEpoch
    is_top_level: bool = False


class VoteResponse(QuorumResponse, frozen=True, kw_only=True):
    """Answers a VoteRequest."""

    is_granted: bool


class BeginQuorumEpochRequest(Message, frozen=True, kw_only=True):
    """Announces the leader to a voter, and shows that it is alive (KIP-595, KAFKA-16536)."""

    cluster_id: str | None
    voter: ReplicaKey | None
    leader_id: NodeId
    leader_epoch: LeaderEpoch


class BeginQuorumEpochResponse(QuorumResponse, frozen=True, kw_only=True):
    """Answers a BeginQuorumEpochRequest."""


class EndQuorumEpochRequest(Message, frozen=True, kw_only=True):
    """Announces that the leader resigns, and its preferred successors, the longest log first."""

    cluster_id: str | None
    leader_id: NodeId
    leader_epoch: LeaderEpoch
    preferred_successors: tuple[ReplicaKey, ...]


class EndQuorumEpochResponse(QuorumResponse, frozen=True, kw_only=True):
    """Answers an EndQuorumEpochRequest."""


class FetchMetadataRequest(Message, frozen=True, kw_only=True):
    """Asks the leader for records after the end of the sender's log, and thereby reports that end.

    Attributes:
        cluster_id: not checked if it is absent.
        replica: the sender.
        leader_epoch: the sender's epoch.
        fetch_offset: end of its log.
        last_fetched_epoch: of its log.
        high_watermark: the sender's high watermark (KIP-1166).
        max_wait_ms: how long the leader may wait for new records.
    """

    cluster_id: str | None
    replica: ReplicaKey
    leader_epoch: LeaderEpoch
    fetch_offset: MetadataOffset
    last_fetched_epoch: LeaderEpoch
    high_watermark: MetadataOffset | None
    max_wait_ms: int


class FetchMetadataResponse(QuorumResponse, frozen=True, kw_only=True):
    """Answers a FetchMetadataRequest with at most one of ``diverging``, ``snapshot`` and ``batches``.

    Attributes:
        high_watermark: of the leader, once it knows one.
        log_start_offset: of the leader.
        diverging: where the leader's log ends in the epoch that the logs may agree on.
        snapshot: to be fetched instead.
        batches: from the offset on, committed or not.
    """

    high_watermark: MetadataOffset | None = None
    log_start_offset: MetadataOffset = MetadataOffset(0)
    diverging: LogPosition | None = None
    snapshot: LogPosition | None = None
    batches: tuple[QuorumBatch, ...] = ()


class FetchSnapshotRequest(Message, frozen=True, kw_only=True):
    """Asks the leader for a part of a snapshot (KIP-630); ``position`` is in bytes."""

    cluster_id: str | None
    replica: ReplicaKey
    leader_epoch: LeaderEpoch
    snapshot: LogPosition
    position: int


class FetchSnapshotResponse(QuorumResponse, frozen=True, kw_only=True):
    """Answers a FetchSnapshotRequest.

    Attributes:
        snapshot: its id; ``None`` with an error.
        position: of ``content``, in bytes.
        size: of the whole snapshot, in bytes.
        content: the bytes from there on, as many as fit.
        voters: of the snapshot; with its last part.
        kraft_version: likewise.
    """

    snapshot: LogPosition | None = None
    position: int = 0
    size: int = 0
    content: bytes = b""
    voters: VoterSet | None = None
    kraft_version: int = 0


class AddRaftVoterRequest(Message, frozen=True, kw_only=True):
    """Adds a voter (KIP-853).

    Attributes:
        cluster_id: not checked if it is absent.
        voter: its node and directory.
        listener: its address; ``None`` where the request has none for the default listener.
        ack_when_committed: answer once it is committed, else once it is appended.
    """

    cluster_id: str | None = None
    voter: ReplicaKey
    listener: str | None
    ack_when_committed: bool = True


class RemoveRaftVoterRequest(Message, frozen=True, kw_only=True):
    """Removes a voter (KIP-853)."""

    cluster_id: str | None = None
    voter: ReplicaKey


class VoterChangeResponse(Message, frozen=True, kw_only=True):
    """Answers an AddRaftVoterRequest or a RemoveRaftVoterRequest."""

    error: ErrorCode


class UpdateRaftVoterRequest(Message, frozen=True, kw_only=True):
    """Changes the address or the versions of the voter that sends it (KIP-853)."""

    cluster_id: str | None = None
    leader_epoch: LeaderEpoch
    voter: ReplicaKey
    listener: str | None
    versions: VersionRange


class UpdateRaftVoterResponse(QuorumResponse, frozen=True, kw_only=True):
    """Answers an UpdateRaftVoterRequest, once the record is appended."""


class ApiVersionsRequest(Message, frozen=True, kw_only=True):
    """Asks a replica that is to be added which levels of ``kraft.version`` it supports."""


class ApiVersionsResponse(Message, frozen=True, kw_only=True):
    """Answers an ApiVersionsRequest."""

    error: ErrorCode
    versions: VersionRange | None


class DescribeQuorumRequest(Message, frozen=True, kw_only=True):
    """Asks the leader what it knows of the replicas (KIP-642, KIP-836)."""


class ReplicaProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The leader's view of a replica; ``None`` where it does not know."""

    key: ReplicaKey
    log_end_offset: MetadataOffset | None
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


class DescribeQuorumResponse(Message, frozen=True, kw_only=True):
    """Answers a DescribeQuorumRequest; without error by the leader only."""

    error: ErrorCode
    leader_id: NodeId | None = None
    leader_epoch: LeaderEpoch | None = None
    high_watermark: MetadataOffset | None = None
    voters: tuple[ReplicaProgress, ...] = ()
    observers: tuple[ReplicaProgress, ...] = ()


QuorumRequest: TypeAlias = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchMetadataRequest
    | FetchSnapshotRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
    | ApiVersionsRequest
    | DescribeQuorumRequest
)

QuorumAnswer: TypeAlias = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchMetadataResponse
    | FetchSnapshotResponse
    | VoterChangeResponse
    | UpdateRaftVoterResponse
    | ApiVersionsResponse
    | DescribeQuorumResponse
)

RESPONSE_OF: Final[Mapping[type[Message], type[Message]]] = {
    VoteRequest: VoteResponse,
    BeginQuorumEpochRequest: BeginQuorumEpochResponse,
    EndQuorumEpochRequest: EndQuorumEpochResponse,
    FetchMetadataRequest: FetchMetadataResponse,
    FetchSnapshotRequest: FetchSnapshotResponse,
    AddRaftVoterRequest: VoterChangeResponse,
    RemoveRaftVoterRequest: VoterChangeResponse,
    UpdateRaftVoterRequest: UpdateRaftVoterResponse,
    ApiVersionsRequest: ApiVersionsResponse,
    DescribeQuorumRequest: DescribeQuorumResponse,
}
"""The response type of each request type."""
