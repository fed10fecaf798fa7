"""A ZooKeeper server in memory: the tree, sessions with their ephemeral nodes, and watches.

Tests and the simulator run against it. A session lives until it is closed or the server has received nothing from it
for its timeout; its ephemeral nodes are then deleted, each by a separate write. A watch fires once: the client gets its
event before the answer to any later request.

Lost answers and late deliveries are up to the network between the client and the server.
"""

from collections.abc import Mapping

from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.data_tree import DataTree, parent_of
from laststand.emulator.core.zookeeper.identifiers import SessionId, Zxid


class _Session:
    """One client's session: when the server last received something from it, and its undelivered events."""

    __slots__ = ("children_watches", "events", "last_heard_ms", "node_watches", "timeout_ms")

    def __init__(self, *, timeout_ms: int, now_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.last_heard_ms = now_ms
        self.node_watches: set[str] = set()
        self.children_watches: set[str] = set()
        self.events: list[operations.WatchEvent] = []


class ZooKeeperServer:
    """One server, or an ensemble that answers as one."""

    def __init__(self) -> None:
        self._tree = DataTree()
        self._sessions: dict[SessionId, _Session] = {}
        self._last_session_id = 0
        self._changes: list[operations.TreeChange] = []

    @property
    def last_zxid(self) -> Zxid:
        """The zxid of the last write that changed something."""
        return self._tree.last_zxid

    def data(self, path: str) -> bytes | None:
        """Returns a node's data, without any session; ``None`` if there is no such node."""
        node = self._tree.get(path)
        return None if node is None else node.data

    def stat(self, path: str) -> operations.NodeStat | None:
        """Returns the metadata of a node, without any session."""
        node = self._tree.get(path)
        return None if node is None else node.stat

    def children(self, path: str) -> tuple[str, ...]:
        """Returns the names of a node's children, without any session, ascending; empty if there is no such node."""
        node = self._tree.get(path)
        return () if node is None else tuple(sorted(node.children))

    # --- Sessions -------------------------------------------------------------------------------------------------

    def open_session(self, *, timeout_ms: int, now_ms: int) -> SessionId:
        """Opens a session."""
        self._last_session_id += 1
        session_id = SessionId(self._last_session_id)
        self._sessions[session_id] = _Session(timeout_ms=timeout_ms, now_ms=now_ms)
        return session_id

    def is_alive(self, session_id: SessionId) -> bool:
        """Returns whether the session has neither been closed nor expired."""
        return session_id in self._sessions

    def hear(self, session_id: SessionId, *, now_ms: int) -> None:
        """Records that a session sent a ping or any request. An ended session stays ended."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.last_heard_ms = now_ms

    def next_expiry_ms(self) -> int | None:
        """Returns when the first session expires unless it sends something; ``None`` without sessions."""
        due = [session.last_heard_ms + session.timeout_ms for session in self._sessions.values()]
        return min(due, default=None)

    def expire_silent(self, *, now_ms: int) -> tuple[SessionId, ...]:
        """Ends the sessions that were silent for their timeout; returns them."""
        silent = tuple(
            session_id
            for session_id, session in self._sessions.items()
            if session.last_heard_ms + session.timeout_ms <= now_ms
        )
        for session_id in silent:
            self.end_session(session_id)
        return silent

    def end_session(self, session_id: SessionId) -> None:
        """Ends a session at once, at the request of its client or of another; its ephemeral nodes are deleted."""
        if self._sessions.pop(session_id, None) is None:
            return
        for path in self._tree.owned_by(session_id):
            _, changes = self._tree.write(operations.Delete(path=path, version=None), session_id)
            self._fire(changes, session_id)

    # --- Requests -------------------------------------------------------------------------------------------------

    def execute(self, session_id: SessionId, steps: operations.Steps) -> operations.Answers:
        """Executes a client's steps in order; each fails with SESSION_EXPIRED if the session is gone."""
        return tuple(self._execute(session_id, step) for step in steps)

    def _execute(self, session_id: SessionId, step: operations.Step) -> operations.StepAnswer:
        session = self._sessions.get(session_id)
        if session is None:
            expired = operations.OperationFailed(operations.ZooKeeperFailure.SESSION_EXPIRED)
            return (
                operations.TransactionAnswer((expired,) * len(step.operations))
                if isinstance(step, operations.Transaction)
                else expired
            )
        match step:
            case operations.GetData() | operations.Exists() | operations.GetChildren():
                return self._read(session, step)
            case operations.Create() | operations.SetData() | operations.Delete():
                answer, changes = self._tree.write(step, session_id)
                self._fire(changes, session_id)
                return answer
            case operations.Transaction():
                transaction_answer, changes = self._tree.transact(step, session_id)
                self._fire(changes, session_id)
                return transaction_answer

    def _read(self, session: _Session, step: operations.Read) -> operations.StepAnswer:
        answer = self._tree.read(step)
        has_failed = isinstance(answer, operations.OperationFailed)
        if step.is_watched and not (has_failed and not isinstance(step, operations.Exists)):
            watches = session.children_watches if isinstance(step, operations.GetChildren) else session.node_watches
            watches.add(step.path)
        return answer

    # --- Watches --------------------------------------------------------------------------------------------------

    def pop_events(self, session_id: SessionId) -> tuple[operations.WatchEvent, ...]:
        """Returns and removes the events of a client's watches, in order."""
        session = self._sessions.get(session_id)
        if session is None:
            return ()
        events, session.events = tuple(session.events), []
        return events

    def drop_watches(self, session_id: SessionId) -> None:
        """Drops a client's watches and their events: its connection was lost, and it does not set watches again."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.node_watches.clear()
            session.children_watches.clear()
            session.events.clear()

    def watches(self) -> Mapping[SessionId, frozenset[str]]:
        """Returns all watched paths by session."""
        return {
            session_id: frozenset(session.node_watches | session.children_watches)
            for session_id, session in self._sessions.items()
        }

    def pop_changes(self) -> tuple[operations.TreeChange, ...]:
        """Returns and removes the writes so far, in order: the transaction log of a real server."""
        changes, self._changes = tuple(self._changes), []
        return changes

    def _fire(self, changes: list[operations.NodeChanged], session_id: SessionId) -> None:
        for change in changes:
            self._note(change, session_id)
            for session in self._sessions.values():
                if change.path in session.node_watches:
                    session.node_watches.discard(change.path)
                    session.events.append(change)
                if change.kind is operations.ZooKeeperEventKind.DATA_CHANGED:
                    continue
                for path in (change.path, parent_of(change.path)):
                    is_own = path == change.path
                    if path in session.children_watches and (
                        not is_own or change.kind is operations.ZooKeeperEventKind.DELETED
                    ):
                        session.children_watches.discard(path)
                        session.events.append(operations.ChildrenChanged(path))

    def _note(self, change: operations.NodeChanged, session_id: SessionId) -> None:
        node = self._tree.get(change.path)
        self._changes.append(
            operations.TreeChange(
                zxid=self._tree.last_zxid,
                path=change.path,
                kind=change.kind,
                session_id=session_id,
                data=b"" if node is None else node.data,
                version=None if node is None else node.version,
            )
        )
