"""Requests to the coordinator of a group, with Kafka's names; part of ``messages.Request`` and ``messages.Response``.

For Kafka's clients, the broker's own process makes these requests. Those of this project's own clients also have a wire
format: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit and OffsetFetch. Group ids, member ids and instance
ids are the client's text; ``""`` is the member id of a client that has none yet.
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.message import Message
from laststand.emulator.core.types import LeaderEpoch, ProducerIdentity, TopicId, TopicPartition


class CoordinatorMessage(Message, frozen=True, kw_only=True):
    """Base of all requests to a coordinator."""


class GroupProtocol(msgspec.Struct, frozen=True, kw_only=True):
    """An assignor that a member supports; ``topics`` is as in ``group_records.MemberMetadata``."""

    name: str
    metadata: bytes
    topics: tuple[str, ...] | None = None


class JoinGroupRequest(CoordinatorMessage, frozen=True, kw_only=True):
    """Joins a group, or joins it again.

    Attributes:
        api_version: decides whether a new member first gets an id (KIP-394), and whether a leader may be asked to skip
            the assignment (KIP-814).
        group_id: of the group.
        member_id: as given by the coordinator.
        drawn_member_id: a fresh id, used if the member needs one.
        instance_id: of a static member.
        client_id: the client's id.
        client_host: its address.
        session_timeout_ms: how long the member lives without a heartbeat.
        rebalance_timeout_ms: how long it may take to join again.
        protocol_type: such as ``consumer``.
        protocols: in order of preference.
    """

    api_version: int
    group_id: str
    member_id: str
    drawn_member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[GroupProtocol, ...]


class JoinedMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member in the list that JoinGroup returns to the leader."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinGroupResponse(Message, frozen=True, kw_only=True):
    """The generation that the member is part of; ``members`` for the leader only."""

    error: ErrorCode
    member_id: str = ""
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


class SyncGroupRequest(CoordinatorMessage, frozen=True, kw_only=True):
    """Requests the member's assignment; the leader's request carries all assignments, by member id."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: tuple[tuple[str, bytes], ...]


class SyncGroupResponse(Message, frozen=True, kw_only=True):
    """The member's assignment."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatRequest(CoordinatorMessage, frozen=True, kw_only=True):
    """Keeps a member's session alive."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation_id: int


class HeartbeatResponse(Message, frozen=True, kw_only=True):
    """NONE, or the reason to join again."""

    error: ErrorCode


class LeavingMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member, by its id, or a static one by its instance id alone."""

    member_id: str
    instance_id: str | None = None


class LeaveGroupRequest(CoordinatorMessage, frozen=True, kw_only=True):
    """Removes members from a group."""

    group_id: str
    members: tuple[LeavingMember, ...]


class LeaveGroupResponse(Message, frozen=True, kw_only=True):
    """The outcome; with NONE, also the outcome of each member in request order."""

    error: ErrorCode
    members: tuple[ErrorCode, ...] = ()


class CommittedOffset(msgspec.Struct, frozen=True, kw_only=True):
    """A position to be committed; fields as in ``group_records.OffsetCommitted``."""

    partition: TopicPartition
    offset: int
    leader_epoch: LeaderEpoch | None = None
    metadata: str = ""
    topic_id: TopicId | None = None


class OffsetCommitRequest(CoordinatorMessage, frozen=True, kw_only=True):
    """Commits positions, as a member of a generation or, with generation -1, for a group without members.

    ``api_version`` decides the answer for an unknown group; ``retention_ms`` and ``producer`` are as of
    ``group_records.OffsetCommitted``. A producer's transaction (TxnOffsetCommit) is verified first: ``adds_partition``
    has the positions' partition added to it (transaction version 2).
    """

    api_version: int
    group_id: str
    member_id: str
    instance_id: str | None
    generation_id: int
    offsets: tuple[CommittedOffset, ...]
    retention_ms: int | None = None
    producer: ProducerIdentity | None = None
    transactional_id: str = ""
    adds_partition: bool = False


class OffsetCommitResponse(Message, frozen=True, kw_only=True):
    """The outcome of each position in request order."""

    errors: tuple[ErrorCode, ...]


class OffsetFetchRequest(CoordinatorMessage, frozen=True, kw_only=True):
    """Requests a group's positions; ``partitions`` is ``None`` for all of them.

    With ``require_stable`` the answer has what is written, and waits until that is committed (KIP-447).
    """

    group_id: str
    partitions: tuple[TopicPartition, ...] | None
    require_stable: bool = False


class OffsetFetchResponse(Message, frozen=True, kw_only=True):
    """The committed positions; ``unstable`` are partitions whose position an open transaction may change."""

    error: ErrorCode
    offsets: tuple[CommittedOffset, ...] = ()
    unstable: tuple[TopicPartition, ...] = ()


class OffsetDeleteRequest(CoordinatorMessage, frozen=True, kw_only=True):
    """Removes a group's positions."""

    group_id: str
    partitions: tuple[TopicPartition, ...]


class OffsetDeleteResponse(Message, frozen=True, kw_only=True):
    """The outcome; with NONE, also the outcome of each partition in request order."""

    error: ErrorCode
    errors: tuple[ErrorCode, ...] = ()


class DeleteGroupRequest(CoordinatorMessage, frozen=True, kw_only=True):
    """Removes a group that has no members, with its positions."""

    group_id: str


class DeleteGroupResponse(Message, frozen=True, kw_only=True):
    """The outcome."""

    error: ErrorCode


class DescribeGroupRequest(CoordinatorMessage, frozen=True, kw_only=True):
    """Describes one group."""

    group_id: str


class DescribedMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a group; ``metadata`` (for the selected protocol) is set only in a stable group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribeGroupResponse(Message, frozen=True, kw_only=True):
    """A group; ``state`` is Kafka's name, and ``Dead`` comes with GROUP_ID_NOT_FOUND."""

    error: ErrorCode
    state: str = ""
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


class ListGroupsRequest(CoordinatorMessage, frozen=True, kw_only=True):
    """Asks for the groups that this broker coordinates."""


class ListedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group."""

    group_id: str
    protocol_type: str
    state: str


class ListGroupsResponse(Message, frozen=True, kw_only=True):
    """The groups by id."""

    error: ErrorCode
    groups: tuple[ListedGroup, ...] = ()


GroupRequest: TypeAlias = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | OffsetDeleteRequest
    | DeleteGroupRequest
    | DescribeGroupRequest
)
"""Requests about one group."""

GroupResponse: TypeAlias = (
    JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | OffsetDeleteResponse
    | DeleteGroupResponse
    | DescribeGroupResponse
)

CoordinatorRequest: TypeAlias = GroupRequest | ListGroupsRequest
CoordinatorResponse: TypeAlias = GroupResponse | ListGroupsResponse
