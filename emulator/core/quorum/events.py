"""Events of the quorum, by which an oracle judges it, in addition to the logs on disk."""

from typing import TypeAlias

import msgspec

from laststand.emulator.core.quorum.voter_set import ReplicaKey
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Fields of every event: the replica that reports it, and its epoch."""

    replica: ReplicaKey
    leader_epoch: LeaderEpoch


class VoteGranted(_Event, frozen=True, kw_only=True):
    """A replica voted; ``candidate`` may be itself."""

    candidate: ReplicaKey


class LeaderElected(_Event, frozen=True, kw_only=True):
    """A replica became leader; its own epoch begins at ``start_offset``, the end of its log."""

    start_offset: MetadataOffset


class LeaderClaimed(_Event, frozen=True, kw_only=True):
    """A leader's state machine was notified that it leads; it has all committed records below that offset."""

    applied_end_offset: MetadataOffset


class LeaderLearned(_Event, frozen=True, kw_only=True):
    """A replica follows a leader."""

    leader_id: NodeId


class LeaderResigned(_Event, frozen=True, kw_only=True):
    """A leader gave up its leadership before it knew another leader."""


class LeaderDeposed(_Event, frozen=True, kw_only=True):
    """A leader received a higher epoch, which is ``leader_epoch`` here."""


class HighWatermarkAdvanced(_Event, frozen=True, kw_only=True):
    """A replica exposes records below ``high_watermark``."""

    high_watermark: MetadataOffset
    is_leader: bool


class LogTruncated(_Event, frozen=True, kw_only=True):
    """A follower cut its log."""

    from_end_offset: MetadataOffset
    end_offset: MetadataOffset


class VotersChanged(_Event, frozen=True, kw_only=True):
    """A leader appended another set of voters at ``offset``."""

    offset: MetadataOffset
    voters: tuple[ReplicaKey, ...]


QuorumEvent: TypeAlias = (
    VoteGranted
    | LeaderElected
    | LeaderClaimed
    | LeaderLearned
    | LeaderResigned
    | LeaderDeposed
    | HighWatermarkAdvanced
    | LogTruncated
    | VotersChanged
)
