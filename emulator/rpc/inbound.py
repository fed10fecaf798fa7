"""The receiving half of a process: a gRPC server that turns calls into core requests, and answers back into bytes.

Each request comes with a ``Responder``, which takes its answer at once or later. Answers given in one turn of the event
loop share a frame of their stream. When a caller is gone, answers to it are dropped. A stream that has
``UNANSWERED_MAX`` open requests is not read until one is answered.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar
from urllib.parse import unquote

import grpc
import grpc.aio
import msgspec

from laststand.emulator.core import events, messages
from laststand.emulator.core.principal_rules import PrincipalRules
from laststand.emulator.core.requester import ANONYMOUS, LOCAL_HOST, Requester, node_principal
from laststand.emulator.core.types import Acks, CauseId, CorrelationId, NodeId, Way
from laststand.emulator.rpc.apis import (
    BROKER_APIS,
    CONTROLLER_APIS,
    QUORUM_APIS,
    ZOOKEEPER_BROKER_APIS,
    UnaryApi,
)
from laststand.emulator.rpc.certificates import HARNESS_SUBJECT
from laststand.emulator.rpc.channel import Keepalive, TokenCheck, as_is, client_of, server_options
from laststand.emulator.rpc.clock_orders import (
    CLOCK_METHOD,
    CLOCK_ORDERS,
    CLOCK_REPORTS,
    CLOCK_SERVICE,
    ClockOrder,
    ClockReport,
)
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.rpc.data_codec import (
    FETCH,
    PRODUCE,
    Attachment,
    ParseProduced,
    Payload,
    Streamed,
    decode_fetch_requests,
    decode_produce_requests,
    encode_fetch_response,
    encode_produce_response,
    join_frame,
)
from laststand.emulator.rpc.interception import (
    INTERCEPTION_METHOD,
    INTERCEPTION_ORDERS,
    INTERCEPTION_REPORTS,
    INTERCEPTION_SERVICE,
    STREAM_API,
    Interceptor,
    dialler_of,
)
from laststand.emulator.rpc.metadata_codec import METADATA_STREAM, MetadataStreamRequest, decode_stream_request
from laststand.emulator.rpc.orders import is_order, order_received
from laststand.emulator.rpc.request_stream import FRAME_BYTES_MAX
from laststand.emulator.rpc.run_token import RunToken
from laststand.emulator.rpc.services import (
    BROKER_SERVICE,
    CONTROLLER_SERVICE,
    QUORUM_SERVICE,
    ZOOKEEPER_BROKER_SERVICE,
)

_ORDER: Final = CauseId("order")
_TOKEN: Final = CauseId("token")

UNANSWERED_MAX: Final = 1024
"""Requests of one stream that may wait for their answers; then reading stops."""


class Responder(Protocol):
    """The way back to the sender of a request."""

    @property
    def requester(self) -> Requester | None:
        """The sender; ``None`` if it needs no permission."""

    def answer(self, response: messages.Response, *, cause_id: CauseId, attachments: Sequence[Attachment]) -> None:
        """Sends the answer; the attachments are the bytes of a fetch response's spans, one per partition."""

    def disconnect(self) -> None:
        """Closes the connection's stream instead of answering."""


class StreamMessage(NamedTuple):
    """A message of the metadata stream, which is encoded when it leaves.

    Attributes:
        encode: returns the ``MetadataStreamResponse`` with everything that is new to the reader up to this message, or
            ``None`` if a later message that left earlier had it.
        cause_id: of its newest batch.
    """

    encode: Callable[[], bytes | None]
    cause_id: CauseId


class Subscriber(Protocol):
    """A caller of the metadata stream."""

    async def next_message(self) -> StreamMessage:
        """Returns the next message, waiting for it.

        Raises:
            SubscriptionEndedError: the position does not exist, or the node ends.
        """
        ...

    def leave(self) -> None:
        """Notes that the caller is gone."""


class SubscriptionEndedError(Exception):
    """A metadata stream ends; its reader may open another."""


OnRequest: TypeAlias = Callable[[messages.Request, CauseId, tuple[bytes, ...], Responder], None]
"""Takes a request, its cause, the record bytes of a produce request (one block per partition), and the way back."""

OnSubscribe: TypeAlias = Callable[[MetadataStreamRequest, Requester | None], Subscriber]
"""Takes a subscription and its sender."""

RequestT = TypeVar("RequestT", messages.ProduceRequest, messages.FetchRequest)
_Decode: TypeAlias = Callable[[bytes], list[Streamed[RequestT]]]
_Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"


class _Caller:
    """The other end of a call: its messages pass the interceptor."""

    __slots__ = ("_context", "_dialler", "_interceptor", "_requester", "_rules")

    def __init__(self, context: _Context, interceptor: Interceptor, rules: PrincipalRules) -> None:
        self._context = context
        self._interceptor = interceptor
        self._rules = rules
        self._dialler: tuple[NodeId | None] | None = None
        self._requester: tuple[Requester | None] | None = None

    @property
    def dialler(self) -> NodeId | None:
        """The process at the other end, if it names itself."""
        if self._dialler is None:
            self._dialler = (dialler_of(self._context.invocation_metadata() or ()),)
        return self._dialler[0]

    @property
    def requester(self) -> Requester | None:
        """The principal at the other end; ``None`` for the harness."""
        if self._requester is None:
            self._requester = (self._find_requester(),)
        return self._requester[0]

    def _find_requester(self) -> Requester | None:
        principal = self._principal()
        if principal is None:
            return None
        client = client_of(self._context.invocation_metadata() or ())
        if client is None:
            return Requester(principal, host_of(self._context.peer()))
        return Requester(client.principal, client.host, forwarder=principal)

    def _principal(self) -> str | None:
        """Returns the other end's principal: from its certificate, or without TLS from the name that it states."""
        subject = b"".join(self._context.auth_context().get("x509_subject", ())).decode(errors="replace")
        if not subject:
            return None if self.dialler is None else node_principal(self.dialler)
        if subject == HARNESS_SUBJECT:
            return None
        try:
            return self._rules.principal(subject)
        except ValueError:
            return ANONYMOUS

    def send(self, api: str, way: Way, cause_id: CauseId, deliver: Callable[[], None]) -> None:
        """Delivers a message, unless an ordered fault prevents that."""
        if self._interceptor.is_idle:
            deliver()
            return
        if way is Way.REQUEST:
            _ = self.requester  # kept: a request that is held may outlive its call, and gRPC crashes if asked then
        self._interceptor.send(self.dialler, api, way, cause_id, deliver)


def host_of(peer: str) -> str:
    """Returns the IP address in a peer as gRPC writes it: ``ipv4:127.0.0.1:4711``, ``ipv6:%5B::1%5D:4711``."""
    kind, _, rest = peer.partition(":")
    return unquote(rest).rpartition(":")[0].strip("[]") if kind in ("ipv4", "ipv6") else LOCAL_HOST


def _without_token(peer: str) -> events.AuthenticationFailed:
    address = unquote(peer.partition(":")[2])
    reason = "the cluster's token is not shown"
    return events.AuthenticationFailed(cause_id=_TOKEN, address=address, mechanism="token", reason=reason)


class _UnaryResponder:
    def __init__(self, api: UnaryApi, caller: "_Caller") -> None:
        self._api = api
        self._caller = caller
        self.payload: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    @property
    def requester(self) -> Requester | None:
        return self._caller.requester

    def answer(self, response: messages.Response, *, cause_id: CauseId, attachments: Sequence[Attachment]) -> None:
        def deliver() -> None:
            if not self.payload.done():
                self.payload.set_result(self._api.encode_response(response, cause_id=cause_id))

        self._caller.send(self._api.name, Way.RESPONSE, cause_id, deliver)

    def disconnect(self) -> None:
        self.payload.cancel()


class _ServedStream(Generic[RequestT]):
    """One caller's stream of Produce or Fetch."""

    def __init__(
        self, api: str, context: _Context, caller: _Caller, decode: _Decode[RequestT], on_request: OnRequest
    ) -> None:
        self.caller = caller
        self._api = api
        self._context = context
        self._decode: _Decode[RequestT] = decode
        self._on_request = on_request
        self._answers: deque[Payload] = deque()
        self._has_answers = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._unanswered = 0
        self._broken = asyncio.get_running_loop().create_future()

    async def serve(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                writer = tasks.create_task(self._write())
                reader = tasks.create_task(self._read())
                await asyncio.wait((reader, self._broken), return_when=asyncio.FIRST_COMPLETED)
                reader.cancel()
                writer.cancel()
            while self._answers:
                await self._context.write(join_frame(self._next_answers()))
        finally:
            self._broken.cancel()

    async def _read(self) -> None:
        while (frame := await self._context.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]  # stubs lack it
            for received in self._decode(frame):
                responder = _StreamResponder(self, received.correlation_id)
                if not (isinstance(received.message, messages.ProduceRequest) and received.message.acks == Acks.NONE):
                    self._unanswered += 1
                self.caller.send(self._api, Way.REQUEST, received.cause_id, self._arrival(received, responder))
            if self._unanswered >= UNANSWERED_MAX:
                self._room.clear()
                await self._room.wait()

    def _arrival(self, received: Streamed[RequestT], responder: Responder) -> Callable[[], None]:
        message, cause_id, attachments = received.message, received.cause_id, received.attachments
        return lambda: self._on_request(message, cause_id, attachments, responder)

    async def _write(self) -> None:
        while True:
            await self._has_answers.wait()
            self._has_answers.clear()
            while self._answers:
                await self._context.write(join_frame(self._next_answers()))

    def _next_answers(self) -> list[Payload]:
        payloads = [self._answers.popleft()]
        size = payloads[0].size
        while self._answers and size + self._answers[0].size <= FRAME_BYTES_MAX:
            payloads.append(self._answers.popleft())
            size += payloads[-1].size
        return payloads

    def enqueue(self, payload: Payload, cause_id: CauseId) -> None:
        self._unanswered -= 1
        self._room.set()

        def deliver() -> None:
            self._answers.append(payload)
            self._has_answers.set()

        self.caller.send(self._api, Way.RESPONSE, cause_id, deliver)

    def break_off(self) -> None:
        if not self._broken.done():
            self._broken.set_result(None)


class _StreamResponder(Generic[RequestT]):
    def __init__(self, stream: _ServedStream[RequestT], correlation_id: CorrelationId) -> None:
        self._stream: _ServedStream[RequestT] = stream
        self._correlation_id = correlation_id

    @property
    def requester(self) -> Requester | None:
        return self._stream.caller.requester

    def answer(self, response: messages.Response, *, cause_id: CauseId, attachments: Sequence[Attachment]) -> None:
        match response:
            case messages.FetchResponse():
                payload = encode_fetch_response(
                    response, correlation_id=self._correlation_id, cause_id=cause_id, attachments=attachments
                )
            case messages.ProduceResponse():
                payload = encode_produce_response(response, correlation_id=self._correlation_id, cause_id=cause_id)
            case _:
                raise TypeError(f"{type(response).__name__} answers no stream")
        self._stream.enqueue(payload, cause_id)

    def disconnect(self) -> None:
        self._stream.break_off()


class NodeServer:
    """A node's gRPC server.

    Args:
        keepalive: settings after which silent callers are given up.
        token: of the cluster; calls that do not show it are refused.
        on_request: takes every request, on the event loop; must return at once.
        interceptor: applies faults to messages, also to those of the node's other servers; its orders arrive here.
        on_order: records an order, before it is performed.
        on_refusal: records that a caller does not show the token.
        rules: the rules that convert certificates to principals, if nodes use TLS.

    Attributes:
        interceptor: the given one.
    """

    def __init__(
        self,
        *,
        keepalive: Keepalive,
        token: RunToken,
        on_request: OnRequest,
        interceptor: Interceptor,
        on_order: Callable[[events.OrderReceived], None],
        on_refusal: Callable[[events.AuthenticationFailed], None],
        rules: PrincipalRules | None = None,
    ) -> None:
        self._certificates = token.certificates
        self._rules = rules or PrincipalRules("")
        self._on_request = on_request
        self._on_order = on_order
        self.interceptor = interceptor
        self._streams: set[_ServedStream[messages.ProduceRequest] | _ServedStream[messages.FetchRequest]] = set()
        check = TokenCheck(token, on_refusal=lambda peer: on_refusal(_without_token(peer)))
        self._server = grpc.aio.server(interceptors=(check,), options=server_options(keepalive))
        self._add(
            INTERCEPTION_SERVICE, {INTERCEPTION_METHOD: self._order_handler(INTERCEPTION_METHOD, self._intercept)}
        )

    def add_controller(self, on_subscribe: OnSubscribe) -> None:
        """Serves the controller's APIs."""
        handlers = {api.name: self._unary_handler(api) for api in CONTROLLER_APIS}
        handlers[METADATA_STREAM] = grpc.unary_stream_rpc_method_handler(
            self._metadata_behavior(on_subscribe), request_deserializer=as_is, response_serializer=as_is
        )
        self._add(CONTROLLER_SERVICE, handlers)

    def add_quorum(self) -> None:
        """Serves requests between controllers, and administrators' requests to their quorum."""
        self._add(QUORUM_SERVICE, {api.name: self._unary_handler(api) for api in QUORUM_APIS})

    def add_health(self, is_serving: Callable[[], bool]) -> None:
        """Serves health checks: whether the node can do its work."""
        # Imported where it is asked for, in containers: everybody else starts without it.
        from laststand.emulator.rpc.health import SERVICE, health_handlers

        self._add(SERVICE, health_handlers(is_serving))

    def add_broker(self, parse_produced: ParseProduced) -> None:
        """Serves the broker's APIs; ``parse_produced`` reads the header of each batch that a producer sends."""
        handlers = {api.name: self._unary_handler(api) for api in BROKER_APIS}
        handlers[PRODUCE] = self._stream_handler(PRODUCE, lambda frame: decode_produce_requests(frame, parse_produced))
        handlers[FETCH] = self._stream_handler(FETCH, decode_fetch_requests)
        self._add(BROKER_SERVICE, handlers)

    def add_zookeeper_broker(self) -> None:
        """Serves requests between the brokers of a cluster with ZooKeeper, and the controllers in them."""
        self._add(ZOOKEEPER_BROKER_SERVICE, {api.name: self._unary_handler(api) for api in ZOOKEEPER_BROKER_APIS})

    async def start(self, address: str) -> int:
        """Listens on ``host:port``, port 0 for any, and returns the port.

        Raises:
            RuntimeError: the address is taken.
        """
        if self._certificates is None:
            port = self._server.add_insecure_port(address)
        else:
            port = self._server.add_secure_port(address, self._certificates.server_credentials())
        await self._server.start()
        return port

    async def stop(self, *, grace_s: float) -> None:
        """Accepts no more calls, ends the streams, and closes every connection after ``grace_s`` at most."""
        for stream in self._streams:
            stream.break_off()
        await self._server.stop(grace_s)

    def _add(self, service: str, handlers: dict[str, "grpc.RpcMethodHandler[bytes, bytes]"]) -> None:
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))

    def _intercept(self, payload: bytes) -> bytes:
        return INTERCEPTION_REPORTS.encode(self.interceptor.obey(INTERCEPTION_ORDERS.decode(payload)))

    def _unary_handler(self, api: UnaryApi) -> "grpc.RpcMethodHandler[bytes, bytes]":
        async def behavior(payload: bytes, context: _Context) -> bytes:
            try:
                request, cause_id = api.decode_request(payload)
            except CodecError as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            caller = _Caller(context, self.interceptor, self._rules)
            responder = _UnaryResponder(api, caller)
            with _bugs_stop_the_process():
                if is_order(request):
                    self._on_order(order_received(request, giver=context.peer(), cause_id=cause_id))
                arrive = partial(self._on_request, request, cause_id, (), responder)
                caller.send(api.name, Way.REQUEST, cause_id, arrive)
            return await responder.payload

        return grpc.unary_unary_rpc_method_handler(behavior, request_deserializer=as_is, response_serializer=as_is)

    def add_clock(self, change: Callable[[ClockOrder], ClockReport]) -> None:
        """Takes orders about the node's clock."""

        def obey(payload: bytes) -> bytes:
            return CLOCK_REPORTS.encode(change(CLOCK_ORDERS.decode(payload)))

        self._add(CLOCK_SERVICE, {CLOCK_METHOD: self._order_handler(CLOCK_METHOD, obey)})

    def _order_handler(self, api: str, obey: Callable[[bytes], bytes]) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """Returns the handler of orders about messages, or about the clock."""

        async def behavior(payload: bytes, context: _Context) -> bytes:
            if _Caller(context, self.interceptor, self._rules).requester is not None:
                await context.abort(grpc.StatusCode.PERMISSION_DENIED, "orders are those of the harness")
            try:
                with _bugs_stop_the_process():
                    order = payload.decode(errors="replace")
                    self._on_order(events.OrderReceived(cause_id=_ORDER, api=api, order=order, giver=context.peer()))
                    return obey(payload)
            except msgspec.DecodeError as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

        return grpc.unary_unary_rpc_method_handler(behavior, request_deserializer=as_is, response_serializer=as_is)

    def _stream_handler(self, api: str, decode: _Decode[RequestT]) -> "grpc.RpcMethodHandler[bytes, bytes]":
        async def behavior(_requests: object, context: _Context) -> None:
            caller = _Caller(context, self.interceptor, self._rules)
            stream = _ServedStream(api, context, caller, decode, self._on_request)
            self._streams.add(stream)
            try:
                with _bugs_stop_the_process():
                    await stream.serve()
            except* CodecError as errors:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(errors.exceptions[0]))
            finally:
                self._streams.discard(stream)

        return grpc.stream_stream_rpc_method_handler(behavior, request_deserializer=as_is, response_serializer=as_is)

    def _metadata_behavior(self, on_subscribe: OnSubscribe) -> Callable[[bytes, _Context], object]:
        async def behavior(payload: bytes, context: _Context) -> None:
            caller = _Caller(context, self.interceptor, self._rules)
            try:
                request = decode_stream_request(payload)
            except CodecError as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            if not self.interceptor.is_idle:
                await self.interceptor.passage(caller.dialler, STREAM_API, Way.REQUEST, request.cause_id)
            subscriber = on_subscribe(request, caller.requester)
            end: Exception | None = None
            try:
                with _bugs_stop_the_process():
                    await _ServedSubscription(context, caller, subscriber).serve()
            except* SubscriptionEndedError as errors:
                end = errors.exceptions[0]
            finally:
                subscriber.leave()
            if end is not None:
                await context.abort(grpc.StatusCode.OUT_OF_RANGE, str(end))

        return behavior


class _ServedSubscription:
    """One caller's metadata stream: messages go to the interceptor, and those that pass it are written."""

    def __init__(self, context: _Context, caller: _Caller, subscriber: Subscriber) -> None:
        self._context = context
        self._caller = caller
        self._subscriber = subscriber
        self._passed: asyncio.Queue[StreamMessage] = asyncio.Queue()

    async def serve(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read())
            tasks.create_task(self._write())

    async def _read(self) -> None:
        while True:
            message = await self._subscriber.next_message()
            self._caller.send(STREAM_API, Way.RESPONSE, message.cause_id, partial(self._passed.put_nowait, message))
            await self._passed.join()  # what passes is written before the next is made; what is held is made on

    async def _write(self) -> None:
        while True:
            payload = (await self._passed.get()).encode()
            if payload is not None:
                await self._context.write(payload)
            self._passed.task_done()


_NO_BUGS: Final = (CodecError, SubscriptionEndedError, msgspec.DecodeError, grpc.aio.BaseError)
"""Errors that a handler may meet: callers that send nonsense, streams that end, callers that are gone."""


@contextlib.contextmanager
def _bugs_stop_the_process() -> Iterator[None]:
    """Also passes any other exception to the event loop's handler: gRPC would log it, and the node would continue."""
    try:
        yield
    except Exception as error:
        bug = error.split(_NO_BUGS)[1] if isinstance(error, ExceptionGroup) else error
        if bug is not None and not isinstance(bug, _NO_BUGS):
            context = {"message": "a request's handler failed", "exception": bug}
            asyncio.get_running_loop().call_exception_handler(context)
        raise
