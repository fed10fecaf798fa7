"""Sessions with a ZooKeeper server for a core that asks by effects: kazoo behind asyncio.

kazoo is threaded. All its callbacks run on one of its threads, in the order of the server's messages, and pass their
result to the event loop. Only the state of the connection may overtake another one; an obsolete state is dropped here.

States and edges::

    CLOSED --open--> CONNECTING --connected--> CONNECTED --lost--> RECONNECTING --connected--> REWATCHING --> CONNECTED
    RECONNECTING --session expired--> CLOSED (``SessionExpired``); REWATCHING --lost--> RECONNECTING

On any disconnection kazoo drops all watches. Each is set again by reading once the server is reached again within the
session, and missed events are delivered, as Java's client and the server would (``setWatches``). kazoo does not repeat
requests; the core does. After an expiry kazoo would open a new session by itself, but Kafka resigns first: the next
session is opened when the core asks for it.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Any, Final

from kazoo.client import KazooClient, KazooState
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import EventType
from kazoo.retry import KazooRetry

from laststand.emulator.core.types import CauseId
from laststand.emulator.core.zookeeper import exchange, operations
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.zookeeper.translation import answer_of, is_lost, stat_of, submit

CAUSE: Final = CauseId("zookeeper")

_STOP_TIMEOUT_S: Final = 2.0
_RETRY: Final = {"max_tries": -1, "delay": 0.02, "backoff": 1, "max_jitter": 0.02, "max_delay": 0.1}
_QUIET: Final = logging.getLogger("laststand.emulator.zookeeper.kazoo")
_QUIET.setLevel(logging.CRITICAL)  # a server that is down is reported once, by the core

_EVENT_KINDS: Final = {
    EventType.CREATED: operations.ZooKeeperEventKind.CREATED,
    EventType.DELETED: operations.ZooKeeperEventKind.DELETED,
    EventType.CHANGED: operations.ZooKeeperEventKind.DATA_CHANGED,
}


class _State(Enum):
    CLOSED = auto()
    CONNECTING = auto()
    CONNECTED = auto()
    RECONNECTING = auto()
    REWATCHING = auto()


class _OrderedHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Runs the callbacks of watches and of answers on one thread, in the order of the server's messages."""

    def dispatch_callback(self, callback: Any) -> None:
        self.completion_queue.put(partial(callback.func, *callback.args))


class _Answers:
    """The answers to one request, as they arrive."""

    __slots__ = ("missing", "request", "steps")

    def __init__(self, request: exchange.ZooKeeperRequest) -> None:
        self.request = request
        self.steps: list[operations.StepAnswer | None] = [None] * len(request.steps)
        self.missing = len(request.steps)


class ZooKeeperSession:
    """Keeps the sessions of one process, one after the other. Belongs to the running event loop.

    Args:
        address: ``host:port`` of the server, which may be a proxy's.
        timeout_ms: of each session.
        deliver: receives the inputs of the core (``core.zookeeper.exchange``), on the event loop, never from within
            ``execute``.
    """

    def __init__(self, address: str, *, timeout_ms: int, deliver: Callable[[exchange.ZooKeeperInput], None]) -> None:
        self._address = address
        self._timeout_s = timeout_ms / 1000
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._client: Any = None
        self._state = _State.CLOSED
        self._connection = 0
        self._waiting: list[exchange.ZooKeeperRequest] = []
        self._watched: dict[tuple[str, bool], operations.NodeStat | None] = {}
        self._ending: set[threading.Thread] = set()

    @property
    def session_id(self) -> SessionId | None:
        """The id of the open session; ``None`` without one."""
        known = None if self._client is None else self._client.client_id
        return None if known is None or not known[0] else SessionId(known[0])

    def execute(self, effect: exchange.ZooKeeperEffect) -> None:
        """Executes a request of the core; returns at once."""
        match effect:
            case exchange.OpenSession():
                self._open()
            case exchange.CloseSession():
                self._end()
            case exchange.ZooKeeperRequest():
                if self._state is _State.CONNECTED:
                    self._send(effect)
                else:
                    self._waiting.append(effect)

    async def close(self) -> None:
        """Ends the session, if there is one, and waits as long as a running server needs for that."""
        self._end()
        for thread in tuple(self._ending):
            await asyncio.to_thread(thread.join, _STOP_TIMEOUT_S)

    # --- Sessions -------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        self._end()
        self._connection += 1
        self._state = _State.CONNECTING
        client = self._client = KazooClient(
            hosts=self._address,
            timeout=self._timeout_s,
            handler=_OrderedHandler(),
            connection_retry=KazooRetry(**_RETRY),
            logger=_QUIET,
        )
        client.add_listener(partial(self._hear_from_thread, client))
        client.start_async()

    def _end(self) -> None:
        """Closes the session in order, in a thread: kazoo waits for the server's answer."""
        client, self._client = self._client, None
        self._state = _State.CLOSED
        self._waiting.clear()
        self._watched.clear()
        if client is None:
            return

        def stop() -> None:
            client.stop()
            client.close()

        # Not the loop's executor, which the process would wait for: the server may be gone.
        thread = threading.Thread(target=stop, daemon=True)
        self._ending = {each for each in self._ending if each.is_alive()} | {thread}
        thread.start()

    def _hear_from_thread(self, client: Any, state: str) -> None:
        self._call(self._hear, client, state)

    def _hear(self, client: Any, state: str) -> None:
        if client is not self._client:
            return
        if state == KazooState.CONNECTED:
            self._connected()
        elif state == KazooState.SUSPENDED:
            self._lost()
        elif state == KazooState.LOST and self._state is not _State.CONNECTING:
            self._lost()
            self._end()
            self._deliver(exchange.SessionExpired(CAUSE))

    def _connected(self) -> None:
        session_id = self.session_id
        if self._state is _State.CONNECTING and session_id is not None:
            self._state = _State.CONNECTED
            self._deliver(exchange.SessionEstablished(cause_id=CAUSE, session_id=session_id))
            self._send_waiting()
        elif self._state is _State.RECONNECTING:
            self._state = _State.REWATCHING
            self._watch_again()

    def _lost(self) -> None:
        """Drops the requests under way: none will be answered."""
        self._connection += 1
        if self._state in (_State.CONNECTED, _State.REWATCHING):
            was_connected = self._state is _State.CONNECTED
            self._state = _State.RECONNECTING
            if was_connected:
                self._deliver(exchange.ZooKeeperConnectionLost(CAUSE))

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        """Passes a result from one of kazoo's threads to the event loop; drops it if the loop is closed."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(partial(function, *arguments))

    # --- Requests -------------------------------------------------------------------------------------------------

    def _send_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._send(request)

    def _send(self, request: exchange.ZooKeeperRequest) -> None:
        answers = _Answers(request)
        for place, step in enumerate(request.steps):
            result = submit(self._client, step, on_node=self._node_event, on_children=self._children_event)
            result.rawlink(partial(self._call, self._answered, self._connection, answers, place))

    def _answered(self, connection: int, answers: _Answers, place: int, result: Any) -> None:
        if connection != self._connection or self._state is not _State.CONNECTED:
            return
        if is_lost(result):
            return  # the state of the connection says so
        step = answers.request.steps[place]
        answer = answers.steps[place] = answer_of(step, result)
        self._note_watch(step, answer)
        answers.missing -= 1
        if answers.missing == 0:
            answered = tuple(each for each in answers.steps if each is not None)
            correlation_id = answers.request.correlation_id
            self._deliver(exchange.ZooKeeperAnswered(cause_id=CAUSE, correlation_id=correlation_id, answers=answered))

    # --- Watches --------------------------------------------------------------------------------------------------

    def _note_watch(self, step: operations.Step, answer: operations.StepAnswer) -> None:
        """Remembers the state in which a watch was set: the server sets none if a read failed."""
        if not isinstance(step, operations.GetData | operations.Exists | operations.GetChildren) or not step.is_watched:
            return
        match answer:
            case operations.DataRead(stat=stat) | operations.NodeFound(stat=stat):
                self._watched[step.path, False] = stat
            case operations.ChildrenRead(stat=stat):
                self._watched[step.path, True] = stat
            case _ if isinstance(step, operations.Exists):
                self._watched[step.path, False] = None
            case _:
                pass

    def _node_event(self, event: Any) -> None:
        kind = _EVENT_KINDS.get(event.type)
        if kind is not None:
            self._call(self._fire, (event.path, False), operations.NodeChanged(path=event.path, kind=kind))

    def _children_event(self, event: Any) -> None:
        if event.type in (EventType.CHILD, EventType.DELETED):
            self._call(self._fire, (event.path, True), operations.ChildrenChanged(event.path))

    def _fire(self, key: tuple[str, bool], event: operations.WatchEvent) -> None:
        if key in self._watched:
            del self._watched[key]
            self._deliver(exchange.WatchFired(cause_id=CAUSE, event=event))

    def _watch_again(self) -> None:
        """Reads everything that is watched: if it differs now, the watch fires."""
        left = set(self._watched)
        if not left:
            self._reconnected()
        for key in tuple(left):
            path, is_children = key
            if is_children:
                result = self._client.get_children_async(path, watch=self._children_event, include_data=True)
            else:
                result = self._client.exists_async(path, watch=self._node_event)
            result.rawlink(partial(self._call, self._watched_again, self._connection, key, left))

    def _watched_again(self, connection: int, key: tuple[str, bool], left: set[tuple[str, bool]], result: Any) -> None:
        if connection != self._connection or is_lost(result):
            return
        event = _missed(key, self._watched.get(key), stat_of(result))
        if event is not None:
            self._fire(key, event)
        left.discard(key)
        if not left:
            self._reconnected()

    def _reconnected(self) -> None:
        self._state = _State.CONNECTED
        self._deliver(exchange.ZooKeeperReconnected(CAUSE))
        self._send_waiting()


def _missed(
    key: tuple[str, bool], before: operations.NodeStat | None, now: operations.NodeStat | None
) -> operations.WatchEvent | None:
    """Returns the event that a watch missed, by the state in which it was set (the server's ``setWatches``)."""
    path, is_children = key
    if is_children:
        changed = now is None or before is None or (now.czxid, now.cversion) != (before.czxid, before.cversion)
        return operations.ChildrenChanged(path) if changed else None
    if before is None:
        return None if now is None else operations.NodeChanged(path=path, kind=operations.ZooKeeperEventKind.CREATED)
    if now is None:
        return operations.NodeChanged(path=path, kind=operations.ZooKeeperEventKind.DELETED)
    changed = (now.czxid, now.mzxid) != (before.czxid, before.mzxid)
    return operations.NodeChanged(path=path, kind=operations.ZooKeeperEventKind.DATA_CHANGED) if changed else None
