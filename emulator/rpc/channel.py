"""Options of gRPC channels and servers, each of them measured or needed.

A peer that is cut off must be noticed in a fraction of the session timeout, although nothing is sent: keepalive pings
are sent on idle connections, and an unanswered ping closes its connection. gRPC bounds that wait twice, by
``keepalive_timeout_ms`` and by ``http2.ping_timeout_ms``; with the first alone nothing is noticed for a minute.

After a failure a channel redials quickly, but gives each attempt a whole second: at the default backoff a node that is
back waits another second for its peers, while with a shorter deadline a link of 300 ms latency never connects.

Each channel has its own connection (``use_local_subchannel_pool``), so that data never delays heartbeats.

Messages longer than Kafka's default limit (``socket.request.max.bytes``) are refused. Every call carries the cluster's
token, a stream when it is opened; a server refuses other calls before it reads their content. With TLS between nodes,
both ends present certificates, too; a new certificate is presented from the next call on, by a new connection.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol, TypeAlias, TypeVar, cast

import grpc
import grpc.aio
import msgspec

from laststand.emulator.core.requester import Requester, node_name
from laststand.emulator.core.types import NodeId
from laststand.emulator.rpc.interception import user_agent
from laststand.emulator.rpc.limits import MESSAGE_BYTES_MAX
from laststand.emulator.rpc.run_token import RunToken

_UNLIMITED: Final = -1
_STREAMS_MAX: Final = 1024
"""Calls that one connection may have open; more wait at the caller."""

_KEEPALIVE_MIN_MS: Final = 50
_CALLS_END_WITHIN_S: Final = 60.0

_TRANSPORT_OPTIONS: Final = (
    ("grpc.max_send_message_length", _UNLIMITED),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.http2.max_frame_size", 1 << 20),
    ("grpc.http2.lookahead_bytes", 4 << 20),
    ("grpc.so_reuseport", 0),
)

_RECONNECT_OPTIONS: Final = (
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 1000),  # the connect deadline, too
    ("grpc.max_reconnect_backoff_ms", 100),
)


class Keepalive(msgspec.Struct, frozen=True, kw_only=True):
    """The time after which a silent peer is given up.

    Attributes:
        interval_ms: silence after which a ping is sent.
        timeout_ms: time limit for the answer to a ping.
    """

    interval_ms: int
    timeout_ms: int


def keepalive_for(*, session_timeout_ms: int) -> Keepalive:
    """Returns the keepalive settings of a cluster: interval and timeout are a quarter of the session timeout each."""
    quarter = max(_KEEPALIVE_MIN_MS, session_timeout_ms // 4)
    return Keepalive(interval_ms=quarter, timeout_ms=quarter)


def channel_options(keepalive: Keepalive, *, dialler: NodeId | None) -> list[tuple[str, int | str]]:
    """Returns the options of a client's channel; ``dialler`` as for ``open_channel``."""
    named = [] if dialler is None else [("grpc.primary_user_agent", user_agent(dialler))]
    return [
        *named,
        *_TRANSPORT_OPTIONS,
        *_RECONNECT_OPTIONS,
        *_keepalive_options(keepalive),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0),
    ]


def server_options(keepalive: Keepalive) -> list[tuple[str, int]]:
    """Returns the options of a server: pings from clients never count as misuse, and vanished clients are noticed."""
    return [
        *_TRANSPORT_OPTIONS,
        *_keepalive_options(keepalive),
        ("grpc.http2.min_ping_interval_without_data_ms", keepalive.interval_ms // 2),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.max_concurrent_streams", _STREAMS_MAX),
    ]


def _keepalive_options(keepalive: Keepalive) -> list[tuple[str, int]]:
    return [
        ("grpc.keepalive_time_ms", keepalive.interval_ms),
        ("grpc.keepalive_timeout_ms", keepalive.timeout_ms),
        ("grpc.http2.ping_timeout_ms", keepalive.timeout_ms),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]


StreamCall: TypeAlias = "grpc.aio.StreamStreamCall[bytes, bytes]"
MessageStream: TypeAlias = "grpc.aio.UnaryStreamCall[bytes, bytes]"


class UnaryCall(Protocol):
    """A method that answers each request once."""

    def __call__(
        self, request: bytes, timeout_s: float | None, on_behalf_of: Requester | None = None
    ) -> Awaitable[bytes]:
        """Sends a request and awaits its answer, for a number of seconds at most.

        Args:
            request: its bytes.
            timeout_s: from now.
            on_behalf_of: the client whose request it is, if not the caller's own.
        """
        ...


_CLIENT: Final = "laststand-client-bin"
"""In the metadata of a call that passes on a client's request: its principal and host."""


def client_metadata(client: Requester) -> tuple[str, bytes]:
    """Returns the metadata entry of a call that names the client whose request it passes on."""
    return _CLIENT, f"{client.host} {client.principal}".encode()


def client_of(metadata: Iterable[tuple[str, str | bytes]]) -> Requester | None:
    """Returns the client whose request a call passes on, by its metadata; ``None`` for the caller's own."""
    named = next((value for key, value in metadata if key == _CLIENT), None)
    if not isinstance(named, bytes):
        return None
    host, _, principal = named.decode(errors="replace").partition(" ")
    return Requester(principal, host)


class Channel:
    """A connection to one server. Its methods take and return bytes; codecs convert them, outside gRPC."""

    def __init__(self, connections: "_Connections", token: RunToken) -> None:
        """Wraps gRPC's own channels.

        Args:
            connections: to the server.
            token: of the cluster.
        """
        self._connections = connections
        self._metadata = token.metadata

    def unary(self, path: str) -> UnaryCall:
        """Returns a method that answers each request once."""
        method = self._connections.method(
            lambda channel: channel.unary_unary(path, request_serializer=as_is, response_deserializer=as_is)
        )
        metadata = self._metadata

        def call(request: bytes, timeout_s: float | None, on_behalf_of: Requester | None = None) -> Awaitable[bytes]:
            more = () if on_behalf_of is None else (client_metadata(on_behalf_of),)
            return method()(request, timeout=timeout_s, metadata=(*metadata, *more))

        return call

    def answers(self, path: str) -> Callable[[bytes], MessageStream]:
        """Returns a method that answers a request with a stream."""
        method = self._connections.method(
            lambda channel: channel.unary_stream(path, request_serializer=as_is, response_deserializer=as_is)
        )
        return lambda request: method()(request, metadata=self._metadata)

    def stream(self, path: str) -> Callable[[], StreamCall]:
        """Returns a method that opens a stream in both directions."""
        method = self._connections.method(
            lambda channel: channel.stream_stream(path, request_serializer=as_is, response_deserializer=as_is)
        )
        # The stubs want an iterator of requests, gRPC does not.
        return lambda: cast(StreamCall, method()(metadata=self._metadata))  # type: ignore[call-arg]

    async def close(self) -> None:
        """Closes the connection at once."""
        await self._connections.close()


_MethodT = TypeVar("_MethodT")


class _Connections:
    """The connection of a channel; after a renewal of certificates, new calls use a new connection.

    Args:
        connect: returns a new connection.
        version: returns a value that changes with the certificate presented on it.
    """

    def __init__(self, connect: Callable[[], grpc.aio.Channel], version: Callable[[], int]) -> None:
        self._connect = connect
        self._version_now = version
        self._version = version()
        self._newest = connect()
        self._ending: list[asyncio.Task[None]] = []

    def method(self, bind: Callable[[grpc.aio.Channel], _MethodT]) -> Callable[[], _MethodT]:
        """Returns a function that returns a method of the connection to be used for the next call."""
        bound = self._newest, bind(self._newest)

        def current() -> _MethodT:
            nonlocal bound
            version = self._version_now()
            if version != self._version:
                self._version = version
                self._ending.append(asyncio.ensure_future(self._newest.close(_CALLS_END_WITHIN_S)))
                self._newest = self._connect()
            if bound[0] is not self._newest:
                bound = self._newest, bind(self._newest)
            return bound[1]

        return current

    async def close(self) -> None:
        for earlier in self._ending:
            earlier.cancel()
        await self._newest.close(None)


def open_channel(
    address: str, keepalive: Keepalive, *, token: RunToken, peer: NodeId, dialler: NodeId | None = None
) -> Channel:
    """Returns a channel to ``host:port``; it connects when first used.

    Args:
        address: of the peer.
        keepalive: settings after which a silent peer is given up.
        token: of the cluster.
        peer: the node that must be at the address, by its certificate, if nodes use TLS.
        dialler: the process that opens the channel; ``None`` if no fault may affect its messages.
    """
    options = channel_options(keepalive, dialler=dialler)
    certificates = token.certificates
    if certificates is None:
        return Channel(_Connections(lambda: grpc.aio.insecure_channel(address, options=options), lambda: 0), token)
    named = [*options, ("grpc.ssl_target_name_override", node_name(peer))]
    connections = _Connections(
        lambda: grpc.aio.secure_channel(address, certificates.channel_credentials(), options=named),
        lambda: certificates.client_version,
    )
    return Channel(connections, token)


class TokenCheck(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in the stubs only
    """Refuses calls that do not show the cluster's token; looks at each call once, a stream when it is opened."""

    def __init__(self, token: RunToken, *, on_refusal: Callable[[str], None]) -> None:
        """Lets calls with this token pass; other calls are reported with their address."""
        self._token = token
        self._on_refusal = on_refusal
        # A stream, whatever was called: nothing is read before it is refused.
        self._refusal = grpc.stream_stream_rpc_method_handler(
            self._refuse, request_deserializer=as_is, response_serializer=as_is
        )

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[bytes, bytes]"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """Returns the called method, or one that refuses the call."""
        if self._token.is_in(handler_call_details.invocation_metadata):
            return await continuation(handler_call_details)
        return self._refusal

    async def _refuse(self, _requests: object, context: "grpc.aio.ServicerContext[bytes, bytes]") -> None:
        self._on_refusal(context.peer())
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "this call does not show the cluster's token")


def as_is(payload: bytes) -> bytes:
    """The serializer and deserializer of every method: the codecs do that work, outside gRPC."""
    return payload
