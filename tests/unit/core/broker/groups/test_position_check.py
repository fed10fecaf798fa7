"""Positions that a group is told, by where their records end in the logs of leaders."""

import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.broker.groups.position_check import PositionCheck
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import CommittedOffset, OffsetFetchResponse
from laststand.emulator.core.types import LeaderEpoch, Offset
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, Hosting


class Answers:
    """The sender of an OffsetFetch, and the leader of the partition, which is another broker or this one."""

    def __init__(self, *, is_own: bool = False) -> None:
        self.hosting = Hosting(records=5)
        leader = OWN if is_own else FIRST
        state = self.hosting.state(leader=leader, isr=(leader,), leader_epoch=1, partition_epoch=1)
        self.hosting.image.partitions[NAME] = state
        if is_own:
            self.hosting.partition.become_leader(self.hosting.turn(), state)
        self.check = PositionCheck(self.hosting.config, self.hosting.hosted, InFlightRequests())
        self.response: OffsetFetchResponse | None = None
        self.request: messages.Request | None = None

    def answer(self, _turn: Turn, response: messages.Response) -> None:
        assert isinstance(response, OffsetFetchResponse)
        self.response = response

    def ask(self, offset: int, leader_epoch: int | None = 0) -> None:
        epoch = None if leader_epoch is None else LeaderEpoch(leader_epoch)
        position = CommittedOffset(partition=NAME, offset=offset, leader_epoch=epoch)
        turn = self.hosting.turn()
        self.check.begin(turn, self, OffsetFetchResponse(error=ErrorCode.NONE, offsets=(position,)))
        (self.request,) = [getattr(effect, "request", None) for effect in turn.effects()] or [None]

    def hear(self, end_offset: int | None, error: ErrorCode = ErrorCode.NONE) -> None:
        result = messages.EpochPositionResult(
            topic=NAME.topic,
            partition=NAME.partition,
            error=error,
            leader_epoch=None if end_offset is None else LeaderEpoch(0),
            end_offset=None if end_offset is None else Offset(end_offset),
        )
        response = messages.OffsetForLeaderEpochResponse(partitions=(result,))
        assert self.request is not None
        assert self.check.handle_response(self.hosting.turn(), self.request, response)

    @property
    def told(self) -> list[int]:
        assert self.response is not None
        return [each.offset for each in self.response.offsets]


@pytest.mark.parametrize(
    ("end_offset", "told"),
    [
        pytest.param(60, [60], id="the log that was read ends there"),
        pytest.param(100, [100], id="it is all there"),
        pytest.param(150, [100], id="there is more"),
        pytest.param(None, [100], id="the leader knows no such epoch"),
    ],
)
def test_no_position_is_returned_beyond_the_end_of_its_records(end_offset: int | None, told: list[int]) -> None:
    answers = Answers()
    answers.ask(100)
    assert answers.response is None
    answers.hear(end_offset)
    assert answers.told == told


def test_a_leader_that_is_not_known_or_does_not_answer_has_the_group_ask_again() -> None:
    for fails in (True, False):
        answers = Answers()
        answers.ask(100)
        if fails:
            assert answers.request is not None
            assert answers.check.handle_failure(answers.hosting.turn(), answers.request)
        else:
            answers.hear(None, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert answers.response is not None
        assert (answers.told, answers.response.unstable) == ([], (NAME,))


def test_the_own_log_is_looked_at_at_once() -> None:
    answers = Answers(is_own=True)
    answers.ask(100)
    assert answers.told == [5]


def test_a_position_without_an_epoch_is_returned_as_it_was_committed() -> None:
    answers = Answers()
    answers.ask(100, None)
    assert answers.told == [100]


def test_requests_of_others_are_none_of_its_concern() -> None:
    answers = Answers()
    request = messages.OffsetForLeaderEpochRequest(partitions=())
    response = messages.OffsetForLeaderEpochResponse(partitions=())
    assert not answers.check.handle_response(answers.hosting.turn(), request, response)
    assert not answers.check.handle_failure(answers.hosting.turn(), request)
