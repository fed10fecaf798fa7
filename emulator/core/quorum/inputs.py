"""Inputs of a node of the quorum, beside those of ``core/inputs.py`` that every node has."""

from typing import TypeAlias

import msgspec

from laststand.emulator.core.inputs import (
    NodeInput,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ShutdownRequested,
    Started,
    TimerFired,
)
from laststand.emulator.core.quorum.batches import LogPosition, QuorumBatch, Snapshot
from laststand.emulator.core.quorum.effects import Election
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset


class LoadedQuorum(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the disk on which a process starts, and its seed.

    Attributes:
        election: from ``quorum-state``; ``None`` where the file is missing.
        snapshots: whole ones, by position, ascending.
        batches: of the log, in order, from offset 0 or from the end of a snapshot on.
        seed: random; election timeouts and the choice among bootstrap servers follow from it.
    """

    election: Election | None = None
    snapshots: tuple[Snapshot, ...] = ()
    batches: tuple[QuorumBatch, ...] = ()
    seed: int = 0


class LogSynced(NodeInput, frozen=True, kw_only=True):
    """The log is durable below ``end_offset``: completes ``SyncMetadata``."""

    end_offset: MetadataOffset
    generation: int


class Proposed(NodeInput, frozen=True, kw_only=True):
    """The state machine wants records appended, as leader of an epoch; answered by ``proposal_id``."""

    proposal_id: int
    leader_epoch: LeaderEpoch
    values: tuple[bytes, ...]


class ResignRequested(NodeInput, frozen=True, kw_only=True):
    """The state machine wants to lead an epoch no longer; without effect once that epoch is over."""

    leader_epoch: LeaderEpoch


class SnapshotTaken(NodeInput, frozen=True, kw_only=True):
    """The state machine has stored the state that it has applied below ``position``."""

    position: LogPosition
    content: bytes


QuorumInput: TypeAlias = (
    Started
    | TimerFired
    | RequestReceived
    | ResponseReceived
    | RequestFailed
    | ShutdownRequested
    | LogSynced
    | Proposed
    | ResignRequested
    | SnapshotTaken
)
