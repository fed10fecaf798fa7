"""A proxy that knows ZooKeeper's messages: a broker's requests to the server pass an ``Interceptor``.

::

    first request:   int32 size | int32 protocol | int64 last zxid | int32 timeout | int64 session, 0: a new one | ...
    later ones:      int32 size | int32 xid | int32 operation | ...
    response:        int32 size | int32 xid, -1 for the event of a watch | int64 zxid | int32 error | ...

A connection is one stream each way, as in TCP: everything after a held message is held, too, and after a lost message
nothing is delivered until the client closes the connection. Only pings and their answers overtake held messages, so
that a session lives on meanwhile.

An operation has its own name and also the name ``Execute``, which matches every operation.
"""

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.types import CauseId, NodeId, Way
from laststand.emulator.plan.channels import EXECUTE
from laststand.emulator.rpc.frame_proxy import FrameConnection, FrameProxy, drain, read_frame, write_frame
from laststand.emulator.rpc.interception import Interceptor

_XID: Final = slice(0, 4)
_OPERATION: Final = slice(4, 8)
_SESSION: Final = slice(16, 24)
_PING_XID: Final = -2
_POLL: Final = "Poll"
_OF_SESSIONS: Final[Mapping[int, str]] = MappingProxyType({-11: "CloseSession", 11: _POLL})
_OPERATIONS: Final[Mapping[int, str]] = MappingProxyType(
    {
        1: "Create",
        2: "Delete",
        3: "Exists",
        4: "GetData",
        5: "SetData",
        8: "GetChildren",
        12: "GetChildren",
        14: "Multi",
        15: "Create",
    }
)


class ZooKeeperProxy(FrameProxy):
    """Forwards the connections of one broker to the server.

    Args:
        source: the broker.
        target_address: ``host:port`` of the server.
        interceptor: returns what interferes with the server's messages now.
    """

    def __init__(self, *, source: NodeId, target_address: str, interceptor: Callable[[], Interceptor]) -> None:
        super().__init__(target_address)
        self._source = source
        self._interceptor = interceptor
        self._numbers = itertools.count()

    def connection(self, dialler: asyncio.StreamWriter, node: asyncio.StreamWriter) -> FrameConnection:
        """Returns a connection whose messages pass through the interceptor."""
        return _Connection(self._send, dialler=dialler, node=node)

    def _send(self, names: tuple[str, ...], way: Way, message: "_Message") -> None:
        """Lets the interceptor decide on a message, under each of its names in turn."""
        cause_id = CauseId(f"zookeeper-{self._source}-{next(self._numbers)}")
        deliver: Callable[[], None] = message.release
        for name in reversed(names):
            deliver = partial(self._interceptor().send, self._source, name, way, cause_id, deliver, message.lose)
        deliver()


class _Message:
    """A frame under way; ``settle`` is called once its fate is known."""

    __slots__ = ("_settle", "frame", "is_lost", "is_released")

    def __init__(self, frame: bytes, settle: Callable[[], None]) -> None:
        self.frame = frame
        self.is_released = False
        self.is_lost = False
        self._settle = settle

    def release(self) -> None:
        self.is_released = True
        self._settle()

    def lose(self) -> None:
        self.is_lost = True
        self._settle()


class _Stream:
    """One direction of a connection: frames are forwarded in the order of their arrival, as soon as each may."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._waiting: deque[_Message] = deque()

    @property
    def is_broken(self) -> bool:
        """True if a message was lost, so that no later one is delivered (TCP)."""
        return bool(self._waiting) and self._waiting[0].is_lost

    @property
    def is_idle(self) -> bool:
        """No message waits."""
        return not self._waiting

    def add(self, frame: bytes) -> _Message:
        message = _Message(frame, self._flush)
        self._waiting.append(message)
        return message

    def pass_by(self, frame: bytes) -> _Message:
        """Returns a message that does not wait for other messages, nor they for it."""
        message = _Message(frame, lambda: self._write_past(message))
        return message

    def _write_past(self, message: _Message) -> None:
        if message.is_released and not any(each.is_lost for each in self._waiting):
            write_frame(self._writer, message.frame)

    def _flush(self) -> None:
        while self._waiting and self._waiting[0].is_released:
            write_frame(self._writer, self._waiting.popleft().frame)


class _Connection:
    """A connection of a broker, and the proxy's connection to the server for it."""

    def __init__(
        self,
        send: Callable[[tuple[str, ...], Way, _Message], None],
        *,
        dialler: asyncio.StreamWriter,
        node: asyncio.StreamWriter,
    ) -> None:
        self._send = send
        self._dialler = dialler
        self._node = node
        self._requests = _Stream(node)
        self._responses = _Stream(dialler)
        self._asked: dict[int, tuple[str, ...]] = {}
        self._opening: tuple[str, ...] = ()
        self._is_given_up = False

    async def run(self, dialler: asyncio.StreamReader, node: asyncio.StreamReader) -> None:
        """Forwards until the server ends its connection, or the broker does and no request of the broker is held."""
        async with asyncio.TaskGroup() as tasks:
            requests = tasks.create_task(self._handle_requests(dialler))
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                answer = await read_frame(node)
                self._send(self._opening, Way.RESPONSE, self._responses.add(answer))
                while True:
                    self._handle_response(await read_frame(node))
                    await drain(self._dialler)
            requests.cancel()

    async def _handle_requests(self, dialler: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            greeting = await read_frame(dialler)
            self._opening = ("Connect",) if any(greeting[_SESSION]) else ("OpenSession",)
            self._send(self._opening, Way.REQUEST, self._requests.add(greeting))
            while True:
                self._handle_request(await read_frame(dialler))
                await drain(self._node)
        self._is_given_up = True
        self._dialler.close()
        self._close_if_done()

    def _handle_request(self, request: bytes) -> None:
        xid, operation = (int.from_bytes(request[place], "big", signed=True) for place in (_XID, _OPERATION))
        if xid == _PING_XID:
            self._send((_POLL,), Way.REQUEST, self._requests.pass_by(request))
            return
        named = _OPERATIONS.get(operation)
        names = (EXECUTE,) if named is None else (named, EXECUTE)
        names = (_OF_SESSIONS[operation],) if operation in _OF_SESSIONS else names
        self._asked[xid] = names
        self._send(names, Way.REQUEST, self._requests.add(request))

    def _handle_response(self, response: bytes) -> None:
        xid = int.from_bytes(response[_XID], "big", signed=True)
        if xid == _PING_XID:
            self._send((_POLL,), Way.RESPONSE, self._responses.pass_by(response))
        else:
            self._send(self._asked.pop(xid, ()), Way.RESPONSE, self._responses.add(response))
        self._close_if_done()

    def _close_if_done(self) -> None:
        is_executed = self._requests.is_idle and not self._asked
        if self._is_given_up and (is_executed or self._requests.is_broken):
            self._node.close()
