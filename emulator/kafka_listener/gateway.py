"""The way from a connection to the core of its broker and back, and to the controller."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count, cycle
from typing import Final, NamedTuple, Protocol, TypeAlias

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.authorizer.request_guard import is_inactive
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import CauseId, CorrelationId, NodeId
from laststand.emulator.kafka_listener.connection import RefusedError
from laststand.emulator.rpc.data_codec import Attachment
from laststand.emulator.rpc.inbound import OnRequest
from laststand.emulator.rpc.outbound import Outbound

_RETRY_S: Final = 0.1
_ATTEMPT_MS: Final = 5_000
"""For which one of several controllers is waited for: it may have stopped, and another may be active by then."""


class Answered(NamedTuple):
    """An answer of the core.

    Attributes:
        response: of the request.
        attachments: bytes of each partition of a fetch response.
    """

    response: messages.Response
    attachments: Sequence[Attachment]


class _Waiting:
    """Takes the answer to one request (``emulator.rpc.inbound.Responder``), whose sender was authorized already."""

    requester: Final = None

    def __init__(self) -> None:
        self.outcome: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()

    def answer(self, response: messages.Response, *, cause_id: CauseId, attachments: Sequence[Attachment]) -> None:
        if not self.outcome.done():
            self.outcome.set_result(Answered(response, attachments))

    def disconnect(self) -> None:
        if not self.outcome.done():
            self.outcome.set_exception(RefusedError("the broker closes the connection"))


class _Unanswered:
    """Stands for the missing response to a request with acks=0."""

    requester: Final = None

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self._on_failure = on_failure

    def answer(self, response: messages.Response, *, cause_id: CauseId, attachments: Sequence[Attachment]) -> None:
        raise InvariantError("a produce request with acks=0 was answered")

    def disconnect(self) -> None:
        self._on_failure()


class CoreGateway:
    """Hands requests to the core of this broker.

    Args:
        on_request: takes a request.
        name: of this process, in the cause ids of requests.
    """

    def __init__(self, on_request: OnRequest, *, name: str) -> None:
        self._on_request = on_request
        self._name = name
        self._numbers = count()

    def ask(self, request: messages.Request, attachments: tuple[bytes, ...] = ()) -> "asyncio.Future[Answered]":
        """Hands a request to the core, and returns an awaitable of its response.

        It fails with ``RefusedError`` if the core closes the connection.

        Args:
            request: of a client.
            attachments: for a produce request the batch of each partition.
        """
        waiting = _Waiting()
        self._on_request(request, self._cause_id(), attachments, waiting)
        return waiting.outcome

    def append_without_answer(
        self, request: messages.Request, attachments: tuple[bytes, ...], *, on_failure: Callable[[], None]
    ) -> None:
        """Hands over a produce request with acks=0, which has no answer.

        Args:
            request: of a client.
            attachments: the batch of each partition.
            on_failure: called if the core could not append it.
        """
        self._on_request(request, self._cause_id(), attachments, _Unanswered(on_failure))

    def _cause_id(self) -> CauseId:
        return CauseId(f"kafka-{self._name}-{next(self._numbers)}")


MakeOutbound: TypeAlias = Callable[
    [Callable[[inputs.ResponseReceived | inputs.RequestFailed, tuple[bytes, ...]], None]], Outbound
]
"""Makes the sending half for forwarded requests, given what takes their outcomes."""


class Controller(Protocol):
    """Takes administrators' requests."""

    async def ask(
        self,
        controller: NodeId,
        request: messages.Request,
        *,
        timeout_ms: int,
        on_behalf_of: Requester | None = None,
    ) -> messages.Response | None:
        """Returns the controller's answer; ``None`` if none came in time.

        Args:
            controller: the controller's node id.
            request: of an administrator.
            timeout_ms: time limit for the answer.
            on_behalf_of: the client whose permissions count; ``None`` if no permission is needed.
        """
        ...

    async def close(self) -> None:
        """Closes the connection."""
        ...


class OwnController(Controller):
    """Asks the controller in the same process, as brokers of a ZooKeeper cluster do: it refuses unless it is elected.

    Args:
        core: of the process.
    """

    def __init__(self, core: CoreGateway) -> None:
        self._core = core

    async def ask(
        self,
        controller: NodeId,
        request: messages.Request,
        *,
        timeout_ms: int,
        on_behalf_of: Requester | None = None,
    ) -> messages.Response | None:
        """Returns the answer to a request; ``None`` if there is none in time."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return (await self._core.ask(request)).response
        except TimeoutError:
            return None

    async def close(self) -> None:
        """Does nothing: there is nothing to close."""


class ControllerGateway(Controller):
    """Forwards administrators' requests to the controller, as Kafka's brokers do.

    With several controllers, a request that is refused because another one is active, or that is not answered, is sent
    again, also to the others, until its deadline: it may be executed twice.

    Args:
        make_outbound: makes the connections.
        controller_ids: all controllers.
    """

    def __init__(self, make_outbound: MakeOutbound, controller_ids: Sequence[NodeId]) -> None:
        self._controller_ids = tuple(controller_ids)
        self._outbound = make_outbound(self._receive)
        self._numbers = count()
        self._waiting: dict[CorrelationId, asyncio.Future[messages.Response | None]] = {}

    async def ask(
        self,
        controller: NodeId,
        request: messages.Request,
        *,
        timeout_ms: int,
        on_behalf_of: Requester | None = None,
    ) -> messages.Response | None:
        """Returns the answer; ``None`` if none came in time."""
        if len(self._controller_ids) == 1:
            return await self._ask_one(controller, request, timeout_ms=timeout_ms, on_behalf_of=on_behalf_of)
        others = (each for each in self._controller_ids if each != controller)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        for each in cycle((controller, *others)):
            left_ms = round((deadline - loop.time()) * 1000)
            if left_ms <= 0:
                break
            response = await self._ask_one(
                each, request, timeout_ms=min(left_ms, _ATTEMPT_MS), on_behalf_of=on_behalf_of
            )
            if response is not None and not is_inactive(request, response):
                return response
            await asyncio.sleep(_RETRY_S)
        return None

    async def _ask_one(
        self,
        controller: NodeId,
        request: messages.Request,
        *,
        timeout_ms: int,
        on_behalf_of: Requester | None,
    ) -> messages.Response | None:
        correlation_id = CorrelationId(next(self._numbers))
        answer: asyncio.Future[messages.Response | None] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = answer
        self._outbound.send(
            destination=controller,
            correlation_id=correlation_id,
            request=request,
            timeout_ms=timeout_ms,
            cause_id=CauseId(f"forward-{correlation_id}"),
            on_behalf_of=on_behalf_of,
        )
        try:
            return await answer
        finally:
            del self._waiting[correlation_id]

    async def close(self) -> None:
        """Closes the connection."""
        await self._outbound.close()

    def _receive(self, outcome: inputs.ResponseReceived | inputs.RequestFailed, _: tuple[bytes, ...]) -> None:
        answer = self._waiting.get(outcome.correlation_id)
        if answer is not None and not answer.done():
            answer.set_result(outcome.response if isinstance(outcome, inputs.ResponseReceived) else None)
