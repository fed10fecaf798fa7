"""A broker's listener for clients that speak Kafka's protocol."""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from laststand.emulator.core import events
from laststand.emulator.core.principal_rules import PrincipalRules
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import CauseId, NodeId, Way
from laststand.emulator.kafka_listener.acls import ACLS
from laststand.emulator.kafka_listener.administration import ADMINISTRATION
from laststand.emulator.kafka_listener.answer_cache import AnswerCache
from laststand.emulator.kafka_listener.api_versions import API_VERSIONS, api_versions, unsupported_version
from laststand.emulator.kafka_listener.client_quotas import CLIENT_QUOTAS
from laststand.emulator.kafka_listener.connection import AnswerlessConnection, KafkaConnection, RefusedError
from laststand.emulator.kafka_listener.data_plane import DATA_PLANE
from laststand.emulator.kafka_listener.group_positions import POSITION_APIS, with_positions_on_record
from laststand.emulator.kafka_listener.groups import GROUPS
from laststand.emulator.kafka_listener.inspection import INSPECTION
from laststand.emulator.kafka_listener.message_codec import (
    Buffers,
    Writer,
    read_client_id,
    request_codec,
    response_codec,
)
from laststand.emulator.kafka_listener.messages import Message, all_apis, api_named
from laststand.emulator.kafka_listener.metadata import METADATA
from laststand.emulator.kafka_listener.permissions import answer_as_allowed
from laststand.emulator.kafka_listener.requests import ClientRequest, Endpoints, Handler, Served
from laststand.emulator.kafka_listener.sasl import SASL, is_before_authentication
from laststand.emulator.kafka_listener.telemetry import TELEMETRY
from laststand.emulator.kafka_listener.tls import ListenerTls, TlsGate, server_context
from laststand.emulator.kafka_listener.transactions import TRANSACTIONS
from laststand.emulator.rpc.interception import Interceptor
from laststand.emulator.storage.fields import FieldError, FieldReader

ListenerEvent: TypeAlias = (
    events.ClientConnected | events.ClientDisconnected | events.AuthenticationFailed | events.OperationFailed
)
"""An event that a listener records."""

_ADVERTISED: Final[Mapping[int, Handler]] = {
    **DATA_PLANE,
    **GROUPS,
    **TRANSACTIONS,
    **METADATA,
    **ADMINISTRATION,
    **ACLS,
    **CLIENT_QUOTAS,
    **INSPECTION,
}
_HANDLERS: Final[Mapping[int, Handler]] = {**_ADVERTISED, **TELEMETRY, **SASL}
_BEFORE_AUTHENTICATION: Final = frozenset({API_VERSIONS, *SASL})
_HEADER_BYTES: Final = 8
_CACHED: Final = frozenset({api_named("Metadata").key, api_named("DescribeTopicPartitions").key})
_IDLE_CHECKS: Final = 10
"""Looks at idle connections within the time after which they are closed."""


class KafkaListener:
    """Serves clients once it is open; until then, connections are refused.

    Args:
        interceptor: interferes with single messages.
        properties: of the node.
        record: writes an event that belongs to no turn.
    """

    def __init__(
        self,
        interceptor: Interceptor,
        properties: NodeProperties,
        *,
        record: Callable[[ListenerEvent], None],
    ) -> None:
        self._interceptor = interceptor
        self._properties = properties
        self._record = record
        context = server_context(properties)
        self._tls = None if context is None else ListenerTls(context, properties)
        self._rules = PrincipalRules(properties.ssl_principal_mapping_rules)
        self._cache = AnswerCache()
        self._idle_check: asyncio.TimerHandle | None = None
        self._repeats: set[asyncio.Task[None]] = set()
        self._connections: dict[int, KafkaConnection] = {}
        self._known: dict[int, str] = {}
        self._count = 0
        self._served: Served | None = None
        self._endpoints: Mapping[NodeId, Endpoints] = {}
        self._servers: list[asyncio.Server] = []

    @property
    def is_open(self) -> bool:
        """Requests of clients are answered."""
        return self._served is not None

    @property
    def ports(self) -> list[int]:
        """Returns the ports, in the order of the clients."""
        return [server.sockets[0].getsockname()[1] for server in self._servers]

    async def start(self, host: str, ports: Mapping[NodeId, int]) -> None:
        """Listens.

        Args:
            host: interface to listen on.
            ports: one for each client, by its id as an end of links.

        Raises:
            OSError: another process uses a port.
        """
        create_server = asyncio.get_running_loop().create_server
        for link, port in ports.items():
            self._servers.append(await create_server(partial(self._protocol, link), host, port))
        self._close_idle()

    def open(self, served: Served, endpoints: Mapping[NodeId, Endpoints]) -> None:
        """Starts to serve clients.

        Args:
            served: this broker.
            endpoints: the addresses at which each client reaches each broker.
        """
        self._served = served
        self._endpoints = endpoints

    async def close(self) -> None:
        """Accepts no more connections, and closes all of them."""
        if self._idle_check is not None:
            self._idle_check.cancel()
        for server in self._servers:
            server.close()
        for connection in [*self._connections.values()]:
            connection.close()
        for task in self._repeats:
            task.cancel()
        if self._served is not None:
            await self._served.controller.close()
            self._served.history.close()

    def _protocol(self, link: NodeId) -> asyncio.Protocol:
        """Returns the protocol of a new connection: Kafka's, or with TLS one that begins with a handshake."""
        make = partial(self._connection, link)
        return make() if self._tls is None else TlsGate(self._tls.context(), self._rules, make, self._note_failure)

    def _note_failure(self, address: str, reason: str) -> None:
        self._record(
            events.AuthenticationFailed(cause_id=CauseId("tls"), address=address, mechanism="SSL", reason=reason)
        )

    def _connection(self, link: NodeId) -> KafkaConnection:
        self._count += 1
        is_full = len(self._connections) >= self._properties.max_connections
        served = None
        if self._served is not None and not is_full:
            served = self._served._replace(endpoints=self._endpoints[link])
        connection = KafkaConnection(
            link=link,
            number=self._count,
            max_bytes=self._properties.socket_request_max_bytes,
            handle=None if served is None else partial(self._receive, served),
            on_end=self._forget,
        )
        self._connections[connection.number] = connection
        return connection

    def _forget(self, connection: KafkaConnection) -> None:
        self._connections.pop(connection.number, None)
        if self._served is not None:
            self._served.history.forget(connection)
        process = self._known.pop(connection.number, None)
        if process is not None:
            self._record(events.ClientDisconnected(cause_id=CauseId(process), process=process))

    def _note_client(self, process: str, connection: KafkaConnection) -> None:
        """Records a connection, once."""
        if connection.number not in self._known:
            self._known[connection.number] = process
            self._record(
                events.ClientConnected(
                    cause_id=CauseId(process), process=process, address=connection.peer, software=connection.software
                )
            )

    def _close_idle(self) -> None:
        loop, max_idle_s = asyncio.get_running_loop(), self._properties.connections_max_idle_ms / 1000
        for connection in [*self._connections.values()]:
            connection.close_if_idle(now_s=loop.time(), max_idle_s=max_idle_s)
        self._idle_check = loop.call_later(max_idle_s / _IDLE_CHECKS, self._close_idle)

    # --- Single messages ------------------------------------------------------------------------------------------

    async def _receive(self, served: Served, connection: KafkaConnection, frame: bytes) -> Buffers | None:
        """Answers a request; faults of single messages apply to it and to its response.

        Holding a message holds everything after it on its connection. A stream cannot lose one frame, so a lost message
        closes its connection.

        Raises:
            RefusedError: the request is not served, or a message is lost.
        """
        try:
            return await self._receive_and_answer(served, connection, frame)
        except RefusedError:
            raise
        except Exception as error:  # a bug, which costs the client its connection, and must not stay unseen
            self._record(_failure(connection, frame, error))
            raise

    async def _receive_and_answer(self, served: Served, connection: KafkaConnection, frame: bytes) -> Buffers | None:
        if not self._interceptor.is_idle:
            arrive_again = partial(self._repeat, served, connection, frame)
            await self._pass(connection, frame, Way.REQUEST, arrive_again=arrive_again)
        answer = await self._handle(served, connection, frame)
        if answer is not None and not self._interceptor.is_idle:
            await self._pass(connection, frame, Way.RESPONSE, arrive_again=lambda: None)
        return answer

    async def _pass(
        self, connection: KafkaConnection, request: bytes, way: Way, *, arrive_again: Callable[[], None]
    ) -> None:
        """Waits until a request or its response may be delivered.

        Args:
            connection: of the client.
            request: the frame.
            way: request or response.
            arrive_again: called if it is delivered a second time, or when its sender no longer waits for it.

        Raises:
            RefusedError: the message is lost.
        """
        api = all_apis().get(int.from_bytes(request[:2], "big"))
        if api is None:
            return
        cause_id = _cause_id(connection, request)
        passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def arrive() -> None:
            if passed.done():
                arrive_again()
            else:
                passed.set_result(None)

        def lose() -> None:
            if not passed.done():
                passed.set_exception(RefusedError(f"a {way.value} of {api.name} is lost"))

        self._interceptor.send(connection.link, api.name, way, cause_id, arrive, lose)
        await passed

    def _repeat(self, served: Served, original: KafkaConnection, frame: bytes) -> None:
        self._count += 1
        connection = AnswerlessConnection(number=self._count, original=original)
        task = asyncio.get_running_loop().create_task(self._handle_unanswered(served, connection, frame))
        self._repeats.add(task)
        task.add_done_callback(self._repeats.discard)

    async def _handle_unanswered(self, served: Served, connection: KafkaConnection, frame: bytes) -> None:
        with suppress(RefusedError):
            await self._handle(served, connection, frame)
        connection.report_unwritten()

    # --- Requests -------------------------------------------------------------------------------------------------

    @staticmethod
    def _question(served: Served, connection: KafkaConnection, key: int, version: int, body: bytes) -> Hashable | None:
        """Returns everything besides metadata that a response depends on; ``None`` if it depends on still more."""
        if key not in _CACHED:
            return None
        asker = None if served.permissions is None else connection.requester
        return key, version, connection.link, body, asker

    async def _handle(self, served: Served, connection: KafkaConnection, frame: bytes) -> Buffers | None:
        if len(frame) < _HEADER_BYTES:
            raise RefusedError(f"a request of {len(frame)} bytes has no header")
        key, version = int.from_bytes(frame[:2], "big", signed=True), int.from_bytes(frame[2:4], "big", signed=True)
        correlation_id = frame[4:8]
        api = all_apis().get(key)
        versions = served.versions.get(key)
        if api is None or versions is None or (key not in _HANDLERS and key != API_VERSIONS):
            raise RefusedError(f"API {key if api is None else api.name} is not served")
        if version not in versions and (key != API_VERSIONS or version < 0):
            raise RefusedError(f"{api.name} has no version {version}")
        if is_before_authentication(served, connection) and key not in _BEFORE_AUTHENTICATION:
            raise RefusedError(f"{api.name} before authentication")
        reader = FieldReader(frame)
        reader.position = _HEADER_BYTES
        try:
            connection.client_id = read_client_id(reader, is_flexible=version in api.flexible)
            if version not in versions:
                return [correlation_id, *_encoded(unsupported_version(served), key, 0)]
            question = self._question(served, connection, key, version, frame[reader.position :])
            known = None if question is None else self._cache.get(served.broker.image.next_offset, question)
            if known is not None:
                return [correlation_id, *known]
            body = request_codec(key, version).read(reader)
        except FieldError as error:
            raise RefusedError(f"{api.name} version {version}: {error}") from None
        request = ClientRequest(key, version, body, connection, size=len(frame))
        if key == API_VERSIONS:
            advertised = _ADVERTISED if served.sasl is None else {**_ADVERTISED, **SASL}
            return [correlation_id, *_encoded(api_versions(served, request, advertised), key, version)]
        if not isinstance(connection, AnswerlessConnection):
            self._note_client(served.history.process_of(connection), connection)
        answer = await (
            with_positions_on_record(served, request, _answer) if key in POSITION_APIS else _answer(served, request)
        )
        if answer is None:
            return None
        parts = [b"\0" if version in api.flexible else b"", *_encoded(answer, key, version)]
        # Without a metadata log, as beside ZooKeeper, nothing says that the metadata is still the same.
        if question is not None and served.broker.image.next_offset > 0:
            self._cache.store(served.broker.image.next_offset, question, parts)
        return [correlation_id, *parts]


async def _answer(served: Served, request: ClientRequest) -> Message | None:
    return await answer_as_allowed(served, request, _HANDLERS[request.key])


def _cause_id(connection: KafkaConnection, frame: bytes) -> CauseId:
    return CauseId(f"kafka-{connection.link}-{connection.number}-{int.from_bytes(frame[4:8], 'big')}")


def _failure(connection: KafkaConnection, frame: bytes, error: Exception) -> events.OperationFailed:
    api = all_apis().get(int.from_bytes(frame[:2], "big"))
    name = "a request" if api is None else f"{api.name}Request"
    return events.OperationFailed(
        cause_id=_cause_id(connection, frame), operation=f"{name} of a Kafka client", error=repr(error)
    )


def _encoded(message: Message, key: int, version: int) -> Buffers:
    writer = Writer()
    response_codec(key, version).write(message, writer)
    return writer.buffers()
