"""Programs of one kind, in order: each waits for ZooKeeper until it is done, then the next one starts."""

from collections import deque
from typing import Generic

from laststand.emulator.core.types import CorrelationId
from laststand.emulator.core.zookeeper import exchange, operations
from laststand.emulator.core.zookeeper.program_runner import Finished, ProgramRunner


class ProgramQueue(Generic[operations.ResultT]):
    """A queue and its runner.

    Attributes:
        requests: to be sent, in order; the owner of the queue empties it.
        results: the programs' return values, in order; the owner of the queue empties it.
    """

    def __init__(self, *, first_correlation_id: int, correlation_id_step: int) -> None:
        self._runner: ProgramRunner[operations.ResultT] = ProgramRunner(
            first_correlation_id=first_correlation_id, correlation_id_step=correlation_id_step
        )
        self._waiting: deque[operations.Program[operations.ResultT]] = deque()
        self.requests: list[exchange.ZooKeeperRequest] = []
        self.results: list[operations.ResultT] = []

    @property
    def is_idle(self) -> bool:
        """No program runs or waits."""
        return self._runner.is_idle and not self._waiting

    def enqueue(self, program: operations.Program[operations.ResultT]) -> None:
        """Starts a program once those before it are done."""
        self._waiting.append(program)
        self._go_on()

    def answered(self, correlation_id: CorrelationId, answers: operations.Answers) -> None:
        """Takes the answers to a request; answers to another queue's request, or to an abandoned one, are ignored."""
        self._handle_outcome(self._runner.answered(correlation_id, answers))
        self._go_on()

    def connection_lost(self) -> None:
        """Notes that the request under way will not be answered."""
        self._runner.connection_lost()

    def reconnected(self) -> None:
        """Sends the request under way again."""
        again = self._runner.reconnected()
        if again is not None:
            self.requests.append(again)

    def abandon(self) -> None:
        """Drops all programs, because the session has ended."""
        self._runner.abandon()
        self._waiting.clear()

    def _go_on(self) -> None:
        while self._runner.is_idle and self._waiting:
            self._handle_outcome(self._runner.start(self._waiting.popleft()))

    def _handle_outcome(self, outcome: exchange.ZooKeeperRequest | Finished[operations.ResultT] | None) -> None:
        match outcome:
            case exchange.ZooKeeperRequest():
                self.requests.append(outcome)
            case Finished():
                self.results.append(outcome.result)
