"""A ZooKeeper server for tests: started as a run starts it, and its clients on an event loop of their own."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

from laststand.chaos.play.zookeeper_server import zookeeper_for
from laststand.emulator.cluster.child import Child, ProcessSpec
from laststand.emulator.cluster.ports import LOOPBACK, ReservedPort
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.cluster.zookeeper_probe import await_zookeeper
from laststand.emulator.cluster.zookeeper_program import server_settings
from laststand.emulator.core.types import CorrelationId
from laststand.emulator.core.zookeeper import exchange, operations
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.zookeeper.session import ZooKeeperSession
from laststand.emulator.zookeeper.takeover import end_session

SESSION_TIMEOUT_MS = 4000
_ANSWERS_WITHIN_S = 30.0


class Client:
    """One session, and what it was told. Use it on the event loop."""

    def __init__(self, address: str, *, timeout_ms: int = SESSION_TIMEOUT_MS) -> None:
        self.told: list[exchange.ZooKeeperInput] = []
        self._changed = asyncio.Condition()
        self._numbers = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self.session = ZooKeeperSession(address, timeout_ms=timeout_ms, deliver=self._hear)

    def _hear(self, told: exchange.ZooKeeperInput) -> None:
        self.told.append(told)
        task = asyncio.get_running_loop().create_task(self._notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def wait(self, is_there: Callable[[], bool]) -> None:
        async with asyncio.timeout(_ANSWERS_WITHIN_S), self._changed:
            await self._changed.wait_for(is_there)

    async def open(self) -> SessionId:
        self.session.execute(exchange.OpenSession())
        await self.wait(lambda: any(isinstance(told, exchange.SessionEstablished) for told in self.told))
        session_id = self.session.session_id
        assert session_id is not None
        return session_id

    async def execute(self, *steps: operations.Step) -> operations.Answers:
        number = CorrelationId(next(self._numbers))
        self.session.execute(exchange.ZooKeeperRequest(correlation_id=number, steps=steps))

        def answers() -> list[operations.Answers]:
            told = (each for each in self.told if isinstance(each, exchange.ZooKeeperAnswered))
            return [each.answers for each in told if each.correlation_id == number]

        await self.wait(lambda: bool(answers()) or self.has_expired)
        return (
            answers()[0]
            if answers()
            else tuple(operations.OperationFailed(operations.ZooKeeperFailure.SESSION_EXPIRED) for _ in steps)
        )

    @property
    def has_expired(self) -> bool:
        """True if the server has said that the session is over: nothing is answered any more."""
        return any(isinstance(told, exchange.SessionExpired) for told in self.told)

    async def events(self) -> tuple[operations.WatchEvent, ...]:
        """Returns, once, what the watches saw so far: it comes before the answer to anything asked later."""
        await self.execute(operations.Exists(path="/"))
        fired = [told for told in self.told if isinstance(told, exchange.WatchFired)]
        self.told = [told for told in self.told if not isinstance(told, exchange.WatchFired)]
        return tuple(each.event for each in fired)

    async def close(self) -> None:
        self.session.execute(exchange.CloseSession())
        await self.session.close()


class Server:
    """A server that runs.

    Attributes:
        address: where it listens.
        data: its directory.
        child: its process.
    """

    def __init__(self, runner: asyncio.Runner, address: str, data: Path, child: Child) -> None:
        self.address = address
        self.data = data
        self.child = child
        self.runner = runner
        self._roots = itertools.count()

    def new_root(self) -> str:
        """Returns an address at which the tree is empty: below a node of its own."""
        path = f"/root-{next(self._roots)}"

        async def make() -> None:
            client = Client(self.address)
            await client.open()
            await client.execute(operations.Create(path=path))
            await client.close()

        self.runner.run(make())
        return self.address + path


class UnderTest:
    """``ZooKeeperUnderTest``: a real server behind our own sessions."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._root = server.new_root()
        self._clients: dict[SessionId, Client] = {}

    def open_session(self) -> SessionId:
        async def open_one() -> SessionId:
            client = Client(self._root)
            session_id = await client.open()
            self._clients[session_id] = client
            return session_id

        return self._server.runner.run(open_one())

    def execute(self, session_id: SessionId, *steps: operations.Step) -> operations.Answers:
        return self._server.runner.run(self._clients[session_id].execute(*steps))

    def events(self, session_id: SessionId) -> tuple[operations.WatchEvent, ...]:
        return self._server.runner.run(self._clients[session_id].events())

    def close_session(self, session_id: SessionId) -> None:
        self._server.runner.run(self._clients.pop(session_id).close())

    def expire_session(self, session_id: SessionId) -> None:
        self._server.runner.run(end_session(self._server.address, session_id))

    def close(self) -> None:
        for session_id in tuple(self._clients):
            self.close_session(session_id)


@contextlib.contextmanager
def zookeeper_server(directory: Path) -> Iterator[Server]:
    """Starts a server and ends it."""
    program = zookeeper_for(("kafka-3.9-zk",), DriverName.PROCESS)
    assert program is not None
    port = ReservedPort()
    port.lend()
    settings = directory / "zoo.cfg"
    data = directory / "data"
    data.mkdir()
    settings.write_text(
        server_settings(data=data, host=LOOPBACK, port=port.number, session_timeout_ms=SESSION_TIMEOUT_MS)
    )
    supervisor = Supervisor()
    spec = ProcessSpec(
        name="zookeeper",
        argv=program.command(settings),
        stderr_path=directory / "node.log",
        exits_with_signal_number=True,
    )

    async def start() -> Child:
        child = await supervisor.start(spec)
        assert await await_zookeeper(port.address, timeout_s=_ANSWERS_WITHIN_S)
        return child

    async def stop() -> None:
        await supervisor.stop_all()

    with asyncio.Runner() as runner:
        try:
            yield Server(runner, port.address, data, runner.run(start()))
        finally:
            runner.run(stop())
            port.close()
