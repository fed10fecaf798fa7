"""A log's memory of idempotent producers (Kafka's ``ProducerStateManager``)."""

import msgspec
import pytest

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.replicas.producer_state import ProducerStates
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from tests.unit.core.broker.hosting import NAME, TOPIC_ID, batch

DAY_MS = 86_400_000


def sequenced(base_offset: int, producer_id: int, base_sequence: int, *, count: int = 1) -> BatchDescriptor:
    return msgspec.structs.replace(
        batch(base_offset, 0, count=count),
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(0),
        base_sequence=base_sequence,
        max_timestamp_ms=7000 + base_offset,
    )


def test_a_producer_is_forgotten_once_it_was_idle_for_as_long_as_configured() -> None:
    producers = ProducerStates()
    producers.update(sequenced(0, 1, 0), now_ms=1000)
    producers.update(sequenced(1, 2, 0), now_ms=1001)
    producers.expire(now_ms=1000 + DAY_MS, expiration_ms=DAY_MS)
    assert producers.get(ProducerId(1)) is None
    assert producers.get(ProducerId(2)) is not None
    producers.expire(now_ms=1000 + DAY_MS, expiration_ms=DAY_MS)
    assert len(producers) == 1


def retained(log: ReplicaLog, producer_id: int) -> list[tuple[int, ...]]:
    entry = log.producers.get(ProducerId(producer_id))
    return [] if entry is None else [tuple(kept) for kept in entry.batches]


def test_a_truncation_leaves_producers_as_their_remaining_batches_made_them() -> None:
    log = ReplicaLog(NAME, TOPIC_ID)
    log.epochs.assign(LeaderEpoch(0), Offset(0))
    for appended in (
        batch(0, 0, count=3),
        sequenced(3, 1, 0, count=2),
        sequenced(5, 2, 0),
        sequenced(6, 1, 2, count=3),
    ):
        log.append(appended, now_ms=0)
    before = [retained(log, producer_id) for producer_id in (1, 2)]
    assert before == [[(0, 1, 3, 4, 7003), (2, 4, 6, 8, 7006)], [(0, 0, 5, 5, 7005)]]
    marker = msgspec.structs.replace(sequenced(9, 1, -1), is_control=True)
    log.append(marker, now_ms=0)
    assert [retained(log, producer_id) for producer_id in (1, 2)] == before, "a marker is no batch of a producer"
    log.append(sequenced(10, 2, 1), now_ms=0)
    log.truncate_to(Offset(10), now_ms=0)
    assert [retained(log, producer_id) for producer_id in (1, 2)] == before
    assert len(log.producers) == 2


def snapshot(last_offset: int, *, last_sequence: int, offset_delta: int) -> inputs.ProducerSnapshotEntry:
    return inputs.ProducerSnapshotEntry(
        producer_id=ProducerId(1),
        producer_epoch=ProducerEpoch(0),
        last_sequence=last_sequence,
        last_offset=Offset(last_offset),
        offset_delta=offset_delta,
        timestamp_ms=7,
    )


@pytest.mark.parametrize(
    ("entry", "batches"),
    [
        (snapshot(9, last_sequence=6, offset_delta=2), [(4, 6, 7, 9, 7)]),
        (
            snapshot(9, last_sequence=1, offset_delta=2),
            [(2**31 - 1, 1, 7, 9, 7)],
        ),  # after 2^31 - 1 comes 0
        (snapshot(0, last_sequence=0, offset_delta=0), [(0, 0, 0, 0, 7)]),
        (snapshot(-1, last_sequence=-1, offset_delta=0), []),  # a marker is all that is known
    ],
)
def test_a_snapshot_names_the_last_batch_by_its_end_and_its_length(
    entry: inputs.ProducerSnapshotEntry, batches: list[tuple[int, ...]]
) -> None:
    # Kafka's ``ProducerStateManager.readSnapshot``.
    producers = ProducerStates()
    producers.reload([entry], now_ms=0)
    known = producers.get(ProducerId(1))
    assert known is not None
    assert [tuple(kept) for kept in known.batches] == batches


@pytest.mark.parametrize(("cut_at", "remembered"), [(8, [(4, 6, 5, 7, 7), (7, 7, 8, 8, 7008)]), (6, [])])
def test_a_snapshot_from_beyond_the_end_of_the_log_counts_for_nothing(
    cut_at: int, remembered: list[tuple[int, ...]]
) -> None:
    log = ReplicaLog(NAME, TOPIC_ID)
    log.load(
        [sequenced(8, 1, 7)],
        log_start_offset=Offset(0),
        log_end_offset=Offset(9),
        producers=(snapshot(7, last_sequence=6, offset_delta=2),),
        producers_offset=Offset(8),
        now_ms=0,
    )
    assert retained(log, 1) == [(4, 6, 5, 7, 7), (7, 7, 8, 8, 7008)]
    if cut_at < 8:
        log.truncate_to(Offset(cut_at), now_ms=0)
    assert retained(log, 1) == remembered
