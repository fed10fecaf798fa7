"""Batches as clients know them: acknowledged, lost, received; and the leaders by which they are judged."""

from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core.promises import Exemption
from laststand.emulator.core.types import CauseId
from laststand.emulator.verification.facts.losses import LossClass


class SettledLeader(msgspec.Struct, frozen=True, kw_only=True):
    """The leader whose log decides which records a partition has at the end."""

    leader: int
    leader_epoch: int


LAST_INCARNATION: Final = 2**62
"""Stands for an unknown process of a leader; it sorts after all known processes of its epoch."""


class TermPlace(NamedTuple):
    """The sort key of a partition's terms: leader epoch, then incarnation of the broker that leads in that epoch."""

    leader_epoch: int
    incarnation: int


class LeaderTerm(NamedTuple):
    """The leadership of one process in one leader epoch, and its log end offset when it became leader.

    Attributes:
        leader_epoch: in which it led; a broker that restarts may lead again in the epoch of its former process.
        incarnation: of the node; it orders the terms of one epoch.
        unelected_at: if the process was started after the election, the end of the metadata (exclusive) by which it
            became leader; ``None`` if this process itself was elected.
    """

    leader_epoch: int
    incarnation: int
    node: int
    log_end_offset: int
    unelected_at: int | None

    def __str__(self) -> str:
        """Returns the leader without a batch, in the words of findings."""
        how = "was elected" if self.unelected_at is None else "was restarted, and led"
        return f"broker {self.node} {how} in epoch {self.leader_epoch} with a log that ended at {self.log_end_offset}"

    @property
    def place(self) -> TermPlace:
        """The sort key of this term among the partition's terms."""
        return TermPlace(self.leader_epoch, self.incarnation)


class AckedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """An acknowledged batch.

    Attributes:
        topic_id: ``None`` if no evidence names it.
        node: the broker that acknowledged it.
        leader_epoch: epoch in which that broker appended it, by its log.
        acked_epoch: epoch in which it was acknowledged; later than ``leader_epoch`` if the producer retried.
        acked_incarnation: of the process that acknowledged it; ``LAST_INCARNATION`` if no answer names it.
        process: the producer.
    """

    topic_id: str | None
    base_offset: int
    last_offset: int
    crc: int | None
    record_count: int
    acks: int
    process: str
    operation_id: CauseId
    node: int | None
    leader_epoch: int | None
    acked_epoch: int | None
    acked_incarnation: int


class LostBatch(msgspec.Struct, frozen=True, kw_only=True):
    """An acknowledged batch (any acks) that is not where it must be.

    Attributes:
        holders: nodes whose final logs have the batch.
        lacking: the term of the first leader without it.
        settled: the leader whose log decides, if one does.
        exempted_by: the exemption of D1 that applies, if any.
    """

    batch: AckedBatch
    loss_class: LossClass
    holders: tuple[int, ...]
    lacking: LeaderTerm | None
    settled: SettledLeader | None
    exempted_by: Exemption | None = None


class ConsumedBatch(NamedTuple):
    """A batch that a consumer received, and the epoch of the leader that served it, if known."""

    topic_id: str | None
    process: str
    served_epoch: int | None
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    producer: str
    first_record_id: int
    record_count: int
