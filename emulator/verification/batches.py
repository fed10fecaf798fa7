"""Batches as clients know them: acknowledged, lost, received; and the leaders that decide about them."""

from typing import NamedTuple

import msgspec

from emulator.core.types import CauseId
from emulator.verification.losses import LossClass


class SettledLeader(msgspec.Struct, frozen=True, kw_only=True):
    """The leader whose log decides what a partition holds at the end."""

    leader: int
    leader_epoch: int


class LeaderTerm(NamedTuple):
    """An election whose winner took over as the process that was elected, and where its log ended then."""

    leader_epoch: int
    node: int
    log_end_offset: int


class AckedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that a producer was told is in the log.

    Attributes:
        topic_id: ``None`` where nothing names it.
        node: who acknowledged it.
        leader_epoch: in which it was appended, by the log of who acknowledged it.
        acked_epoch: in which it was acknowledged; later than the other where the producer had tried again.
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


class LostBatch(msgspec.Struct, frozen=True, kw_only=True):
    """An acknowledged batch (any acks) that is not where it must be.

    Attributes:
        holders: nodes whose final logs have it.
        lacking: the first leader elected without it.
        settled: the leader whose log decides, if one does.
    """

    batch: AckedBatch
    loss_class: LossClass
    holders: tuple[int, ...]
    lacking: LeaderTerm | None
    settled: SettledLeader | None


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
