"""The follower's rules that are most often got wrong (Kafka's ``AbstractFetcherThread``, ``LogLoader``)."""

import msgspec
import pytest

from laststand.emulator.core import effects, events, inputs, messages
from laststand.emulator.core.batch import BatchDescriptor, EpochEndOffset, EpochEntry
from laststand.emulator.core.broker.replicas.epoch_cache import LeaderEpochCache
from laststand.emulator.core.broker.replicas.fetcher import FetcherPool, FollowState
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.log_opening import open_log
from laststand.emulator.core.broker.replicas.truncation import truncation_target
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.messages import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from laststand.emulator.core.switches import Switches, Truncation
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TruncationReason
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, SECOND, TOPIC_ID, Hosting, batch, events_of

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

    def hear(self, request: messages.FetchRequest, **fields: object) -> Turn:
        answer = messages.FetchPartitionResponse(topic=NAME.topic, partition=NAME.partition, error=ErrorCode.NONE)
        answer = msgspec.structs.replace(answer, **fields)
        turn = self.hosting.turn()
        self.pool.handle_fetch(turn, FIRST, request, messages.FetchResponse(partitions=(answer,)))
        self.pool.send_due(turn, None)
        return turn

    def hear_end(self, request: messages.OffsetForLeaderEpochRequest, **fields: object) -> Turn:
        (asked,) = request.partitions
        answer = messages.EpochPositionResult(topic=NAME.topic, partition=NAME.partition, error=ErrorCode.NONE)
        turn = self.hosting.turn()
        self.pool.handle_epoch_end(turn, FIRST, asked, msgspec.structs.replace(answer, **fields))
        self.pool.send_due(turn, None)
        return turn

    def hear_offset(self, request: messages.ListOffsetsRequest, offset: int) -> Turn:
        (asked,) = request.partitions
        result = messages.ListOffsetsResult(
            topic=NAME.topic, partition=NAME.partition, error=ErrorCode.NONE, offset=Offset(offset)
        )
        turn = self.hosting.turn()
        self.pool.handle_offset(turn, FIRST, asked, result)
        self.pool.send_due(turn, None)
        return turn

    def wait(self, ms: int) -> Turn:
        self.hosting.now_ms += ms
        turn = self.hosting.turn()
        self.pool.handle_timer(turn)
        self.pool.send_due(turn, None)
        return turn

    def has_failed(self) -> bool:
        return self.pool.followed[NAME].state is FollowState.FAILED


def sent(turn: Turn) -> messages.FetchRequest:
    (request,) = [effect.request for effect in turn.effects() if isinstance(effect, effects.SendRequest)]
    assert isinstance(request, messages.FetchRequest)
    return request


def looked_up(turn: Turn) -> messages.OffsetForLeaderEpochRequest:
    (request,) = [effect.request for effect in turn.effects() if isinstance(effect, effects.SendRequest)]
    assert isinstance(request, messages.OffsetForLeaderEpochRequest)
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
    assert [effect.offset for effect in turn.effects() if isinstance(effect, effects.TruncateLog)] == [3]


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
        type(effect)
        for effect in turn.effects()
        if isinstance(effect, effects.TruncateLog | effects.SyncLog | effects.WriteEpochCheckpoint)
    ]
    assert files == [effects.TruncateLog, *([effects.SyncLog] if syncs else []), effects.WriteEpochCheckpoint]


@pytest.mark.parametrize(
    ("cut_at", "log_start_offset", "switches", "end"),
    [
        (3, 0, Switches(), 2),
        (3, 3, Switches(), 3),  # not below its own start
        (2, 0, Switches(), 2),
        (3, 0, Switches(truncation_ends_at_batch=False), 3),
    ],
)
def test_a_log_that_is_cut_within_a_batch_ends_where_that_began(
    cut_at: int, log_start_offset: int, switches: Switches, end: int
) -> None:
    # S49: from there on it fetches, for the leader's batch may begin below the offset, too.
    following = Following(records=2, switches=switches)
    following.log.append(batch(2, 0, count=4), now_ms=0)
    following.log.log_start_offset = Offset(log_start_offset)
    request = sent(following.follow(leader_epoch=2))
    following.hear(request, diverging_epoch=LeaderEpoch(0), diverging_end_offset=Offset(cut_at))
    assert following.log.log_end_offset == end


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


@pytest.mark.parametrize(("count", "restarts"), [(2, False), (3, True)])
def test_an_empty_log_starts_anew_at_a_batch_that_spans_its_start(count: int, *, restarts: bool) -> None:
    # Kafka's ``Partition.doAppendRecordsToFollowerOrFutureReplica``; a batch that ends at the start spans nothing.
    following = Following(records=0)
    following.log.restart_at(Offset(5))
    turn = following.hear(sent(following.follow()), batches=(batch(3, 1, count=count),))
    cuts = [event for event in events_of(turn) if isinstance(event, events.LogTruncated)]
    assert [(cut.new_end_offset, cut.leader) for cut in cuts] == ([(3, FIRST)] if restarts else [])
    assert following.log.log_end_offset == (6 if restarts else 5)
    assert following.has_failed() is not restarts


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


def offset_asked(turn: Turn) -> messages.ListOffsetsRequest:
    (request,) = [effect.request for effect in turn.effects() if isinstance(effect, effects.SendRequest)]
    assert isinstance(request, messages.ListOffsetsRequest)
    (position,) = request.partitions
    assert (request.replica_id, position.current_leader_epoch) == (OWN, 1)
    return request


def out_of_range() -> tuple[Following, messages.ListOffsetsRequest]:
    """A follower whose fetch at offset 5 its leader cannot serve; it asks for the leader's end (KAFKA-1632)."""
    following = Following()
    request = sent(following.follow())
    asked = offset_asked(following.hear(request, error=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert asked.partitions[0].timestamp == LATEST_TIMESTAMP
    return following, asked


def test_a_follower_that_has_more_than_its_leader_cuts_at_the_leaders_end() -> None:
    following, request = out_of_range()
    turn = following.hear_offset(request, 4)
    (cut,) = [event for event in events_of(turn) if isinstance(event, events.LogTruncated)]
    assert (cut.reason, cut.new_end_offset, cut.leader) == (TruncationReason.OFFSET_OUT_OF_RANGE, 4, FIRST)
    assert sent(turn).partitions[0].fetch_offset == 4


@pytest.mark.parametrize("end_offset", [5, 20])
def test_a_follower_whose_records_the_leader_has_deleted_starts_again_at_the_leaders_start(end_offset: int) -> None:
    following, request = out_of_range()
    asked = offset_asked(following.hear_offset(request, end_offset))
    assert asked.partitions[0].timestamp == EARLIEST_TIMESTAMP
    turn = following.hear_offset(asked, 12)
    (restart,) = [event for event in events_of(turn) if isinstance(event, events.LogTruncated)]
    assert (restart.reason, restart.new_end_offset, restart.leader) == (TruncationReason.RESTARTED, 12, FIRST)
    assert sent(turn).partitions[0].fetch_offset == 12


def test_a_follower_with_nothing_to_mend_fetches_again_and_waits_longer_each_time() -> None:
    # Its leader's log starts where its own ends, at the latest.
    following, request = out_of_range()
    waits = []
    for _ in range(3):
        turn = following.hear_offset(offset_asked(following.hear_offset(request, 5)), 5)
        assert not any(isinstance(event, events.LogTruncated) for event in events_of(turn))
        deadline_ms = following.pool.timers.earliest_ms
        assert deadline_ms is not None
        waits.append(deadline_ms - following.hosting.now_ms)
        asked = sent(following.wait(waits[-1]))
        request = offset_asked(following.hear(asked, error=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert waits == [waits[0], 2 * waits[0], 4 * waits[0]]


def test_an_answer_to_an_abandoned_request_is_dropped() -> None:
    following, request = out_of_range()
    following.hear_offset(request, 4)
    following.hear_offset(request, 0)
    assert following.log.log_end_offset == 4


KIP_101 = Switches(truncation=Truncation.KIP_101)


@pytest.mark.parametrize(
    ("end_offset", "log_end_offset", "reason"),
    [
        (3, 3, TruncationReason.DIVERGING_EPOCH),
        (9, 5, None),  # the leader has more of the epoch
        (None, 2, TruncationReason.HIGH_WATERMARK),  # the leader does not know the epoch
    ],
)
def test_a_follower_of_kip_101_cuts_at_the_end_of_its_latest_epoch(
    end_offset: int | None, log_end_offset: int, reason: TruncationReason | None
) -> None:
    following = Following(switches=KIP_101)
    following.log.high_watermark = Offset(2)
    request = looked_up(following.follow())
    position = messages.EpochPosition(
        topic=NAME.topic,
        partition=NAME.partition,
        leader_epoch=LeaderEpoch(0),
        current_leader_epoch=LeaderEpoch(1),
    )
    assert request == messages.OffsetForLeaderEpochRequest(partitions=(position,), replica_id=OWN)
    turn = following.hear_end(request, end_offset=end_offset)
    assert following.log.log_end_offset == log_end_offset
    cuts = [event for event in events_of(turn) if isinstance(event, events.LogTruncated)]
    assert [(cut.reason, cut.leader, cut.leader_epoch) for cut in cuts] == ([(reason, FIRST, 1)] if reason else [])
    (asked,) = sent(turn).partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (log_end_offset, None)


def test_an_epoch_lookup_that_fails_is_repeated_after_the_backoff() -> None:
    following = Following(switches=KIP_101)
    request = looked_up(following.follow())
    turn = following.hear_end(request, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, end_offset=Offset(0))
    assert [effect for effect in turn.effects() if isinstance(effect, effects.SendRequest)] == []
    assert following.log.log_end_offset == 5
    assert looked_up(following.wait(following.hosting.config.properties.replica_fetch_backoff_ms)) == request


def test_an_epoch_lookup_of_an_earlier_term_is_dropped() -> None:
    following = Following(switches=KIP_101)
    request = looked_up(following.follow(leader_epoch=1))
    following.follow(leader_epoch=2)
    following.hear_end(request, end_offset=Offset(0))
    assert following.log.log_end_offset == 5


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
        (3, 90, floor(3, 80), (50, True)),
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


def loaded(batches: tuple[BatchDescriptor, ...], **fields: object) -> inputs.LoadedLog:
    end_offset = batches[-1].next_offset if batches else Offset(0)
    log = inputs.LoadedLog(
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
    log = open_log(
        turn, loaded((batch(0, 0), batch(1, 0)), high_watermark_checkpoint=Offset(9)), TOPIC_ID, switches=Switches()
    )
    assert log.high_watermark == 2
    assert "high_watermark=2" in events_of(turn)[0].describe()


def test_an_epoch_without_records_is_lost_in_a_restart() -> None:
    epochs = (EpochEntry(LeaderEpoch(0), Offset(0)), EpochEntry(LeaderEpoch(4), Offset(2)))
    log = open_log(Hosting().turn(), loaded((batch(0, 0), batch(1, 0)), epochs=epochs), TOPIC_ID, switches=Switches())
    assert log.epochs.entries == epochs[:1]


def test_a_snapshot_remembers_one_batch_of_a_producer() -> None:
    snapshot = inputs.ProducerSnapshotEntry(
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
        switches=Switches(),
    )
    entry = log.producers.get(ProducerId(1))
    assert entry is not None
    assert [retained.last_sequence for retained in entry.batches] == [1]


def test_the_epoch_cache_drops_what_contradicts_a_new_entry() -> None:
    cache = LeaderEpochCache(EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in ((1, 0), (2, 5), (3, 9)))
    cache.assign(LeaderEpoch(2), Offset(4))
    assert cache.entries == (EpochEntry(LeaderEpoch(1), Offset(0)), EpochEntry(LeaderEpoch(2), Offset(4)))


def test_an_epoch_that_a_log_lacks_ends_where_its_next_one_starts() -> None:
    # ``LeaderEpochFileCache.endOffsetFor``: below all epochs a follower has nothing to keep.
    cache = LeaderEpochCache(EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in ((2, 3), (4, 6)))
    ends = [cache.floor_epoch_end(LeaderEpoch(epoch), log_end_offset=Offset(9)) for epoch in (1, 2, 3, 4, 5)]
    assert ends == [floor(1, 3), floor(2, 6), floor(2, 6), floor(4, 9), floor(4, 9)]
    assert LeaderEpochCache().floor_epoch_end(LeaderEpoch(1), log_end_offset=Offset(9)) is None


def test_epochs_that_start_above_the_log_start_are_left_alone() -> None:
    entries = [EpochEntry(LeaderEpoch(2), Offset(3)), EpochEntry(LeaderEpoch(4), Offset(6))]
    cache = LeaderEpochCache(entries)
    assert not cache.truncate_from_start(Offset(2))
    assert list(cache.entries) == entries
    assert cache.truncate_from_start(Offset(7))
    assert list(cache.entries) == [EpochEntry(LeaderEpoch(4), Offset(7))]


def test_an_epoch_that_starts_where_it_did_is_no_news() -> None:
    cache = LeaderEpochCache()
    assert cache.assign(LeaderEpoch(2), Offset(3))
    assert not cache.assign(LeaderEpoch(2), Offset(3))
    assert not cache.assign(LeaderEpoch(2), Offset(4))
    assert cache.assign(LeaderEpoch(2), Offset(2))


def test_a_follower_reports_each_term_it_follows_in() -> None:
    hosting = Hosting()
    turns = [
        hosting.follow(FIRST, leader_epoch=1, partition_epoch=1),
        hosting.follow(FIRST, leader_epoch=1, partition_epoch=2),  # the ISR changed
        hosting.follow(SECOND, leader_epoch=2, partition_epoch=3),
        hosting.lead(OWN, leader_epoch=3, partition_epoch=4),
        hosting.lead(OWN, FIRST, leader_epoch=3, partition_epoch=5),
        hosting.lead(OWN, leader_epoch=4, partition_epoch=6),
        hosting.follow(FIRST, leader_epoch=4, partition_epoch=7),
    ]
    told = [
        event
        for turn in turns
        for event in events_of(turn)
        if isinstance(event, events.BecameFollower | events.BecameLeader)
    ]
    leaders = [event.leader if isinstance(event, events.BecameFollower) else OWN for event in told]
    assert list(zip(leaders, (event.partition_epoch for event in told), strict=True)) == [
        (FIRST, 1),
        (SECOND, 3),
        (OWN, 4),
        (OWN, 6),
        (FIRST, 7),
    ]
