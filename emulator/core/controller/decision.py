"""Decisions of the controller: a metadata record, and its reason.

Decisions are values. ``Controller`` replays the record at once; the reason waits with it until the record is durable
and then becomes a line of the event log.
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core import events, records
from laststand.emulator.core.types import BrokerEpoch, BrokerId, ChangeReason, FenceReason, RecoveryStrategy


class UncleanElection(msgspec.Struct, frozen=True, kw_only=True):
    """The method by which an unclean election found its leader; the fields are those of ``UncleanLeaderElected``."""

    method: events.UncleanMethod
    strategy: RecoveryStrategy
    candidates: tuple[BrokerId, ...]
    why: str
    draw: int | None = None
    must_hear_from: tuple[BrokerId, ...] = ()
    answers: tuple[events.ReplicaAnswer, ...] = ()
    discarded: tuple[BrokerId, ...] = ()


class PartitionCause(msgspec.Struct, frozen=True, kw_only=True):
    """Reason why a partition was created or changed.

    Attributes:
        reason: the reason of the change.
        election: how the leader was chosen, if it was.
        broker_id: the broker that the reason is about, or the sender of the AlterPartition.
        effective_min_isr: min ISR that the decision was made with.
        unclean: the details of an unclean election that found a leader.
    """

    reason: ChangeReason
    election: events.Election
    broker_id: BrokerId | None
    effective_min_isr: int
    unclean: UncleanElection | None = None


class RegistrationCause(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement of a new incarnation: the epoch that it claims, the registered one, and the verdict."""

    previous_broker_epoch: BrokerEpoch | None
    stored_broker_epoch: BrokerEpoch | None
    is_clean: bool


class FencingCause(msgspec.Struct, frozen=True, kw_only=True):
    """Reason why a broker was fenced."""

    reason: FenceReason


class ElrCause(msgspec.Struct, frozen=True, kw_only=True):
    """Reason why all partitions of a topic, or of all, have no eligible leader replicas any more."""

    reason: ChangeReason


Cause: TypeAlias = PartitionCause | RegistrationCause | FencingCause | ElrCause


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A record to append; ``cause`` is ``None`` if the record has all information."""

    record: records.Record
    cause: Cause | None = None
