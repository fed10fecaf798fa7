"""Fetches of a follower: what each of them names, which go out together, and when after an error."""

from collections.abc import Callable

import msgspec
import pytest

from laststand.emulator.core import effects, messages
from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.broker.replicas.epoch_cache import LeaderEpochCache
from laststand.emulator.core.broker.replicas.fetcher import FetcherPool
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import LeaderEpoch, Offset, TopicPartition
from tests.unit.core.broker.hosting import FIRST, NAME
from tests.unit.core.broker.replicas.test_follower import Following, sent

OTHER = TopicPartition("orders", 1)
PASSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def requests_of(turn: Turn) -> list[object]:
    return [effect.request for effect in turn.effects() if isinstance(effect, effects.SendRequest)]


def fails(following: Following, request: messages.FetchRequest, *errors: ErrorCode) -> Turn:
    """The leader answers each partition with an error."""
    turn = following.hosting.turn()
    answers = tuple(
        messages.FetchPartitionResponse(topic=asked.topic, partition=asked.partition, error=error)
        for asked, error in zip(request.partitions, errors, strict=True)
    )
    following.pool.handle_fetch(turn, FIRST, request, messages.FetchResponse(partitions=answers))
    following.pool.send_due(turn, None)
    return turn


def is_refused(following: Following, request: messages.FetchRequest) -> Turn:
    """The leader refuses the request as a whole."""
    turn = following.hosting.turn()
    refusal = messages.FetchResponse(partitions=(), error=ErrorCode.UNKNOWN_TOPIC_ID)
    following.pool.handle_fetch(turn, FIRST, request, refusal)
    following.pool.send_due(turn, None)
    return turn


def follows_another(following: Following) -> Turn:
    """A second partition of the same leader is followed, too."""
    hosting = following.hosting
    other, turn = hosting.another(OTHER), hosting.turn()
    other.become_follower(turn, hosting.state(leader=FIRST, isr=(FIRST,), leader_epoch=1, partition_epoch=1))
    following.pool.follow(turn, other, FIRST)
    following.pool.send_due(turn, None)
    return turn


def names(request: messages.FetchRequest) -> list[TopicPartition]:
    return [asked.topic_partition for asked in request.partitions]


# --- What a fetch names ---------------------------------------------------------------------------------------------


def asked_of(turn: Turn) -> messages.FetchPartition:
    (asked,) = sent(turn).partitions
    return asked


def test_a_fetch_names_the_latest_epoch_though_its_offset_is_the_same() -> None:
    following = Following()
    following.log.epochs = LeaderEpochCache(
        (EpochEntry(LeaderEpoch(0), Offset(0)), EpochEntry(LeaderEpoch(2), Offset(5)))
    )
    request = sent(following.follow(leader_epoch=3))
    assert request.partitions[0].last_fetched_epoch == 2
    again = asked_of(following.hear(request, diverging_epoch=LeaderEpoch(0), diverging_end_offset=Offset(5)))
    assert (again.fetch_offset, again.last_fetched_epoch) == (5, 0)


def test_a_fetch_names_the_log_start_though_its_offset_is_the_same() -> None:
    following = Following()
    request = sent(following.follow())
    again = asked_of(following.hear(request, high_watermark=Offset(5), log_start_offset=Offset(2)))
    assert (request.partitions[0].log_start_offset, again.log_start_offset) == (0, 2)
    assert again.fetch_offset == request.partitions[0].fetch_offset


def test_a_fetch_has_the_limits_of_the_node() -> None:
    following = Following()
    properties = NodeProperties(
        replica_fetch_wait_max_ms=123,
        replica_fetch_min_bytes=45,
        replica_fetch_response_max_bytes=678,
        replica_fetch_max_bytes=90,
    )
    following.pool = FetcherPool(
        msgspec.structs.replace(following.hosting.config, properties=properties), following.in_flight
    )
    request = sent(following.follow())
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (123, 45, 678)
    assert request.partitions[0].partition_max_bytes == 90


def test_the_lag_is_what_is_missing_below_the_high_watermark_of_the_leader() -> None:
    following = Following()
    request = sent(following.follow())
    lags = [following.pool.followed[NAME].lag]
    for high_watermark in (9, 5, 3):
        request = sent(following.hear(request, high_watermark=Offset(high_watermark)))
        lags.append(following.pool.followed[NAME].lag)
    assert lags == [0, 4, 0, 0]


# --- Which go out together ------------------------------------------------------------------------------------------


def test_one_fetch_is_outstanding_per_leader() -> None:
    following = Following()
    request = sent(following.follow())
    assert requests_of(follows_another(following)) == []
    assert names(sent(following.hear(request, high_watermark=Offset(5)))) == [NAME, OTHER]


def test_partitions_that_wait_do_not_hold_up_the_others() -> None:
    following = Following()
    request = sent(following.follow())
    follows_another(following)
    turn = fails(following, request, ErrorCode.OFFSET_OUT_OF_RANGE)
    end_of_log, fetch = requests_of(turn)
    assert isinstance(end_of_log, messages.ListOffsetsRequest)
    assert isinstance(fetch, messages.FetchRequest)
    assert names(fetch) == [OTHER]
    assert names(sent(fails(following, fetch, ErrorCode.NONE))) == [OTHER], "though the first one still asks"


def test_of_two_partitions_that_back_off_each_goes_on_in_time() -> None:
    following = Following()
    request = sent(following.follow())
    follows_another(following)
    both = sent(following.hear(request, high_watermark=Offset(5)))
    rest = sent(fails(following, both, PASSING, ErrorCode.NONE))
    assert names(rest) == [OTHER]
    following.wait(5)
    assert requests_of(fails(following, rest, PASSING)) == []
    assert names(sent(following.wait(15))) == [NAME]


def test_a_partition_is_fetched_at_once_however_young_the_process_is() -> None:
    following = Following()
    following.hosting.now_ms = 0
    assert names(sent(following.follow())) == [NAME]


# --- When, after an error -------------------------------------------------------------------------------------------


def next_after(following: Following, ms: int) -> messages.FetchRequest:
    """Returns the fetch that goes out after so many milliseconds, and no earlier."""
    assert requests_of(following.wait(ms - 1)) == []
    return sent(following.wait(1))


def partition_fails(following: Following, request: messages.FetchRequest) -> Turn:
    return fails(following, request, PASSING)


def link_fails(following: Following, request: messages.FetchRequest) -> Turn:
    turn = following.hosting.turn()
    following.pool.handle_failure(turn, FIRST, request)
    following.pool.send_due(turn, None)
    return turn


@pytest.mark.parametrize("fail", [partition_fails, is_refused, link_fails])
def test_each_failure_doubles_the_wait_up_to_the_limit_and_a_success_begins_anew(
    fail: Callable[[Following, messages.FetchRequest], Turn],
) -> None:
    following = Following()
    request = sent(following.follow())
    for wait_ms in (20, 40, 80, 160, 320, 640, 1000, 1000):
        assert requests_of(fail(following, request)) == []
        request = next_after(following, wait_ms)
    request = sent(following.hear(request, high_watermark=Offset(5)))
    fail(following, request)
    next_after(following, 20)


def test_a_lookup_that_failed_is_sent_again() -> None:
    following = Following()
    (lookup,) = requests_of(fails(following, sent(following.follow()), ErrorCode.OFFSET_OUT_OF_RANGE))
    assert isinstance(lookup, messages.ListOffsetsRequest)
    turn = following.hosting.turn()
    following.pool.handle_failure(turn, FIRST, lookup)
    following.pool.send_due(turn, None)
    assert requests_of(turn) == []
    assert requests_of(following.wait(20)) == [lookup]
