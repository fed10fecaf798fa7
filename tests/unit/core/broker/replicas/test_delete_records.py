"""DeleteRecords is answered once every live replica has its log start there (Kafka's ``DelayedDeleteRecords``)."""

import msgspec
import pytest

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.replicas.delete_records import WAITING_MAX, DeleteRecordsHandler
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, CauseId, Offset, RequestId
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, SECOND, Hosting

TIMEOUT_MS = 300


class Deleting:
    """Broker 0 leads with five records, of which all are committed; brokers 1 and 2 follow."""

    def __init__(self) -> None:
        self.hosting = Hosting(records=5)
        self.hosting.lead(OWN)
        self.hosting.fetch(FIRST, 5)
        self.hosting.fetch(SECOND, 5)
        self.handler = DeleteRecordsHandler(self.hosting.hosted)
        self.requests = 0

    def ask(self, *targets: tuple[str, int | None]) -> Turn:
        self.requests += 1
        turn = self.turn(f"delete-{self.requests}")
        partitions = tuple(
            messages.DeleteRecordsTarget(topic=topic, partition=0, offset=None if offset is None else Offset(offset))
            for topic, offset in targets
        )
        request = messages.DeleteRecordsRequest(partitions=partitions, timeout_ms=TIMEOUT_MS)
        self.handler.handle_request(turn, RequestId(self.requests), request)
        return turn

    def turn(self, cause: str = "unit") -> Turn:
        return Turn(now_ms=self.hosting.now_ms, cause_id=CauseId(cause))

    def follow(self, broker_id: BrokerId, log_start_offset: int) -> Turn:
        turn = self.turn()
        self.hosting.partition.note_fetch(
            turn, broker_id, fetch_offset=Offset(5), log_start_offset=Offset(log_start_offset), broker_epoch=None
        )
        self.handler.check(turn)
        return turn

    def pass_time(self, ms: int) -> Turn:
        self.hosting.now_ms += ms
        turn = self.turn()
        self.handler.handle_timer(turn)
        return turn


def answers(turn: Turn) -> list[tuple[int, list[tuple[ErrorCode, int | None]]]]:
    found = []
    for effect in turn.effects():
        if isinstance(effect, effects.SendResponse):
            assert isinstance(effect.response, messages.DeleteRecordsResponse)
            assert effect.cause_id == f"delete-{effect.request_id}"
            results: list[tuple[ErrorCode, int | None]] = []
            results += [(result.error, result.low_watermark) for result in effect.response.partitions]
            found.append((int(effect.request_id), results))
    return found


@pytest.mark.parametrize(("offset", "target"), [(3, 3), (None, 5)])
def test_it_waits_until_the_log_of_each_live_follower_starts_there(offset: int | None, target: int) -> None:
    deleting = Deleting()
    assert answers(deleting.ask((NAME.topic, offset))) == []
    assert deleting.hosting.partition.log.log_start_offset == target
    assert answers(deleting.follow(FIRST, target)) == []
    assert answers(deleting.follow(SECOND, target - 1)) == []
    assert answers(deleting.follow(SECOND, target)) == [(1, [(ErrorCode.NONE, target)])]
    assert answers(deleting.pass_time(TIMEOUT_MS)) == []


def test_a_live_follower_that_never_said_where_its_log_starts_is_waited_for() -> None:
    deleting = Deleting()
    deleting.hosting.register(SECOND, fenced=True)
    turn = deleting.turn()
    deleting.hosting.partition.note_fetch(turn, FIRST, fetch_offset=Offset(5), log_start_offset=None, broker_epoch=None)
    assert answers(deleting.ask((NAME.topic, 0))) == []
    assert answers(deleting.follow(FIRST, 0)) == [(1, [(ErrorCode.NONE, 0)])]


def test_fenced_followers_are_not_waited_for() -> None:
    deleting = Deleting()
    deleting.hosting.register(FIRST, fenced=True)
    deleting.hosting.register(SECOND, fenced=True)
    assert answers(deleting.ask((NAME.topic, 3))) == [(1, [(ErrorCode.NONE, 3)])]


def test_a_target_that_is_no_higher_changes_nothing_and_is_no_error() -> None:
    deleting = Deleting()
    turn = deleting.ask((NAME.topic, 0))
    assert not any(isinstance(effect, effects.RaiseLogStart) for effect in turn.effects())
    assert answers(turn) == [(1, [(ErrorCode.NONE, 0)])]


@pytest.mark.parametrize("offset", [-1, 6])
def test_nothing_is_deleted_beyond_the_high_watermark(offset: int) -> None:
    assert answers(Deleting().ask((NAME.topic, offset))) == [(1, [(ErrorCode.OFFSET_OUT_OF_RANGE, None)])]


@pytest.mark.parametrize(
    ("cleanup_policy", "answer"),
    [("compact", [(1, [(ErrorCode.POLICY_VIOLATION, None)])]), ("compact,delete", [])],
)
def test_a_topic_that_is_only_compacted_deletes_nothing(
    cleanup_policy: str, answer: list[tuple[int, list[tuple[ErrorCode, int | None]]]]
) -> None:
    deleting = Deleting()
    partition = deleting.hosting.partition
    partition.topic_properties = msgspec.structs.replace(partition.topic_properties, cleanup_policy=cleanup_policy)
    assert answers(deleting.ask((NAME.topic, 3))) == answer


def test_a_partition_that_is_refused_does_not_hold_up_the_others() -> None:
    deleting = Deleting()
    assert answers(deleting.ask(("missing", 3), (NAME.topic, 3))) == []
    deleting.follow(FIRST, 3)
    results = [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None), (ErrorCode.NONE, 3)]
    assert answers(deleting.follow(SECOND, 3)) == [(1, results)]


def test_waiting_requests_learn_that_leadership_is_lost() -> None:
    deleting = Deleting()
    deleting.ask((NAME.topic, 3))
    deleting.hosting.follow(FIRST, leader_epoch=2, partition_epoch=2)
    turn = deleting.turn()
    deleting.handler.check(turn)
    assert answers(turn) == [(1, [(ErrorCode.NOT_LEADER_OR_FOLLOWER, None)])]


def test_it_times_out_and_the_records_stay_deleted() -> None:
    deleting = Deleting()
    deleting.ask((NAME.topic, 3))
    assert answers(deleting.pass_time(TIMEOUT_MS - 1)) == []
    assert answers(deleting.pass_time(1)) == [(1, [(ErrorCode.REQUEST_TIMED_OUT, None)])]
    assert deleting.hosting.partition.log.log_start_offset == 3


def test_past_the_limit_the_oldest_times_out_early() -> None:
    deleting = Deleting()
    for _ in range(WAITING_MAX):
        assert answers(deleting.ask((NAME.topic, 3))) == []
    assert answers(deleting.ask((NAME.topic, 3))) == [(1, [(ErrorCode.REQUEST_TIMED_OUT, None)])]


def test_each_partition_is_answered_with_the_low_watermark_that_settled_it() -> None:
    deleting = Deleting()
    deleting.ask((NAME.topic, 5), (NAME.topic, 3))
    deleting.follow(FIRST, 3)
    deleting.follow(SECOND, 3)
    deleting.follow(FIRST, 5)
    assert answers(deleting.follow(SECOND, 5)) == [(1, [(ErrorCode.NONE, 5), (ErrorCode.NONE, 3)])]
