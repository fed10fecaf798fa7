"""The sending half of a process: core requests become messages, and their responses core inputs.

``send`` never blocks; every request ends in exactly one ``ResponseReceived`` or ``RequestFailed``, which are given to
``deliver`` (a produce request with acks=0 only in the latter). Produce and Fetch run over streams, the rest is unary.
Each pair of peer and role has a channel of its own: data never delays heartbeats.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, TypeAlias

import grpc.aio

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.errors import TransportError
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import Acks, CauseId, CorrelationId, NodeId, RequestFailure
from laststand.emulator.rpc.address_book import AddressBook
from laststand.emulator.rpc.apis import UnaryApi, api_of, method_path
from laststand.emulator.rpc.channel import Channel, Keepalive, StreamCall, UnaryCall, open_channel
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.rpc.data_codec import (
    FETCH,
    PRODUCE,
    Attachment,
    ParseFetched,
    Streamed,
    decode_fetch_responses,
    decode_produce_responses,
    encode_fetch_request,
    encode_produce_request,
)
from laststand.emulator.rpc.request_stream import AnswerPolicy, RequestStream
from laststand.emulator.rpc.run_token import RunToken
from laststand.emulator.rpc.services import BROKER_SERVICE

_log: Final = logging.getLogger(__name__)


class ChannelRole(Enum):
    """The purpose of a channel."""

    SESSION = "session"
    """Registration and heartbeats."""

    CONTROL = "control"
    """All other unary requests."""

    PRODUCE = "produce"
    FETCH = "fetch"
    METADATA = "metadata"
    """The stream of committed metadata."""


Outcome: TypeAlias = inputs.ResponseReceived | inputs.RequestFailed
Deliver: TypeAlias = Callable[[Outcome, tuple[bytes, ...]], None]
"""Takes an outcome, and the record bytes of a fetch response: one block per partition, in its order."""


class Outbound:
    """The sending half of a process.

    Args:
        addresses: addresses of peers.
        dialler: the process that sends the requests; ``None`` for requests that no fault may affect.
        keepalive: settings after which silent peers are given up.
        token: of the cluster.
        tasks: owns every task that sending starts; leave it only after ``close``.
        parse_fetched: reads the batch headers in a fetched block.
        deliver: called with every outcome, on the event loop, never from within ``send``.
        controller_id: the controller's id, if it may also be a broker's.
    """

    def __init__(
        self,
        *,
        addresses: AddressBook,
        dialler: NodeId | None,
        keepalive: Keepalive,
        token: RunToken,
        tasks: asyncio.TaskGroup,
        parse_fetched: ParseFetched,
        deliver: Deliver,
        controller_id: NodeId | None = None,
    ) -> None:
        self._controller_id = controller_id
        self._addresses = addresses
        self._dialler = dialler
        self._keepalive = keepalive
        self._token = token
        self._tasks = tasks
        self._parse_fetched = parse_fetched
        self._deliver = deliver
        self._channels: dict[tuple[NodeId, ChannelRole], Channel] = {}
        self._methods: dict[tuple[NodeId, type], UnaryCall] = {}
        self._produce_streams: dict[NodeId, RequestStream[messages.ProduceResponse]] = {}
        self._fetch_streams: dict[NodeId, RequestStream[messages.FetchResponse]] = {}
        self._calls: set[asyncio.Task[None]] = set()

    def channel(self, destination: NodeId, role: ChannelRole) -> Channel:
        """Returns the channel to a peer for a role, opened at first use.

        Raises:
            TransportError: the address book has no such peer.
        """
        key = (destination, role)
        if key not in self._channels:
            self._channels[key] = open_channel(
                self._addresses.address_of(destination),
                self._keepalive,
                token=self._token,
                peer=destination,
                dialler=self._dialler,
            )
        return self._channels[key]

    def send(
        self,
        *,
        destination: NodeId,
        correlation_id: CorrelationId,
        request: messages.Request,
        timeout_ms: int,
        cause_id: CauseId,
        attachments: Sequence[Attachment] = (),
        on_behalf_of: Requester | None = None,
    ) -> None:
        """Sends a request.

        Args:
            destination: the peer; a request to one that the address book lacks fails as DISCONNECTED.
            correlation_id: the caller's handle, unique among its unanswered requests.
            request: any request of the core.
            timeout_ms: from now until TIMED_OUT.
            cause_id: travels along.
            attachments: for ProduceRequest, the batch of each partition, in its order; else empty.
            on_behalf_of: the client whose request is passed on; ``None`` for the process's own requests, and for
                streams.
        """
        try:
            match request:
                case messages.ProduceRequest():
                    self._produce_stream(destination).send(
                        correlation_id=correlation_id,
                        cause_id=cause_id,
                        payload=encode_produce_request(
                            request, correlation_id=correlation_id, cause_id=cause_id, attachments=attachments
                        ),
                        timeout_ms=timeout_ms,
                        answer=AnswerPolicy.UNANSWERED if request.acks == Acks.NONE else AnswerPolicy.ANSWERED,
                    )
                case messages.FetchRequest():
                    self._fetch_stream(destination).send(
                        correlation_id=correlation_id,
                        cause_id=cause_id,
                        payload=encode_fetch_request(request, correlation_id=correlation_id, cause_id=cause_id),
                        timeout_ms=timeout_ms,
                        answer=AnswerPolicy.ANSWERED,
                    )
                case _:
                    api = api_of(request, destination, controller_id=self._controller_id)
                    method = self._method(destination, api)
                    call = self._call(
                        method, api, destination, correlation_id, request, timeout_ms, cause_id, on_behalf_of
                    )
                    task = self._tasks.create_task(call)
                    self._calls.add(task)
                    task.add_done_callback(self._calls.discard)
        except TransportError as error:
            _log.warning("request=%s peer=%d failed reason=%s", type(request).__name__, destination, error.reason)
            loop = asyncio.get_running_loop()
            loop.call_soon(self._fail, correlation_id, cause_id, RequestFailure.DISCONNECTED)

    async def close(self) -> None:
        """Gives up every unanswered request and closes all channels."""
        for produce_stream in self._produce_streams.values():
            produce_stream.close()
        for fetch_stream in self._fetch_streams.values():
            fetch_stream.close()
        for task in tuple(self._calls):
            task.cancel()
        for channel in self._channels.values():
            await channel.close()

    async def _call(
        self,
        method: UnaryCall,
        api: UnaryApi,
        destination: NodeId,
        correlation_id: CorrelationId,
        request: messages.Request,
        timeout_ms: int,
        cause_id: CauseId,
        on_behalf_of: Requester | None,
    ) -> None:
        try:
            encoded = api.encode_request(request, cause_id=cause_id)
            payload = await method(encoded, timeout_ms / 1000, on_behalf_of)
            response, _ = api.decode_response(payload)
        except grpc.aio.AioRpcError as error:
            _log.debug("request=%s peer=%d failed code=%s", api.name, destination, error.code().name)
            is_deadline = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            self._fail(
                correlation_id, cause_id, RequestFailure.TIMED_OUT if is_deadline else RequestFailure.DISCONNECTED
            )
        except CodecError as error:
            _log.warning("request=%s peer=%d failed reason=%s", api.name, destination, error.reason)
            self._fail(correlation_id, cause_id, RequestFailure.DISCONNECTED)
        else:
            received = inputs.ResponseReceived(cause_id=cause_id, correlation_id=correlation_id, response=response)
            self._deliver(received, ())

    def _method(self, destination: NodeId, api: UnaryApi) -> UnaryCall:
        key = (destination, api.request_type)
        if key not in self._methods:
            is_session = api.request_type in (messages.BrokerRegistrationRequest, messages.BrokerHeartbeatRequest)
            channel = self.channel(destination, ChannelRole.SESSION if is_session else ChannelRole.CONTROL)
            self._methods[key] = channel.unary(api.path)
        return self._methods[key]

    def _produce_stream(self, destination: NodeId) -> RequestStream[messages.ProduceResponse]:
        if destination not in self._produce_streams:
            self._produce_streams[destination] = RequestStream(
                tasks=self._tasks,
                open_call=self._opener(destination, ChannelRole.PRODUCE, PRODUCE),
                decode=decode_produce_responses,
                on_answer=self._answer,
                on_failure=self._fail,
            )
        return self._produce_streams[destination]

    def _fetch_stream(self, destination: NodeId) -> RequestStream[messages.FetchResponse]:
        if destination not in self._fetch_streams:
            self._fetch_streams[destination] = RequestStream(
                tasks=self._tasks,
                open_call=self._opener(destination, ChannelRole.FETCH, FETCH),
                decode=lambda frame: decode_fetch_responses(frame, self._parse_fetched),
                on_answer=self._answer,
                on_failure=self._fail,
            )
        return self._fetch_streams[destination]

    def _opener(self, destination: NodeId, role: ChannelRole, name: str) -> Callable[[], StreamCall]:
        return self.channel(destination, role).stream(method_path(BROKER_SERVICE, name))

    def _answer(self, answer: Streamed[messages.ProduceResponse] | Streamed[messages.FetchResponse]) -> None:
        received = inputs.ResponseReceived(
            cause_id=answer.cause_id, correlation_id=answer.correlation_id, response=answer.message
        )
        self._deliver(received, answer.attachments)

    def _fail(self, correlation_id: CorrelationId, cause_id: CauseId, failure: RequestFailure) -> None:
        self._deliver(inputs.RequestFailed(cause_id=cause_id, correlation_id=correlation_id, failure=failure), ())
