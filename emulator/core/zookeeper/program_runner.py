"""Runs programs that wait for ZooKeeper, one at a time, and repeats steps that a lost connection left unanswered.

Kafka's ``KafkaZkClient.retryRequestsUntilConnected``: steps whose connection was lost are sent again as they were once
the server is reached, although the first try may have been executed. Each program has to handle the refusal that may
follow.

States and edges::

    IDLE --start--> WAITING --answer--> WAITING (more steps) or IDLE (returned, or raised)
                    WAITING --connection lost--> DISCONNECTED --reconnected--> WAITING
                    WAITING or DISCONNECTED --abandon--> IDLE
"""

from typing import Generic

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import CorrelationId
from laststand.emulator.core.zookeeper import exchange, operations


class ProgramRunner(Generic[operations.ResultT]):
    """At most one program, its steps under way, and the requests to be sent.

    Correlation ids are drawn from ``first_correlation_id`` on, so that several runners can share one session.
    """

    def __init__(self, *, first_correlation_id: int = 0, correlation_id_step: int = 1) -> None:
        self._program: operations.Program[operations.ResultT] | None = None
        self._steps: operations.Steps = ()
        self._next_correlation_id = first_correlation_id
        self._correlation_id_step = correlation_id_step
        self._awaited: CorrelationId | None = None

    @property
    def is_idle(self) -> bool:
        """No program runs."""
        return self._program is None

    def start(
        self, program: operations.Program[operations.ResultT]
    ) -> "exchange.ZooKeeperRequest | Finished[operations.ResultT]":
        """Starts a program; returns its first request, or its result if it needs none.

        Raises:
            InvariantError: another program is running.
        """
        if self._program is not None:
            raise InvariantError("a program of this runner waits for ZooKeeper already")
        self._program = program
        return self._resume(None)

    def answered(
        self, correlation_id: CorrelationId, answers: operations.Answers
    ) -> "exchange.ZooKeeperRequest | Finished[operations.ResultT] | None":
        """Resumes the program; ``None`` where the answer is to a request that was given up."""
        if correlation_id != self._awaited:
            return None
        return self._resume(answers)

    def connection_lost(self) -> None:
        """Notes that the request under way will not be answered."""
        self._awaited = None

    def reconnected(self) -> exchange.ZooKeeperRequest | None:
        """Returns the steps whose answer was lost, to be sent again."""
        return None if self._program is None or self._awaited is not None else self._request()

    def abandon(self) -> None:
        """Drops the program at its present step, because the session has ended."""
        if self._program is not None:
            self._program.close()
        self._program = None
        self._awaited = None

    def _resume(self, answers: operations.Answers | None) -> "exchange.ZooKeeperRequest | Finished[operations.ResultT]":
        program = self._program
        if program is None:
            raise InvariantError("an answer of ZooKeeper without a program that waits for it")
        self._awaited = None
        try:
            self._steps = next(program) if answers is None else program.send(answers)
        except StopIteration as stop:
            self._program = None
            return Finished(stop.value)
        except BaseException:
            self._program = None
            raise
        return self._request()

    def _request(self) -> exchange.ZooKeeperRequest:
        correlation_id = CorrelationId(self._next_correlation_id)
        self._next_correlation_id += self._correlation_id_step
        self._awaited = correlation_id
        return exchange.ZooKeeperRequest(correlation_id=correlation_id, steps=self._steps)


class Finished(Generic[operations.ResultT]):
    """The return value of a program."""

    __slots__ = ("result",)

    def __init__(self, result: operations.ResultT) -> None:
        self.result = result
