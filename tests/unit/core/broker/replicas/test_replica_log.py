"""A log's index: what it reads, cuts and remembers of producers, against lists."""

from itertools import product

import msgspec
import pytest

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import BatchDescriptor, LogSpan
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from tests.unit.core.broker.hosting import NAME, TOPIC_ID, batch

SIZES = (100, 30, 200, 70)
COUNTS = (2, 1, 3, 1)


def sized() -> list[BatchDescriptor]:
    """Batches of different sizes and lengths, from offset 0 on."""
    starts = [sum(COUNTS[:index]) for index in range(len(COUNTS))]
    return [
        msgspec.structs.replace(batch(start, 0, count=count), size=size)
        for start, count, size in zip(starts, COUNTS, SIZES, strict=True)
    ]


def log_of(batches: list[BatchDescriptor]) -> ReplicaLog:
    log = ReplicaLog(NAME, TOPIC_ID)
    for each in batches:
        log.append(each, now_ms=0)
    return log


def visible(batches: list[BatchDescriptor], fetch_offset: int, upper_bound: int) -> list[BatchDescriptor]:
    return [each for each in batches if each.last_offset >= fetch_offset and each.last_offset < upper_bound]


def read_slowly(
    batches: list[BatchDescriptor], fetch_offset: int, *, upper_bound: int, max_bytes: int
) -> LogSpan | None:
    taken: list[BatchDescriptor] = []
    for each in visible(batches, fetch_offset, upper_bound):
        if taken and sum(other.size for other in taken) + each.size > max_bytes:
            break
        taken.append(each)
    if not taken:
        return None
    end_offset = Offset(taken[-1].last_offset + 1)
    return LogSpan(base_offset=taken[0].base_offset, end_offset=end_offset, size=sum(each.size for each in taken))


def cut_slowly(
    batches: list[BatchDescriptor], whole: LogSpan | None, *, upper_bound: int, max_bytes: int
) -> LogSpan | None:
    following = [] if whole is None else visible(batches, whole.end_offset, upper_bound)
    if whole is None or not following or whole.size >= max_bytes:
        return whole
    return LogSpan(base_offset=whole.base_offset, end_offset=Offset(following[0].last_offset + 1), size=max_bytes)


def check_reads(log: ReplicaLog, batches: list[BatchDescriptor]) -> None:
    bounds = [Offset(offset) for offset in range(sum(COUNTS) + 2)]
    for fetch_offset, upper_bound in product(bounds, bounds):
        size = sum(each.size for each in visible(batches, fetch_offset, upper_bound))
        assert log.size_between(fetch_offset, upper_bound) == size
        for max_bytes in (0, 29, 30, 100, 130, 229, 230, 1000):
            wanted = read_slowly(batches, fetch_offset, upper_bound=upper_bound, max_bytes=max_bytes)
            assert log.read(fetch_offset, upper_bound=upper_bound, max_bytes=max_bytes) == wanted
            cut = log.read(fetch_offset, upper_bound=upper_bound, max_bytes=max_bytes, is_cut_allowed=True)
            assert cut == cut_slowly(batches, wanted, upper_bound=upper_bound, max_bytes=max_bytes)


def test_whole_batches_are_read_within_offset_and_size_limits() -> None:
    check_reads(log_of(sized()), sized())


@pytest.mark.parametrize("kept", range(len(SIZES)))
def test_what_is_appended_after_a_cut_is_read_as_if_nothing_else_had_been_there(kept: int) -> None:
    log, batches = log_of(sized()), sized()
    log.truncate_to(batches[kept].base_offset, now_ms=0)
    again = [*batches[:kept], msgspec.structs.replace(batches[kept], size=55)]
    log.append(again[-1], now_ms=0)
    check_reads(log, again)


def test_a_cut_below_the_start_says_that_epochs_went() -> None:
    log = log_of(sized())
    log.epochs.assign(LeaderEpoch(0), Offset(0))
    log.raise_log_start(Offset(3))
    assert log.truncate_to(Offset(1), now_ms=0)
    assert (log.log_start_offset, log.log_end_offset, log.epochs.entries) == (1, 1, ())


SNAPSHOT = inputs.ProducerSnapshotEntry(
    producer_id=ProducerId(7),
    producer_epoch=ProducerEpoch(0),
    last_sequence=4,
    last_offset=Offset(1),
    offset_delta=0,
    timestamp_ms=0,
)


def loaded(*batches: BatchDescriptor, log_start_offset: int, producers_offset: int) -> ReplicaLog:
    log = ReplicaLog(NAME, TOPIC_ID)
    log.load(
        batches,
        log_start_offset=Offset(log_start_offset),
        log_end_offset=Offset(batches[-1].last_offset + 1),
        producers=(SNAPSHOT,),
        producers_offset=Offset(producers_offset),
        now_ms=0,
    )
    return log


def produced(offset: int, producer_id: int) -> BatchDescriptor:
    return msgspec.structs.replace(
        batch(offset, 0), producer_id=ProducerId(producer_id), producer_epoch=ProducerEpoch(0), base_sequence=0
    )


def test_a_snapshot_that_is_ahead_of_the_log_counts_for_nothing() -> None:
    log = loaded(produced(0, 1), produced(1, 2), log_start_offset=0, producers_offset=9)
    assert log.rebuild_producers(now_ms=0) == 2
    log = loaded(produced(2, 1), produced(3, 2), log_start_offset=2, producers_offset=3)
    assert log.rebuild_producers(now_ms=0) == 2, "that of the snapshot, and the one after it"


def test_a_cut_at_the_start_keeps_the_producers_of_the_snapshot() -> None:
    log = loaded(produced(2, 1), log_start_offset=2, producers_offset=2)
    assert len(log.producers) == 2
    log.truncate_to(Offset(2), now_ms=0)
    assert (log.log_end_offset, len(log.producers)) == (2, 1)


def test_a_cut_at_the_end_forgets_no_producer() -> None:
    log = log_of([produced(0, 1), produced(1, 2)])
    log.raise_log_start(Offset(1))
    log.truncate_to(Offset(2), now_ms=0)
    assert len(log.producers) == 2
    log.truncate_to(Offset(1), now_ms=0)
    assert len(log.producers) == 0
