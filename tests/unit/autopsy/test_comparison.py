"""Comparison of logs, where they part and what one lacks, against a twin that looks at every offset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laststand.emulator.autopsy.comparison import Log, PartedBy, Parting, ProducerShare, epochs_of, part, surplus
from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerId
from tests.unit.autopsy.logs import Batch, log_of


@st.composite
def continuations(draw: st.DrawFn, first_epoch: int, first_content: int) -> list[Batch]:
    """Batches in epochs that do not fall; others that begin with another content are not the same."""
    epoch, batches = first_epoch, []
    for place in range(draw(st.integers(0, 5))):
        epoch += draw(st.integers(0, 2))
        batches.append(Batch(draw(st.integers(1, 4)), epoch, first_content + place, draw(st.integers(-1, 2))))
    return batches


@st.composite
def forked_logs(draw: st.DrawFn) -> tuple[Log, Log]:
    """Two logs with a common beginning, each of which may have lost its first batches to retention."""
    common = draw(continuations(0, 0))
    epoch = common[-1].leader_epoch if common else 0
    logs = []
    for first_content in (100, 200):
        batches = common + draw(continuations(epoch, first_content))
        dropped = draw(st.integers(0, max(len(batches) - 1, 0)))
        start = sum(batch.length for batch in batches[:dropped])
        logs.append(log_of(batches[dropped:], start=start))
    return logs[0], logs[1]


def records(log: Log) -> dict[int, tuple[int, int]]:
    """Returns epoch and content by offset."""
    return {
        offset: (int(batch["leader_epoch"]), int(batch["crc"]))
        for batch in log.batches
        for offset in range(int(batch["base_offset"]), int(batch["last_offset"]) + 1)
    }


def first_difference(left: Log, right: Log) -> int:
    """Returns the first offset, of those that both may have, at which they hold different records."""
    mine, other = records(left), records(right)
    offset = max(left.log_start_offset, right.log_start_offset)
    end = max(left.log_end_offset, right.log_end_offset)
    return next((each for each in range(offset, end) if mine.get(each) != other.get(each)), end)


@given(forked_logs())
def test_logs_part_at_the_first_difference(logs: tuple[Log, Log]) -> None:
    left, right = logs
    parting = part(left, right, is_compacted=False)
    assert part(right, left, is_compacted=False) == parting
    later = max(left.log_start_offset, right.log_start_offset)
    if later < min(left.log_end_offset, right.log_end_offset):
        # Epochs may tell of a difference at offsets that one of them does not have any more.
        assert max(parting.offset, later) == first_difference(left, right)
    # Whatever is not shared is beyond: what retention took from one log is no difference.
    lacking = {offset for offset, record in records(left).items() if records(right).get(offset) != record}
    assert all(offset >= parting.offset for offset in lacking if offset >= later)


@given(forked_logs())
def test_logs_part_by_nothing_only_where_they_end_alike(logs: tuple[Log, Log]) -> None:
    left, right = logs
    parting = part(left, right, is_compacted=False)
    if parting.parted_by is PartedBy.NOTHING:
        assert left.log_end_offset == right.log_end_offset == parting.offset
    else:
        assert parting.offset < max(left.log_end_offset, right.log_end_offset)


@given(forked_logs(), st.integers(0, 40), st.integers(0, 40))
def test_a_surplus_counts_what_is_there(logs: tuple[Log, Log], start: int, end: int) -> None:
    log = logs[0]
    found = surplus(log, start=Offset(start), end=Offset(end))
    offsets = [offset for offset in records(log) if start <= offset < end]
    assert found.records == len(offsets) == sum(share.records for share in found.producers)
    assert (found.first_offset, found.last_offset) == ((offsets[0], offsets[-1]) if offsets else (None, None))


def test_an_epoch_parts_logs() -> None:
    left = log_of([Batch(10, 0, 1), Batch(5, 0, 2)])
    right = log_of([Batch(10, 0, 1), Batch(3, 2, 3)])
    assert part(left, right, is_compacted=False) == Parting(offset=Offset(10), parted_by=PartedBy.EPOCH)


def test_a_beginning_ends() -> None:
    left, right = log_of([Batch(10, 0, 1), Batch(5, 0, 2)]), log_of([Batch(10, 0, 1)])
    assert part(left, right, is_compacted=False) == Parting(offset=Offset(10), parted_by=PartedBy.END)


def test_batches_part_logs_that_agree_on_epochs() -> None:
    left, right = log_of([Batch(4, 0, 1), Batch(4, 0, 2)]), log_of([Batch(4, 0, 1), Batch(4, 0, 3)])
    assert part(left, right, is_compacted=False) == Parting(offset=Offset(4), parted_by=PartedBy.BATCH)


def test_batches_of_compacted_logs_are_not_compared() -> None:
    left, right = log_of([Batch(4, 0, 1), Batch(4, 0, 2)]), log_of([Batch(4, 0, 9), Batch(4, 0, 2)])
    assert part(left, right, is_compacted=True) == Parting(offset=Offset(8), parted_by=PartedBy.NOTHING)


def test_an_empty_log_lacks_everything() -> None:
    full, empty = log_of([Batch(4, 0, 1)]), log_of([])
    assert part(full, empty, is_compacted=False) == Parting(offset=Offset(0), parted_by=PartedBy.END)
    assert surplus(full, start=Offset(0)).records == 4
    assert part(empty, log_of([]), is_compacted=False).parted_by is PartedBy.NOTHING


def test_a_surplus_lists_its_records_by_producer() -> None:
    log = log_of([Batch(4, 0, 1, 7), Batch(2, 0, 2, -1), Batch(3, 1, 3, 7), Batch(1, 1, 4, 7, is_control=True)])
    found = surplus(log, start=Offset(4))
    assert (found.records, found.markers, found.bytes) == (5, 1, 600)
    assert (found.first_timestamp_ms, found.last_timestamp_ms) == (4000, 9000)
    assert found.producers == (
        ProducerShare(producer_id=ProducerId(7), records=3),
        ProducerShare(producer_id=None, records=2),
    )


def test_deleted_records_are_no_surplus() -> None:
    log = log_of([Batch(4, 0, 1), Batch(4, 0, 2)])
    deleted = Log(log_start_offset=Offset(6), log_end_offset=log.log_end_offset, epochs=log.epochs, batches=log.batches)
    assert surplus(deleted, start=Offset(0)).records == 2


@pytest.mark.parametrize(
    ("checkpointed", "expected"),
    [
        ((), ((3, 20), (5, 24))),
        (((1, 0), (3, 12), (5, 24)), ((1, 0), (3, 12), (5, 24))),
        (((5, 24), (6, 28)), ((3, 20), (5, 24))),
    ],
)
def test_epochs_come_from_batches_and_before_them_from_the_checkpoint(
    checkpointed: tuple[tuple[int, int], ...], expected: tuple[tuple[int, int], ...]
) -> None:
    log = log_of([Batch(4, 3, 1), Batch(4, 5, 2)], start=20)
    entries = [EpochEntry(LeaderEpoch(epoch), Offset(offset)) for epoch, offset in checkpointed]
    found = epochs_of(log.batches, entries, end=log.log_end_offset)
    assert tuple((entry.leader_epoch, entry.start_offset) for entry in found) == expected
