"""The follower's rules that are most often got wrong (Kafka's ``AbstractFetcherThread``, ``LogLoader``)."""

import msgspec
import pytest

from emulator.core.batch import BatchDescriptor, EpochEndOffset, EpochEntry
from emulator.core.broker.epoch_cache import LeaderEpochCache
from emulator.core.broker.fetcher import FetcherPool, FollowState
from emulator.core.broker.in_flight_requests import InFlightRequests
from emulator.core.broker.log_opening import open_log
from emulator.core.broker.truncation import truncation_target
from emulator.core.broker.turn import Turn
from emulator.core.effects import SendRequest, SyncLog, TruncateLog, WriteEpochCheckpoint
from emulator.core.errors import ErrorCode
from emulator.core.inputs import LoadedLog, ProducerSnapshotEntry
from emulator.core.messages import FetchPartitionResponse, FetchRequest, FetchResponse
from emulator.core.switches import Switches, Truncation
from emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from tests.unit.core.broker.hosting import FIRST, NAME, TOPIC_ID, Hosting, batch, events_of

EVERY_RULE_ON = Switches()


class Following:
    """Broker 0 follows broker 1."""

    def __init__(self, *, records: int = 5, switches: Switches = EVERY_RULE_ON) -> None:
        self.hosting = Hosting(records=records, switches=switches)
        self.in_flight = InFlightRequests()
        self.pool = FetcherPool(self.hosting.config, self.in_flight)
        self.log = self.hosting.partition.log

    def follow(self, *, leader_epoch: int = 1) -> Turn:
        turn = self.hosting.follow(FIRST, leader_epoch=leader_epoch, partition_epoch=leader_epoch)
        self.pool.follow(turn, self.hosting.partition, FIRST)
        self.pool.send_due(turn, None)
        return turn

    def hear(self, request: FetchRequest, **fields: object) -> Turn:
        answer = FetchPartitionResponse(topic=NAME.topic, partition=NAME.partition, error=ErrorCode.NONE)
        answer = msgspec.structs.replace(answer, **fields)
        turn = self.hosting.turn()
        self.pool.handle_fetch(turn, FIRST, request, FetchResponse(partitions=(answer,)))
        self.pool.send_due(turn, None)
        return turn

    def has_failed(self) -> bool:
        return self.pool.followed[NAME].state is FollowState.FAILED


def sent(turn: Turn) -> FetchRequest:
    (request,) = [effect.request for effect in turn.effects() if isinstance(effect, SendRequest)]
    assert isinstance(request, FetchRequest)
    return request


def test_the_high_watermark_follows_the_leader_back() -> None:
    following = Following()
    request = sent(following.follow())
    request = sent(following.hear(request, high_watermark=Offset(4)))
    assert following.log.high_watermark == 4
    following.hear(request, high_watermark=Offset(2))
    assert following.log.high_watermark == 2


def test_a_diverging_answer_cuts_and_says_nothing_about_the_high_watermark() -> None:
    following = Following()
    following.log.high_watermark = Offset(1)
    request = sent(following.follow())
    turn = following.hear(
        request, high_watermark=Offset(5), diverging_epoch=LeaderEpoch(0), diverging_end_offset=Offset(3)
    )
    assert (following.log.log_end_offset, following.log.high_watermark) == (3, 1)
    assert [effect.offset for effect in turn.effects() if isinstance(effect, TruncateLog)] == [3]


@pytest.mark.parametrize(("switches", "high_watermark"), [(Switches(), 1), (Switches(truncate_before_hw=False), 3)])
def test_a_high_watermark_taken_over_first_covers_what_may_yet_be_cut(
    *, switches: Switches, high_watermark: int
) -> None:
    # KAFKA-14704 (S22): the leader has no epoch 3 and an epoch 2 up to 5; what is left, of epoch 1, may diverge too.
    following = Following(switches=switches)
    following.log.epochs = LeaderEpochCache(
        (EpochEntry(LeaderEpoch(1), Offset(0)), EpochEntry(LeaderEpoch(3), Offset(3)))
    )
    following.log.high_watermark = Offset(1)
    request = sent(following.follow(leader_epoch=4))
    following.hear(request, high_watermark=Offset(5), diverging_epoch=LeaderEpoch(2), diverging_end_offset=Offset(5))
    assert (following.log.log_end_offset, following.log.high_watermark) == (3, high_watermark)


@pytest.mark.parametrize(("switches", "syncs"), [(Switches(), True), (Switches(truncation_sync=False), False)])
def test_a_cut_log_is_synced_before_its_epochs_are_written(*, switches: Switches, syncs: bool) -> None:
    following = Following(switches=switches)
    turn = following.hear(sent(following.follow()), diverging_epoch=LeaderEpoch(0), diverging_end_offset=Offset(0))
    files = [
        type(effect) for effect in turn.effects() if isinstance(effect, TruncateLog | SyncLog | WriteEpochCheckpoint)
    ]
    assert files == [TruncateLog, *([SyncLog] if syncs else []), WriteEpochCheckpoint]


def test_an_answer_to_another_leader_epoch_is_dropped() -> None:
    # KAFKA-18991 (S21).
    following = Following()
    request = sent(following.follow(leader_epoch=1))
    following.follow(leader_epoch=2)
    following.hear(request, diverging_epoch=LeaderEpoch(0), diverging_end_offset=Offset(0))
    assert following.log.log_end_offset == 5


def test_batches_of_a_later_epoch_than_the_request_named_are_left_out() -> None:
    # KAFKA-18723.
    following = Following()
    request = sent(following.follow())
    following.hear(request, batches=(batch(5, 1), batch(6, 2), batch(7, 2)))
    assert following.log.log_end_offset == 6


def test_batches_below_the_log_end_fail_the_partition_until_the_next_epoch() -> None:
    following = Following()
    request = sent(following.follow())
    following.hear(request, batches=(batch(4, 1),))
    assert following.has_failed()
    following.follow(leader_epoch=2)
    assert not following.has_failed()


def test_gaps_are_accepted() -> None:
    following = Following()
    following.hear(sent(following.follow()), batches=(batch(8, 1),))
    assert following.log.log_end_offset == 9


@pytest.mark.parametrize(
    ("truncation", "log_end_offset", "names_epoch"),
    [(Truncation.LEADER_EPOCH, 5, True), (Truncation.HIGH_WATERMARK, 2, False)],
)
def test_what_a_new_follower_does_first_is_a_switch(
    truncation: Truncation, log_end_offset: int, *, names_epoch: bool
) -> None:
    following = Following(switches=Switches(truncation=truncation))
    following.log.high_watermark = Offset(2)
    (asked,) = sent(following.follow()).partitions
    assert asked.fetch_offset == log_end_offset
    assert (asked.last_fetched_epoch is not None) == names_epoch


def floor(leader_epoch: int, end_offset: int) -> EpochEndOffset:
    return EpochEndOffset(leader_epoch=LeaderEpoch(leader_epoch), end_offset=Offset(end_offset))


@pytest.mark.parametrize(
    ("leader_epoch", "end_offset", "own_floor", "expected"),
    [
        (None, None, None, (7, True)),  # undefined: where the follower started out
        (None, 30, None, (30, True)),
        (None, 90, None, (50, True)),
        (3, 30, None, (30, True)),
        (3, 30, floor(2, 20), (20, False)),  # not in one step: the next fetch finds out more
        (3, 30, floor(3, 40), (30, True)),
        (3, 40, floor(3, 30), (30, True)),
    ],
)
def test_truncation_targets(
    leader_epoch: int | None, end_offset: int | None, own_floor: EpochEndOffset | None, expected: tuple[int, bool]
) -> None:
    target = truncation_target(
        leader_epoch=None if leader_epoch is None else LeaderEpoch(leader_epoch),
        end_offset=None if end_offset is None else Offset(end_offset),
        own_floor=own_floor,
        log_end_offset=Offset(50),
        initial_offset=Offset(7),
    )
    assert (target.offset, target.is_final) == expected


def loaded(batches: tuple[BatchDescriptor, ...], **fields: object) -> LoadedLog:
    end_offset = batches[-1].next_offset if batches else Offset(0)
    log = LoadedLog(
        partition=NAME,
        topic_id=TOPIC_ID,
        is_clean=False,
        batches=batches,
        log_start_offset=Offset(0),
        log_end_offset=end_offset,
        epochs=(),
        log_start_checkpoint=Offset(0),
        high_watermark_checkpoint=Offset(0),
        recovery_point=Offset(0),
    )
    return msgspec.structs.replace(log, **fields)


def test_the_high_watermark_checkpoint_is_clamped_to_what_survived() -> None:
    turn = Hosting().turn()
    log = open_log(turn, loaded((batch(0, 0), batch(1, 0)), high_watermark_checkpoint=Offset(9)), TOPIC_ID)
    assert log.high_watermark == 2
    assert "high_watermark=2" in events_of(turn)[0].describe()


def test_an_epoch_without_records_is_lost_in_a_restart() -> None:
    epochs = (EpochEntry(LeaderEpoch(0), Offset(0)), EpochEntry(LeaderEpoch(4), Offset(2)))
    log = open_log(Hosting().turn(), loaded((batch(0, 0), batch(1, 0)), epochs=epochs), TOPIC_ID)
    assert log.epochs.entries == epochs[:1]


def test_a_snapshot_remembers_one_batch_of_a_producer() -> None:
    snapshot = ProducerSnapshotEntry(
        producer_id=ProducerId(1),
        producer_epoch=ProducerEpoch(0),
        last_sequence=1,
        last_offset=Offset(1),
        offset_delta=0,
        timestamp_ms=0,
    )
    log = open_log(
        Hosting().turn(),
        loaded((batch(0, 0), batch(1, 0)), producers=(snapshot,), producers_offset=Offset(2)),
        TOPIC_ID,
    )
    entry = log.producers.get(ProducerId(1))
    assert entry is not None
    assert [retained.last_sequence for retained in entry.batches] == [1]


def test_the_epoch_cache_drops_what_contradicts_a_new_entry() -> None:
    cache = LeaderEpochCache(EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in ((1, 0), (2, 5), (3, 9)))
    cache.assign(LeaderEpoch(2), Offset(4))
    assert cache.entries == (EpochEntry(LeaderEpoch(1), Offset(0)), EpochEntry(LeaderEpoch(2), Offset(4)))
