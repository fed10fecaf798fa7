"""Programs that wait for ZooKeeper: one at a time, sent again after a lost connection, given up with the session."""

import pytest

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import CorrelationId
from laststand.emulator.core.zookeeper import exchange, operations
from laststand.emulator.core.zookeeper.program_queue import ProgramQueue
from laststand.emulator.core.zookeeper.program_runner import Finished, ProgramRunner


def ask_twice() -> operations.Program[tuple[operations.StepAnswer, operations.StepAnswer]]:
    (first,) = yield (operations.Exists(path="/a"),)
    (second,) = yield (operations.GetData(path="/b"),)
    return first, second


def nothing() -> operations.Program[str]:
    return "done"
    yield


def test_a_program_is_resumed_with_each_answer_and_returns() -> None:
    runner: ProgramRunner[tuple[operations.StepAnswer, operations.StepAnswer]] = ProgramRunner(
        first_correlation_id=4, correlation_id_step=2
    )
    assert runner.start(ask_twice()) == exchange.ZooKeeperRequest(
        correlation_id=CorrelationId(4), steps=(operations.Exists(path="/a"),)
    )
    again = runner.answered(CorrelationId(4), (operations.Checked(),))
    assert again == exchange.ZooKeeperRequest(correlation_id=CorrelationId(6), steps=(operations.GetData(path="/b"),))
    assert not runner.is_idle
    finished = runner.answered(CorrelationId(6), (operations.Deleted(),))
    assert isinstance(finished, Finished)
    assert finished.result == (operations.Checked(), operations.Deleted())
    assert runner.is_idle


def test_a_program_that_asks_nothing_is_done_at_once() -> None:
    finished = ProgramRunner[str]().start(nothing())
    assert isinstance(finished, Finished)
    assert finished.result == "done"


def test_two_programs_at_once_are_a_bug() -> None:
    runner: ProgramRunner[tuple[operations.StepAnswer, operations.StepAnswer]] = ProgramRunner()
    runner.start(ask_twice())
    with pytest.raises(InvariantError):
        runner.start(ask_twice())


def test_what_a_lost_connection_left_open_is_sent_again_under_another_id() -> None:
    runner: ProgramRunner[tuple[operations.StepAnswer, operations.StepAnswer]] = ProgramRunner()
    runner.start(ask_twice())
    runner.connection_lost()
    assert runner.answered(CorrelationId(0), (operations.Checked(),)) is None
    assert runner.reconnected() == exchange.ZooKeeperRequest(
        correlation_id=CorrelationId(1), steps=(operations.Exists(path="/a"),)
    )
    assert runner.reconnected() is None
    assert isinstance(runner.answered(CorrelationId(1), (operations.Checked(),)), exchange.ZooKeeperRequest)


def test_a_program_that_is_given_up_gets_no_more_input() -> None:
    runner: ProgramRunner[tuple[operations.StepAnswer, operations.StepAnswer]] = ProgramRunner()
    runner.start(ask_twice())
    runner.abandon()
    assert runner.is_idle
    assert runner.answered(CorrelationId(0), (operations.Checked(),)) is None
    assert runner.reconnected() is None


def test_a_queue_runs_one_program_after_the_other() -> None:
    queue: ProgramQueue[tuple[operations.StepAnswer, operations.StepAnswer] | str] = ProgramQueue(
        first_correlation_id=1, correlation_id_step=2
    )
    queue.enqueue(ask_twice())
    queue.enqueue(nothing())
    assert [request.correlation_id for request in queue.requests] == [1]
    assert queue.results == []
    queue.answered(CorrelationId(0), (operations.Checked(),))  # another queue's
    queue.answered(CorrelationId(1), (operations.Checked(),))
    queue.connection_lost()
    queue.reconnected()
    assert [request.correlation_id for request in queue.requests] == [1, 3, 5]
    queue.answered(CorrelationId(5), (operations.Deleted(),))
    assert queue.results == [(operations.Checked(), operations.Deleted()), "done"]
    assert queue.is_idle


def test_a_queue_forgets_everything_with_its_session() -> None:
    queue: ProgramQueue[tuple[operations.StepAnswer, operations.StepAnswer] | str] = ProgramQueue(
        first_correlation_id=0, correlation_id_step=1
    )
    queue.enqueue(ask_twice())
    queue.enqueue(nothing())
    queue.abandon()
    assert queue.is_idle
    assert queue.results == []
