"""Compares replicas' logs: where they diverge, and which records one log has and another lacks. Pure.

Two logs *part* at the first offset at which they may hold different records. By Kafka's own rule (KIP-101, KIP-279)
that is the smaller of their ends of the newest leader epoch that both have. The batches are stronger evidence: if two
of them differ below that offset, the logs part there, although no epoch shows it. A compacted log is an exception: its
cleaner rewrites batches, on each replica at another time, so that only epochs count.

Offsets of compacted logs have gaps. What a log holds is counted by its batches' headers, never by offsets. A batch in
which logs part is counted from that offset on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerId

_NO_PRODUCER: Final = -1
_NO_TIMESTAMP: Final = -1

BATCH_COLUMNS: Final = np.dtype(
    [
        ("base_offset", "i8"),
        ("last_offset", "i8"),
        ("leader_epoch", "i8"),
        ("crc", "i8"),
        ("size", "i8"),
        ("record_count", "i8"),
        ("base_timestamp", "i8"),
        ("max_timestamp", "i8"),
        ("producer_id", "i8"),
        ("is_control", "?"),
    ]
)
"""The columns of a batch that are compared; ``producer_id`` -1 is none, ``last_offset`` is inclusive."""

Batches = NDArray[np.void]
"""An array of ``BATCH_COLUMNS``, by offset."""


@dataclass(frozen=True, kw_only=True)
class Log:
    """A replica's log.

    Attributes:
        log_start_offset: of the first record that may be read.
        log_end_offset: exclusive.
        epochs: where each leader epoch begins, ascending.
        batches: all of them, ascending.
    """

    # Invariant: log_start_offset <= log_end_offset.
    log_start_offset: Offset
    log_end_offset: Offset
    epochs: tuple[EpochEntry, ...]
    batches: Batches

    @property
    def has_gaps(self) -> bool:
        """True if records are missing between others, as after log cleaning."""
        lengths = self.batches["last_offset"] - self.batches["base_offset"] + 1
        is_gap = self.batches["base_offset"][1:] > self.batches["last_offset"][:-1] + 1
        return bool(np.any(self.batches["record_count"] < lengths) or np.any(is_gap))

    @property
    def last_leader_epoch(self) -> LeaderEpoch | None:
        """The newest epoch; ``None`` for a log without any."""
        return self.epochs[-1].leader_epoch if self.epochs else None

    def end_of(self, leader_epoch: LeaderEpoch) -> Offset:
        """Returns where the next epoch begins, or the log ends."""
        later = [entry.start_offset for entry in self.epochs if entry.leader_epoch > leader_epoch]
        return Offset(min(later[0], self.log_end_offset)) if later else self.log_end_offset


class PartedBy(Enum):
    """The evidence that two logs differ."""

    NOTHING = "nothing"
    """They are the same."""

    END = "end"
    """One is the beginning of the other."""

    EPOCH = "epoch"
    """The leader epochs of the logs differ."""

    BATCH = "batch"
    """A batch, in an epoch that both have: one leader wrote only one of them."""


class Parting(msgspec.Struct, frozen=True, kw_only=True):
    """The offset at which two logs part; below ``offset`` both hold the same, except records before a log's start."""

    offset: Offset
    parted_by: PartedBy


class ProducerShare(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one producer.

    Attributes:
        producer_id: ``None`` for all producers without idempotence together.
        records: number of records.
    """

    producer_id: ProducerId | None
    records: int


class Surplus(msgspec.Struct, frozen=True, kw_only=True):
    """The records of a log from an offset on.

    Attributes:
        first_offset: of the first batch, or the offset within it at which the logs part; ``None`` without records.
        last_offset: inclusive; ``None`` without records.
        records: of producers.
        markers: ends of transactions.
        bytes: size of the batches as stored: with headers, and compressed if they are.
        first_timestamp_ms: the earliest, by the batches' headers; ``None`` if none has one.
        last_timestamp_ms: the latest.
        producers: the producers of the records, most records first.
    """

    first_offset: Offset | None
    last_offset: Offset | None
    records: int
    markers: int
    bytes: int
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None
    producers: tuple[ProducerShare, ...]


def part(left: Log, right: Log, *, is_compacted: bool) -> Parting:
    """Returns where two logs of a partition part; a cleaner may have rewritten them."""
    by_epoch = _part_by_epoch(left, right)
    if not is_compacted:
        differing = _first_differing_batch(left, right, below=by_epoch.offset)
        if differing is not None:
            return Parting(offset=differing, parted_by=PartedBy.BATCH)
    return by_epoch


def _part_by_epoch(left: Log, right: Log) -> Parting:
    common = {entry.leader_epoch for entry in left.epochs} & {entry.leader_epoch for entry in right.epochs}
    if not common:
        is_one_empty = not left.epochs or not right.epochs
        start = Offset(max(left.log_start_offset, right.log_start_offset))
        if left.log_end_offset == right.log_end_offset and is_one_empty:
            return Parting(offset=left.log_end_offset, parted_by=PartedBy.NOTHING)
        end = min(left.log_end_offset, right.log_end_offset)
        offset = Offset(end) if is_one_empty else Offset(min(start, end))
        return Parting(offset=offset, parted_by=PartedBy.END if is_one_empty else PartedBy.EPOCH)
    newest = max(common)
    left_end, right_end = left.end_of(newest), right.end_of(newest)
    offset = Offset(min(left_end, right_end))
    goes_on = offset < left.log_end_offset, offset < right.log_end_offset
    if not any(goes_on):
        return Parting(offset=offset, parted_by=PartedBy.NOTHING)
    return Parting(offset=offset, parted_by=PartedBy.EPOCH if all(goes_on) else PartedBy.END)


def _first_differing_batch(left: Log, right: Log, *, below: Offset) -> Offset | None:
    """Returns the first offset at which batches of two logs differ, where both have one; ``None`` if none differ."""
    first = max(_first_offset(left), _first_offset(right))
    theirs = [_between(log.batches, first, below) for log in (left, right)]
    shared = min(map(len, theirs))
    mine, other = (batches[:shared] for batches in theirs)
    differ = np.zeros(shared, bool)
    for column in ("base_offset", "last_offset", "leader_epoch", "crc"):
        differ |= mine[column] != other[column]
    places = np.flatnonzero(differ)
    if len(places):
        return Offset(int(min(mine["base_offset"][places[0]], other["base_offset"][places[0]])))
    longer = max(theirs, key=len)
    return Offset(int(longer["base_offset"][shared])) if len(longer) > shared else None


def _first_offset(log: Log) -> int:
    return int(log.batches["base_offset"][0]) if len(log.batches) else log.log_end_offset


def _between(batches: Batches, first: int, end: int) -> Batches:
    """Returns the batches of which no record is below ``first`` and the first is below ``end``."""
    start = int(np.searchsorted(batches["base_offset"], first))
    return batches[start : int(np.searchsorted(batches["base_offset"], end))]


def surplus(log: Log, *, start: Offset, end: Offset | None = None) -> Surplus:
    """Returns the records of a log from ``start``, or its own start, on.

    Args:
        log: the log.
        start: first offset, inclusive.
        end: exclusive; ``None`` is the end of the log.
    """
    stop = log.log_end_offset if end is None else min(end, log.log_end_offset)
    start = max(start, log.log_start_offset)
    if start >= stop:
        return _NOTHING
    first = int(np.searchsorted(log.batches["last_offset"], start))
    chosen = log.batches[first : int(np.searchsorted(log.batches["base_offset"], stop))]
    if not len(chosen):
        return _NOTHING
    firsts = np.maximum(chosen["base_offset"], start)
    lasts = np.minimum(chosen["last_offset"], stop - 1)
    counts = np.minimum(chosen["record_count"], lasts - firsts + 1)
    is_control = chosen["is_control"]
    stamps = np.concatenate([chosen["base_timestamp"], chosen["max_timestamp"]])
    stamps = stamps[stamps > _NO_TIMESTAMP]
    return Surplus(
        first_offset=Offset(int(firsts[0])),
        last_offset=Offset(int(lasts[-1])),
        records=int(counts[~is_control].sum()),
        markers=int(counts[is_control].sum()),
        bytes=int(chosen["size"].sum()),
        first_timestamp_ms=int(stamps.min()) if len(stamps) else None,
        last_timestamp_ms=int(stamps.max()) if len(stamps) else None,
        producers=_shares(chosen["producer_id"][~is_control], counts[~is_control]),
    )


def _shares(producer_ids: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[ProducerShare, ...]:
    known, places = np.unique(producer_ids, return_inverse=True)
    sums = np.bincount(places, weights=counts, minlength=len(known)).astype(int)
    shares = [
        ProducerShare(producer_id=None if each == _NO_PRODUCER else ProducerId(int(each)), records=int(records))
        for each, records in zip(known, sums, strict=True)
    ]
    return tuple(sorted(shares, key=lambda share: (-share.records, share.producer_id or _NO_PRODUCER)))


_NOTHING: Final = Surplus(
    first_offset=None,
    last_offset=None,
    records=0,
    markers=0,
    bytes=0,
    first_timestamp_ms=None,
    last_timestamp_ms=None,
    producers=(),
)


def epochs_of(batches: Batches, checkpointed: Sequence[EpochEntry], *, end: Offset) -> tuple[EpochEntry, ...]:
    """Returns where leader epochs begin, by the batches, and by the checkpoint for epochs before the first batch.

    Entries of the checkpoint at or beyond the log end belong to records that are gone, or to a leader that wrote none.
    """
    starts = np.flatnonzero(np.diff(batches["leader_epoch"], prepend=-2))
    found = {
        LeaderEpoch(int(batches["leader_epoch"][place])): Offset(int(batches["base_offset"][place]))
        for place in reversed(starts)
    }
    for entry in checkpointed:
        if entry.start_offset < end and entry.start_offset <= found.get(entry.leader_epoch, entry.start_offset):
            found[entry.leader_epoch] = entry.start_offset
    return tuple(EpochEntry(epoch, start) for epoch, start in sorted(found.items()))
