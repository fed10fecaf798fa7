"""A proxy that knows messages: everything on connections from one node to another passes an ``Interceptor``.

::

    request:   int32 size | int16 api key | int16 version | int32 correlation id | ...
    response:  int32 size | int32 correlation id | ...

A node answers the requests of a connection in the order in which they arrive, and the dialler expects responses in the
order of its requests. So a response that arrives early waits here for the earlier ones: holding a message holds
everything after it on its connection, and after a lost one nothing is delivered until the dialler closes the
connection. A request that needs no response has none (``acks=0``).

The connection to the node outlives the dialler's while a request is held or unanswered. So a held request that its
sender has given up is still executed when it is released.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from laststand.emulator.core.types import CauseId, NodeId, Way
from laststand.emulator.kafka.api_names import message_name
from laststand.emulator.rpc.frame_proxy import FrameConnection, FrameProxy, drain, read_frame, write_frame
from laststand.emulator.rpc.interception import Interceptor

_KEY: Final = slice(0, 2)
_REQUEST_ID: Final = slice(4, 8)
_RESPONSE_ID: Final = slice(0, 4)


class MessageProxy(FrameProxy):
    """Forwards the connections of one link.

    Args:
        source: the node that dials.
        target: the node that is dialled.
        target_address: ``host:port`` of the target.
        is_to_controller: whether that is a controller.
        is_from_controller: whether ``source`` is a controller.
        interceptor: returns what interferes with the target's messages now.
    """

    def __init__(
        self,
        *,
        source: NodeId,
        target: NodeId,
        target_address: str,
        is_to_controller: bool,
        is_from_controller: bool = False,
        interceptor: Callable[[], Interceptor],
    ) -> None:
        super().__init__(target_address)
        self._source = source
        self._target = target
        self._is_to_controller = is_to_controller
        self._is_from_controller = is_from_controller
        self._interceptor = interceptor

    def connection(self, dialler: asyncio.StreamWriter, node: asyncio.StreamWriter) -> FrameConnection:
        """Returns a connection whose messages pass through the interceptor."""
        return _Connection(self._send, dialler=dialler, node=node)

    def _send(self, exchange: "_Exchange", way: Way, deliver: Callable[[], None]) -> None:
        api = message_name(
            exchange.api_key,
            is_to_controller=self._is_to_controller,
            is_from_controller=self._is_from_controller,
        )
        cause_id = CauseId(f"kafka-{self._source}-{self._target}-{exchange.correlation_id}")
        self._interceptor().send(self._source, api, way, cause_id, deliver)


class _Exchange:
    """A request and its answer.

    Attributes:
        answer: the frame of the response; empty for a request that has none.
    """

    __slots__ = ("answer", "api_key", "correlation_id", "is_answered")

    def __init__(self, request: bytes) -> None:
        self.api_key = int.from_bytes(request[_KEY], "big")
        self.correlation_id = request[_REQUEST_ID].hex()
        self.is_answered = False
        self.answer: bytes | None = None


class _Connection:
    """A connection of a dialler, and the proxy's connection to the node for it."""

    def __init__(
        self,
        send: Callable[[_Exchange, Way, Callable[[], None]], None],
        *,
        dialler: asyncio.StreamWriter,
        node: asyncio.StreamWriter,
    ) -> None:
        self._send = send
        self._dialler = dialler
        self._node = node
        self._held: set[_Exchange] = set()
        self._asked: deque[_Exchange] = deque()
        self._awaited: deque[_Exchange] = deque()
        self._is_given_up = False

    async def run(self, dialler: asyncio.StreamReader, node: asyncio.StreamReader) -> None:
        """Forwards until the node ends its connection, or the dialler does and no request of the dialler is left."""
        async with asyncio.TaskGroup() as tasks:
            requests = tasks.create_task(self._handle_requests(dialler))
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    self._handle_response(await read_frame(node))
                    await drain(self._dialler)
            requests.cancel()

    async def _handle_requests(self, dialler: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                request = await read_frame(dialler)
                exchange = _Exchange(request)
                self._awaited.append(exchange)
                self._held.add(exchange)
                self._send(exchange, Way.REQUEST, partial(self._ask, exchange, request))
                await drain(self._node)
        self._is_given_up = True
        self._dialler.close()
        self._close_if_done()

    def _ask(self, exchange: _Exchange, request: bytes) -> None:
        self._held.discard(exchange)
        self._asked.append(exchange)
        write_frame(self._node, request)

    def _handle_response(self, response: bytes) -> None:
        correlation_id = response[_RESPONSE_ID].hex()
        while self._asked:
            exchange = self._asked.popleft()
            is_first, exchange.is_answered = not exchange.is_answered, True
            if exchange.correlation_id == correlation_id:
                if is_first:  # the second answer to one that was sent twice is nobody's
                    self._send(exchange, Way.RESPONSE, partial(self._answer, exchange, response))
                break
            if is_first:
                self._answer(exchange, b"")
        self._close_if_done()

    def _answer(self, exchange: _Exchange, response: bytes) -> None:
        exchange.answer = response
        while self._awaited and (answer := self._awaited[0].answer) is not None:
            self._awaited.popleft()
            if answer:
                write_frame(self._dialler, answer)

    def _close_if_done(self) -> None:
        if self._is_given_up and not self._held and not self._asked:
            self._node.close()
