"""The model in memory keeps the contract, and time."""

import pytest

from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.core.zookeeper.server import ZooKeeperServer
from tests.unit.core.zookeeper.contract import ZooKeeperContract, ZooKeeperUnderTest

TIMEOUT_MS = 6000


class Model:
    """The model behind the contract's seam; its clock stands still but for an expiry."""

    def __init__(self) -> None:
        self.server = ZooKeeperServer()
        self.now_ms = 0
        self._alive: list[SessionId] = []

    def open_session(self) -> SessionId:
        session_id = self.server.open_session(timeout_ms=TIMEOUT_MS, now_ms=self.now_ms)
        self._alive.append(session_id)
        return session_id

    def execute(self, session_id: SessionId, *steps: operations.Step) -> operations.Answers:
        return self.server.execute(session_id, steps)

    def events(self, session_id: SessionId) -> tuple[operations.WatchEvent, ...]:
        return self.server.pop_events(session_id)

    def close_session(self, session_id: SessionId) -> None:
        self._alive.remove(session_id)
        self.server.end_session(session_id)

    def expire_session(self, session_id: SessionId) -> None:
        self._alive.remove(session_id)
        self.now_ms += TIMEOUT_MS
        for alive in self._alive:
            self.server.hear(alive, now_ms=self.now_ms)
        self.server.expire_silent(now_ms=self.now_ms)


class TestModel(ZooKeeperContract):
    @pytest.fixture
    def zookeeper(self) -> ZooKeeperUnderTest:
        return Model()


def test_a_session_expires_once_it_was_silent_for_its_timeout() -> None:
    server = ZooKeeperServer()
    silent = server.open_session(timeout_ms=TIMEOUT_MS, now_ms=0)
    heard = server.open_session(timeout_ms=TIMEOUT_MS, now_ms=0)
    server.hear(heard, now_ms=1)
    assert server.next_expiry_ms() == TIMEOUT_MS
    assert server.expire_silent(now_ms=TIMEOUT_MS - 1) == ()
    assert server.expire_silent(now_ms=TIMEOUT_MS) == (silent,)
    assert not server.is_alive(silent)
    assert server.is_alive(heard)
    server.hear(silent, now_ms=TIMEOUT_MS)
    assert not server.is_alive(silent)


def test_each_ephemeral_node_of_an_expired_session_goes_by_a_write_of_its_own() -> None:
    server = ZooKeeperServer()
    session = server.open_session(timeout_ms=TIMEOUT_MS, now_ms=0)
    server.execute(
        session, tuple(operations.Create(path=path, kind=operations.NodeKind.EPHEMERAL) for path in ("/b", "/a"))
    )
    before = server.last_zxid
    server.expire_silent(now_ms=TIMEOUT_MS)
    assert server.last_zxid == before + 2
    assert server.children("/") == ()


def test_refused_writes_have_no_zxid() -> None:
    server = ZooKeeperServer()
    session = server.open_session(timeout_ms=TIMEOUT_MS, now_ms=0)
    server.execute(session, (operations.SetData(path="/a", data=b"", version=None), operations.Create(path="/a/b")))
    assert server.last_zxid == 0


def test_a_client_without_watches_gets_no_notice_after_a_lost_connection() -> None:
    server = ZooKeeperServer()
    session = server.open_session(timeout_ms=TIMEOUT_MS, now_ms=0)
    server.execute(session, (operations.Create(path="/a"), operations.Exists(path="/a", is_watched=True)))
    server.drop_watches(session)
    server.execute(session, (operations.SetData(path="/a", data=b"", version=None),))
    assert server.pop_events(session) == ()
    assert server.watches()[session] == frozenset()


def test_a_session_that_is_gone_gets_no_answer_but_that() -> None:
    server = ZooKeeperServer()
    session = server.open_session(timeout_ms=TIMEOUT_MS, now_ms=0)
    server.end_session(session)
    assert server.execute(session, (operations.GetData(path="/"),)) == (
        operations.OperationFailed(operations.ZooKeeperFailure.SESSION_EXPIRED),
    )
    assert server.pop_events(session) == ()
