"""Programs that wait for ZooKeeper: one at a time, sent again after a lost connection, given up with the session."""

import pytest

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import CorrelationId
from laststand.emulator.core.zookeeper.exchange import ZooKeeperRequest
from laststand.emulator.core.zookeeper.operations import Checked, Deleted, Exists, GetData, Program, StepAnswer
from laststand.emulator.core.zookeeper.program_queue import ProgramQueue
from laststand.emulator.core.zookeeper.program_runner import Finished, ProgramRunner


def ask_twice() -> Program[tuple[StepAnswer, StepAnswer]]:
    (first,) = yield (Exists(path="/a"),)
    (second,) = yield (GetData(path="/b"),)
    return first, second


def nothing() -> Program[str]:
    return "done"
    yield


def test_a_program_is_resumed_with_each_answer_and_returns() -> None:
    runner: ProgramRunner[tuple[StepAnswer, StepAnswer]] = ProgramRunner(first_correlation_id=4, correlation_id_step=2)
    assert runner.start(ask_twice()) == ZooKeeperRequest(correlation_id=CorrelationId(4), steps=(Exists(path="/a"),))
    again = runner.answered(CorrelationId(4), (Checked(),))
    assert again == ZooKeeperRequest(correlation_id=CorrelationId(6), steps=(GetData(path="/b"),))
    assert not runner.is_idle
    finished = runner.answered(CorrelationId(6), (Deleted(),))
    assert isinstance(finished, Finished)
    assert finished.result == (Checked(), Deleted())
    assert runner.is_idle


def test_a_program_that_asks_nothing_is_done_at_once() -> None:
    finished = ProgramRunner[str]().start(nothing())
    assert isinstance(finished, Finished)
    assert finished.result == "done"


def test_two_programs_at_once_are_a_bug() -> None:
    runner: ProgramRunner[tuple[StepAnswer, StepAnswer]] = ProgramRunner()
    runner.start(ask_twice())
    with pytest.raises(InvariantError):
        runner.start(ask_twice())


def test_what_a_lost_connection_left_open_is_sent_again_under_another_id() -> None:
    runner: ProgramRunner[tuple[StepAnswer, StepAnswer]] = ProgramRunner()
    runner.start(ask_twice())
    runner.connection_lost()
    assert runner.answered(CorrelationId(0), (Checked(),)) is None
    assert runner.reconnected() == ZooKeeperRequest(correlation_id=CorrelationId(1), steps=(Exists(path="/a"),))
    assert runner.reconnected() is None
    assert isinstance(runner.answered(CorrelationId(1), (Checked(),)), ZooKeeperRequest)


def test_a_program_that_is_given_up_hears_nothing_any_more() -> None:
    runner: ProgramRunner[tuple[StepAnswer, StepAnswer]] = ProgramRunner()
    runner.start(ask_twice())
    runner.abandon()
    assert runner.is_idle
    assert runner.answered(CorrelationId(0), (Checked(),)) is None
    assert runner.reconnected() is None


def test_a_queue_runs_one_program_after_the_other() -> None:
    queue: ProgramQueue[tuple[StepAnswer, StepAnswer] | str] = ProgramQueue(
        first_correlation_id=1, correlation_id_step=2
    )
    queue.put(ask_twice())
    queue.put(nothing())
    assert [request.correlation_id for request in queue.requests] == [1]
    assert queue.results == []
    queue.answered(CorrelationId(0), (Checked(),))  # another queue's
    queue.answered(CorrelationId(1), (Checked(),))
    queue.connection_lost()
    queue.reconnected()
    assert [request.correlation_id for request in queue.requests] == [1, 3, 5]
    queue.answered(CorrelationId(5), (Deleted(),))
    assert queue.results == [(Checked(), Deleted()), "done"]
    assert queue.is_idle


def test_a_queue_forgets_everything_with_its_session() -> None:
    queue: ProgramQueue[tuple[StepAnswer, StepAnswer] | str] = ProgramQueue(
        first_correlation_id=0, correlation_id_step=1
    )
    queue.put(ask_twice())
    queue.put(nothing())
    queue.abandon()
    assert queue.is_idle
    assert queue.results == []
