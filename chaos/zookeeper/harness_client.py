"""The harness's own session with the ZooKeeper server, past all proxies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.zookeeper import exchange, operations
from laststand.emulator.core.zookeeper.program_runner import Finished, ProgramRunner
from laststand.emulator.zookeeper.session import ZooKeeperSession

ResultT = TypeVar("ResultT")

_ANSWERS_WITHIN_S: Final = 30.0


class NoZooKeeperError(EmulatorError):
    """The server did not answer the harness in time."""


class HarnessClient:
    """Runs programs, one at a time; repeats requests that a lost connection left unanswered.

    Args:
        address: of the server.
        timeout_ms: of its session.
    """

    def __init__(self, address: str, *, timeout_ms: int) -> None:
        self._session = ZooKeeperSession(address, timeout_ms=timeout_ms, deliver=self._handle)
        self._runner: ProgramRunner[Any] = ProgramRunner()
        self._result: asyncio.Future[Any] | None = None
        self._one_program = asyncio.Lock()
        self._session.execute(exchange.OpenSession())

    async def run(self, program: operations.Program[ResultT]) -> ResultT:
        """Runs a program to its end; returns its result.

        Raises:
            NoZooKeeperError: the server did not answer in time.
        """
        async with self._one_program:
            self._result = asyncio.get_running_loop().create_future()
            try:
                self._handle_outcome(self._runner.start(program))
                async with asyncio.timeout(_ANSWERS_WITHIN_S):
                    result: ResultT = await self._result
                    return result
            except TimeoutError:
                self._runner.abandon()
                raise NoZooKeeperError(f"ZooKeeper did not answer within {_ANSWERS_WITHIN_S:g} s") from None
            finally:
                self._result = None

    async def close(self) -> None:
        """Ends the session."""
        await self._session.close()

    def _handle(self, incoming: exchange.ZooKeeperInput) -> None:
        match incoming:
            case exchange.ZooKeeperAnswered(correlation_id=correlation_id, answers=answers):
                self._handle_outcome(self._runner.answered(correlation_id, answers))
            case exchange.ZooKeeperConnectionLost():
                self._runner.connection_lost()
            case exchange.SessionExpired():
                self._runner.connection_lost()
                self._session.execute(exchange.OpenSession())
            case exchange.ZooKeeperReconnected() | exchange.SessionEstablished():
                self._handle_outcome(self._runner.reconnected())
            case _:
                pass

    def _handle_outcome(self, outcome: exchange.ZooKeeperRequest | Finished[Any] | None) -> None:
        match outcome:
            case exchange.ZooKeeperRequest():
                self._session.execute(outcome)
            case Finished(result=result) if self._result is not None and not self._result.done():
                self._result.set_result(result)
            case _:
                pass


@asynccontextmanager
async def harness_client(address: str, *, timeout_ms: int) -> AsyncIterator[HarnessClient]:
    """Opens a session, and ends it."""
    client = HarnessClient(address, timeout_ms=timeout_ms)
    try:
        yield client
    finally:
        await client.close()
