"""Properties of ZooKeeper that Kafka relies on, as tests that any implementation has to pass.

``ZooKeeperContract`` drives an implementation through ``ZooKeeperUnderTest``: the model in memory, or a real server
behind a client. A subclass provides the fixture ``zookeeper``; whatever it starts is empty but for the root.
"""

from typing import Protocol

from laststand.emulator.core.zookeeper.identifiers import NodeVersion, SessionId
from laststand.emulator.core.zookeeper.operations import (
    Answers,
    CheckVersion,
    ChildrenChanged,
    ChildrenRead,
    Create,
    Created,
    DataRead,
    DataSet,
    Delete,
    Deleted,
    Exists,
    GetChildren,
    GetData,
    NodeChanged,
    NodeFound,
    NodeKind,
    NodeStat,
    OperationAnswer,
    OperationFailed,
    SetData,
    Step,
    Transaction,
    TransactionAnswer,
    WatchEvent,
    ZooKeeperEventKind,
    ZooKeeperFailure,
)

NO_NODE = OperationFailed(ZooKeeperFailure.NO_NODE)
BAD_VERSION = OperationFailed(ZooKeeperFailure.BAD_VERSION)
NODE_EXISTS = OperationFailed(ZooKeeperFailure.NODE_EXISTS)


class ZooKeeperUnderTest(Protocol):
    """An implementation, as a test sees it."""

    def open_session(self) -> SessionId:
        """Opens a session of a client of its own."""
        ...

    def execute(self, session_id: SessionId, *steps: Step) -> Answers:
        """Sends steps together and awaits their answers."""
        ...

    def events(self, session_id: SessionId) -> tuple[WatchEvent, ...]:
        """Returns, once, what the client's watches saw so far."""
        ...

    def close_session(self, session_id: SessionId) -> None:
        """Ends a session in order."""
        ...

    def expire_session(self, session_id: SessionId) -> None:
        """Lets a session expire."""
        ...


def _stat(answer: object) -> NodeStat:
    assert isinstance(answer, Created | DataSet | DataRead | NodeFound | ChildrenRead), answer
    assert answer.stat is not None
    return answer.stat


def _only(answers: Answers) -> OperationAnswer:
    (answer,) = answers
    assert not isinstance(answer, TransactionAnswer)
    return answer


def _version(number: int) -> NodeVersion:
    return NodeVersion(number)


class ZooKeeperContract:
    """Section by section: nodes, versions, transactions, ephemeral nodes, watches."""

    # --- Nodes ----------------------------------------------------------------------------------------------------

    def test_a_new_node_has_version_0_and_one_zxid(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        created = _only(zookeeper.execute(session, Create(path="/a", data=b"x")))
        read = _only(zookeeper.execute(session, GetData(path="/a")))
        assert isinstance(created, Created)
        assert created.path == "/a"
        assert isinstance(read, DataRead)
        assert read.data == b"x"
        assert read.stat.version == 0
        assert read.stat.czxid == read.stat.mzxid
        assert read.stat.ephemeral_owner is None

    def test_a_node_is_made_once_and_under_a_parent(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        answers = zookeeper.execute(session, Create(path="/a/b"), Create(path="/a"), Create(path="/a"))
        assert answers[0] == NO_NODE
        assert isinstance(answers[1], Created)
        assert answers[2] == NODE_EXISTS

    def test_what_is_not_there_cannot_be_read_or_written(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        answers = zookeeper.execute(
            session,
            GetData(path="/a"),
            Exists(path="/a"),
            GetChildren(path="/a"),
            SetData(path="/a", data=b"", version=None),
            Delete(path="/a", version=None),
        )
        assert answers == (NO_NODE,) * 5

    def test_a_node_with_children_stays(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        zookeeper.execute(session, Create(path="/a"), Create(path="/a/b"), Create(path="/a/c"))
        assert zookeeper.execute(session, Delete(path="/a", version=None)) == (
            OperationFailed(ZooKeeperFailure.NOT_EMPTY),
        )
        children = _only(zookeeper.execute(session, GetChildren(path="/a")))
        assert isinstance(children, ChildrenRead)
        assert children.children == ("b", "c")
        answers = zookeeper.execute(session, *(Delete(path=path, version=None) for path in ("/a/b", "/a/c", "/a")))
        assert answers == (Deleted(),) * 3

    def test_sequential_names_count_past_deletions(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        zookeeper.execute(session, Create(path="/a"))
        sequential = Create(path="/a/n_", kind=NodeKind.SEQUENTIAL)
        first = _only(zookeeper.execute(session, sequential))
        assert isinstance(first, Created)
        assert first.path == "/a/n_0000000000"
        zookeeper.execute(session, Delete(path=first.path, version=None))
        second = _only(zookeeper.execute(session, sequential))
        assert isinstance(second, Created)
        assert second.path == "/a/n_0000000001"

    def test_changes_of_the_children_are_counted(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        zookeeper.execute(session, Create(path="/a"), Create(path="/a/b"), Delete(path="/a/b", version=None))
        assert _stat(_only(zookeeper.execute(session, Exists(path="/a")))).cversion == 2

    # --- Versions -------------------------------------------------------------------------------------------------

    def test_setting_raises_the_version_and_the_mzxid_alone(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        made = _stat(_only(zookeeper.execute(session, Create(path="/a"))))
        changed = _stat(_only(zookeeper.execute(session, SetData(path="/a", data=b"y", version=_version(0)))))
        assert changed.version == 1
        assert changed.czxid == made.czxid
        assert changed.mzxid > made.mzxid

    def test_another_version_is_refused_and_none_matches_any(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        answers = zookeeper.execute(
            session,
            Create(path="/a"),
            SetData(path="/a", data=b"1", version=_version(1)),
            SetData(path="/a", data=b"2", version=None),
            Delete(path="/a", version=_version(0)),
            Delete(path="/a", version=_version(1)),
        )
        assert answers[1] == BAD_VERSION
        assert isinstance(answers[2], DataSet)
        assert answers[3:] == (BAD_VERSION, Deleted())

    def test_a_node_that_is_made_again_starts_over_with_a_later_czxid(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        first = _stat(_only(zookeeper.execute(session, Create(path="/a"))))
        zookeeper.execute(session, SetData(path="/a", data=b"", version=None), Delete(path="/a", version=None))
        second = _stat(_only(zookeeper.execute(session, Create(path="/a"))))
        assert second.version == 0
        assert second.czxid > first.czxid

    # --- Transactions ---------------------------------------------------------------------------------------------

    def test_a_transaction_happens_at_one_zxid(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        operations = (Create(path="/a"), Create(path="/a/b"), SetData(path="/a", data=b"x", version=_version(0)))
        (answer,) = zookeeper.execute(session, Transaction(operations))
        assert isinstance(answer, TransactionAnswer)
        assert not answer.has_failed
        assert answer.answers[:2] == (Created(path="/a", stat=None), Created(path="/a/b", stat=None))
        a, b = (_stat(_only(zookeeper.execute(session, Exists(path=path)))) for path in ("/a", "/a/b"))
        assert (a.czxid, a.mzxid, a.version) == (b.czxid, b.czxid, 1)

    def test_the_first_operation_that_fails_undoes_all(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        zookeeper.execute(session, Create(path="/epoch", data=b"1"))
        operations = (
            Create(path="/a"),
            CheckVersion(path="/epoch", version=_version(4)),
            SetData(path="/nowhere", data=b"", version=None),
        )
        (answer,) = zookeeper.execute(session, Transaction(operations))
        assert answer == TransactionAnswer(
            (
                OperationFailed(ZooKeeperFailure.ROLLED_BACK),
                BAD_VERSION,
                OperationFailed(ZooKeeperFailure.NOT_EXECUTED),
            )
        )
        assert zookeeper.execute(session, Exists(path="/a")) == (NO_NODE,)

    def test_a_check_that_holds_lets_the_rest_happen(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        zookeeper.execute(session, Create(path="/epoch"))
        check = CheckVersion(path="/epoch", version=_version(0))
        (answer,) = zookeeper.execute(session, Transaction((check, Create(path="/a"))))
        assert isinstance(answer, TransactionAnswer)
        assert not answer.has_failed
        assert zookeeper.execute(session, Transaction((CheckVersion(path="/b", version=_version(0)),))) == (
            TransactionAnswer((NO_NODE,)),
        )

    # --- Ephemeral nodes ------------------------------------------------------------------------------------------

    def test_an_ephemeral_node_goes_with_its_session(self, zookeeper: ZooKeeperUnderTest) -> None:
        owner, other = zookeeper.open_session(), zookeeper.open_session()
        zookeeper.execute(owner, Create(path="/a", kind=NodeKind.EPHEMERAL))
        assert _stat(_only(zookeeper.execute(other, Exists(path="/a")))).ephemeral_owner == owner
        zookeeper.close_session(owner)
        assert zookeeper.execute(other, Exists(path="/a")) == (NO_NODE,)

    def test_an_ephemeral_node_has_no_children(self, zookeeper: ZooKeeperUnderTest) -> None:
        session = zookeeper.open_session()
        answers = zookeeper.execute(session, Create(path="/a", kind=NodeKind.EPHEMERAL), Create(path="/a/b"))
        assert answers[1] == OperationFailed(ZooKeeperFailure.NO_CHILDREN_FOR_EPHEMERALS)

    def test_an_expired_session_writes_nothing_and_loses_its_nodes(self, zookeeper: ZooKeeperUnderTest) -> None:
        owner, other = zookeeper.open_session(), zookeeper.open_session()
        zookeeper.execute(owner, Create(path="/a", kind=NodeKind.EPHEMERAL))
        zookeeper.expire_session(owner)
        assert zookeeper.execute(other, Exists(path="/a")) == (NO_NODE,)
        assert zookeeper.execute(owner, Create(path="/b")) == (OperationFailed(ZooKeeperFailure.SESSION_EXPIRED),)
        assert zookeeper.execute(other, Exists(path="/b")) == (NO_NODE,)

    # --- Watches --------------------------------------------------------------------------------------------------

    def test_a_watch_sees_one_change_however_many_there_are(self, zookeeper: ZooKeeperUnderTest) -> None:
        watcher, other = zookeeper.open_session(), zookeeper.open_session()
        zookeeper.execute(watcher, Create(path="/a"), GetData(path="/a", is_watched=True))
        zookeeper.execute(other, *(SetData(path="/a", data=data, version=None) for data in (b"1", b"2")))
        zookeeper.execute(watcher, GetData(path="/a"))
        changed = NodeChanged(path="/a", kind=ZooKeeperEventKind.DATA_CHANGED)
        assert zookeeper.events(watcher) == (changed,)
        assert zookeeper.events(watcher) == ()

    def test_a_watch_on_nothing_sees_the_creation(self, zookeeper: ZooKeeperUnderTest) -> None:
        watcher, other = zookeeper.open_session(), zookeeper.open_session()
        watched = zookeeper.execute(watcher, Exists(path="/a", is_watched=True), GetData(path="/b", is_watched=True))
        assert watched == (NO_NODE, NO_NODE)
        zookeeper.execute(other, Create(path="/a"), Create(path="/b"))
        zookeeper.execute(watcher, GetData(path="/a"))
        assert zookeeper.events(watcher) == (NodeChanged(path="/a", kind=ZooKeeperEventKind.CREATED),)

    def test_a_watch_on_an_ephemeral_node_sees_the_end_of_its_session(self, zookeeper: ZooKeeperUnderTest) -> None:
        watcher, owner = zookeeper.open_session(), zookeeper.open_session()
        zookeeper.execute(owner, Create(path="/a", kind=NodeKind.EPHEMERAL))
        zookeeper.execute(watcher, Exists(path="/a", is_watched=True))
        zookeeper.close_session(owner)
        zookeeper.execute(watcher, Exists(path="/a"))
        assert zookeeper.events(watcher) == (NodeChanged(path="/a", kind=ZooKeeperEventKind.DELETED),)

    def test_a_watch_on_children_sees_them_come_and_go_but_not_change(self, zookeeper: ZooKeeperUnderTest) -> None:
        watcher, other = zookeeper.open_session(), zookeeper.open_session()
        zookeeper.execute(other, Create(path="/a"), Create(path="/a/b"))
        watch = GetChildren(path="/a", is_watched=True)
        zookeeper.execute(watcher, watch)
        zookeeper.execute(other, SetData(path="/a/b", data=b"", version=None))
        zookeeper.execute(watcher, Exists(path="/a"))
        assert zookeeper.events(watcher) == ()
        zookeeper.execute(other, Delete(path="/a/b", version=None))
        zookeeper.execute(watcher, watch)
        assert zookeeper.events(watcher) == (ChildrenChanged("/a"),)
        zookeeper.execute(other, Create(path="/a/c"))
        zookeeper.execute(watcher, Exists(path="/a"))
        assert zookeeper.events(watcher) == (ChildrenChanged("/a"),)
