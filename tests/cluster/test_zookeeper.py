"""A real ZooKeeper server keeps the contract that the model keeps, and its log says what was done."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from laststand.emulator.core.zookeeper import exchange, operations
from laststand.emulator.zookeeper.takeover import end_session
from laststand.emulator.zookeeper.transaction_log import TransactionLogReader
from tests.cluster.zookeeper_server import Client, Server, UnderTest, zookeeper_server
from tests.unit.core.zookeeper.contract import ZooKeeperContract

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as started:
        yield started


class TestServer(ZooKeeperContract):
    @pytest.fixture
    def zookeeper(self, server: Server) -> Iterator[UnderTest]:
        under_test = UnderTest(server)
        yield under_test
        under_test.close()


class Proxy:
    """Passes bytes on until it is told to break all connections, and refuses new ones while it is closed."""

    def __init__(self, upstream: str) -> None:
        self._host, _, port = upstream.rpartition(":")
        self._port = int(port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_open = True

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._is_open:
            writer.close()
            return
        to_reader, to_writer = await asyncio.open_connection(self._host, self._port)
        self._writers |= {writer, to_writer}
        await asyncio.gather(self._pass(reader, to_writer), self._pass(to_reader, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while content := await reader.read(65_536):
                writer.write(content)
        except OSError:
            pass
        writer.close()

    def cut(self) -> None:
        self._is_open = False
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    def mend(self) -> None:
        self._is_open = True

    async def stop(self) -> None:
        self.cut()
        self._server.close()


def test_what_watches_missed_is_reported_after_a_reconnect(server: Server) -> None:
    root = server.new_root()
    path = root.removeprefix(server.address)

    async def play() -> None:
        proxy = Proxy(server.address)
        watching, other = Client(await proxy.start() + path), Client(root)
        await watching.open()
        await other.open()
        await other.execute(
            operations.Create(path="/set"),
            operations.Create(path="/gone"),
            operations.Create(path="/still"),
            operations.Create(path="/parent"),
        )
        await watching.execute(
            operations.GetData(path="/set", is_watched=True),
            operations.Exists(path="/gone", is_watched=True),
            operations.Exists(path="/made", is_watched=True),
            operations.GetData(path="/still", is_watched=True),
            operations.GetChildren(path="/parent", is_watched=True),
            operations.GetChildren(path="/still", is_watched=True),
        )
        proxy.cut()
        await watching.wait(lambda: any(isinstance(told, exchange.ZooKeeperConnectionLost) for told in watching.told))
        await other.execute(
            operations.SetData(path="/set", data=b"x", version=None),
            operations.Delete(path="/gone", version=None),
            operations.Create(path="/made"),
            operations.Create(path="/parent/child"),
        )
        proxy.mend()
        await watching.wait(lambda: any(isinstance(told, exchange.ZooKeeperReconnected) for told in watching.told))
        told = [each.event for each in watching.told if isinstance(each, exchange.WatchFired)]
        assert sorted(map(repr, told)) == sorted(
            map(
                repr,
                [
                    operations.NodeChanged(path="/set", kind=operations.ZooKeeperEventKind.DATA_CHANGED),
                    operations.NodeChanged(path="/gone", kind=operations.ZooKeeperEventKind.DELETED),
                    operations.NodeChanged(path="/made", kind=operations.ZooKeeperEventKind.CREATED),
                    operations.ChildrenChanged("/parent"),
                ],
            )
        )
        await watching.events()
        # What nothing happened to is watched on.
        await other.execute(
            operations.SetData(path="/still", data=b"x", version=None), operations.Create(path="/still/child")
        )
        assert set(await watching.events()) == {
            operations.NodeChanged(path="/still", kind=operations.ZooKeeperEventKind.DATA_CHANGED),
            operations.ChildrenChanged("/still"),
        }
        await watching.close()
        await other.close()
        await proxy.stop()

    server.runner.run(play())


def test_the_owner_of_an_ended_session_learns_of_it_and_opens_no_new_one_by_itself(server: Server) -> None:
    root = server.new_root()

    async def play() -> None:
        client, other = Client(root), Client(root)
        session_id = await client.open()
        await other.open()
        await client.execute(operations.Create(path="/mine", kind=operations.NodeKind.EPHEMERAL))
        await end_session(server.address, session_id)
        await client.wait(lambda: any(isinstance(told, exchange.SessionExpired) for told in client.told))
        assert client.session.session_id is None
        assert await other.execute(operations.Exists(path="/mine")) == (
            operations.OperationFailed(operations.ZooKeeperFailure.NO_NODE),
        )
        client.told.clear()
        assert await client.open() != session_id
        await client.close()
        await other.close()

    server.runner.run(play())


def test_the_transaction_log_has_every_change_in_order(server: Server) -> None:
    root = server.new_root()
    path = root.removeprefix(server.address)
    reader = TransactionLogReader(server.data)
    list(reader.read_new())

    async def play() -> list[int]:
        owner, other = Client(root), Client(root)
        owned, closed = await owner.open(), await other.open()
        await other.execute(
            operations.Create(path="/a", data=b"1"),
            operations.SetData(path="/a", data=b"2", version=None),
            operations.Create(path="/a/n-", kind=operations.NodeKind.SEQUENTIAL),
            operations.SetData(path="/nowhere", data=b"", version=None),
        )
        await owner.execute(operations.Create(path="/e", kind=operations.NodeKind.EPHEMERAL))
        await other.execute(operations.Create(path="/f", kind=operations.NodeKind.EPHEMERAL))
        await end_session(server.address, owned)
        await other.close()
        await owner.close()
        return [owned, closed]

    owned, closed = server.runner.run(play())
    read = list(reader.read_new())
    zxids = [transaction.zxid for transaction in read]
    assert zxids == list(range(zxids[0], zxids[0] + len(zxids)))  # what was refused has one, too
    changes = [
        (each.path.removeprefix(path), each.kind.value, each.data, each.version, each.session_id, each.is_closing)
        for transaction in read
        for each in transaction.changes
    ]
    assert changes == [
        ("/a", "created", b"1", 0, closed, False),
        ("/a", "data_changed", b"2", 1, closed, False),
        ("/a/n-0000000000", "created", b"", 0, closed, False),
        ("/e", "created", b"", 0, owned, False),
        ("/f", "created", b"", 0, closed, False),
        ("/e", "deleted", b"", None, owned, False),
        ("/f", "deleted", b"", None, closed, True),
    ]
    assert reader.data(f"{path}/a") == b"2"
    assert reader.children(f"{path}/a") == ("n-0000000000",)


def test_a_file_that_is_no_transaction_log_is_refused(tmp_path: Path) -> None:
    from laststand.emulator.core.errors import StorageError

    folder = tmp_path / "version-2"
    folder.mkdir()
    (folder / "log.1").write_bytes(b"something else altogether")
    with pytest.raises(StorageError, match="no transaction log of ZooKeeper"):
        list(TransactionLogReader(tmp_path).read_new())
