"""Records of ``__consumer_offsets`` as values: what the coordinators of groups write, and load again."""

from typing import Final, TypeAlias

import msgspec

from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import LeaderEpoch, ProducerIdentity, TopicId, TopicPartition

CONSUMER_PROTOCOL: Final = "consumer"
"""The protocol type of consumers, whose subscriptions name topics (Kafka's ``ConsumerProtocol``)."""


class OffsetCommitted(msgspec.Struct, frozen=True, kw_only=True):
    """A group's position in a partition (Kafka's ``OffsetCommitKey`` and ``OffsetCommitValue``).

    Attributes:
        group_id: the group.
        partition: the partition of the position.
        offset: of the next record to read.
        leader_epoch: of the last record that was read, if the client said so (KIP-320).
        metadata: the client's text.
        topic_id: of the topic, if the client named it by id.
        committed_ms: when, by the coordinator's clock.
        retention_ms: how long it is valid, if the client said so (OffsetCommit up to version 4).
        producer: the producer whose transaction it is part of; it takes effect when that commits.
    """

    group_id: str
    partition: TopicPartition
    offset: int
    leader_epoch: LeaderEpoch | None = None
    metadata: str = ""
    topic_id: TopicId | None = None
    committed_ms: int
    retention_ms: int | None = None
    producer: ProducerIdentity | None = None


class OffsetRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """A group has no position in a partition any more (a tombstone)."""

    group_id: str
    partition: TopicPartition


class MemberMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a stable group.

    Attributes:
        member_id: of the member.
        instance_id: of a static member (KIP-345).
        client_id: the client's id.
        client_host: its address.
        rebalance_timeout_ms: how long it may take to join again.
        session_timeout_ms: how long it lives without a heartbeat.
        subscription: its metadata for the selected protocol, opaque to the coordinator.
        topics: topics in ``subscription``; ``None`` if they cannot be read from it.
        assignment: its assignment by the leader, opaque to the coordinator.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    topics: tuple[str, ...] | None
    assignment: bytes


class GroupMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """A group at the start of a generation (Kafka's ``GroupMetadataKey`` and ``GroupMetadataValue``).

    Attributes:
        group_id: of the group.
        protocol_type: such as ``consumer``; ``""`` for a group that never had a member.
        generation_id: of the generation.
        protocol_name: the selected assignor; ``None`` without members.
        leader: the member that computes the assignment; ``None`` without members.
        members: in the order in which they joined.
        state_ms: when it reached its state, by the coordinator's clock, if that is known.
    """

    group_id: str
    protocol_type: str
    generation_id: int
    protocol_name: str | None = None
    leader: str | None = None
    members: tuple[MemberMetadata, ...] = ()
    state_ms: int | None = None


class GroupRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """A group is gone (a tombstone)."""

    group_id: str


class PositionsHeld(msgspec.Struct, frozen=True, kw_only=True):
    """Positions committed before this record are not answered, as later ones may be lost (KIP-704); not in Kafka."""


GroupRecord: TypeAlias = (
    OffsetCommitted | OffsetRemoved | GroupMetadata | GroupRemoved | PositionsHeld | TransactionEnded
)
"""A record of ``__consumer_offsets``, in which markers end transactions that committed positions."""
