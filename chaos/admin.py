"""The harness as an administrator: requests to the controller, past all proxies."""

from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

import grpc.aio

from chaos.administration import TopicPlan, creatable
from emulator.core.admin_messages import CreateTopicsRequest, CreateTopicsResponse
from emulator.core.errors import EmulatorError, ErrorCode
from emulator.core.messages import Request, Response
from emulator.core.types import CauseId
from emulator.rpc.apis import CONTROLLER_API_OF
from emulator.rpc.channel import Keepalive, as_is, open_channel

_TIMEOUT_S: Final = 10.0
_CAUSE: Final = CauseId("harness")


class AdminRequestError(EmulatorError):
    """The controller did not answer.

    Attributes:
        api: what it was asked.
        reason: gRPC's status.
    """

    def __init__(self, *, api: str, reason: str) -> None:
        super().__init__(f"{api}: the controller did not answer ({reason})")
        self.api = api
        self.reason = reason


class TopicNotCreatedError(EmulatorError):
    """The controller refused a topic.

    Attributes:
        topic: its name.
        error: the protocol error.
    """

    def __init__(self, *, topic: str, error: ErrorCode, message: str) -> None:
        super().__init__(f"topic {topic} was not created: {error.name} {message}")
        self.topic = topic
        self.error = error


async def ask(address: str, request: Request, *, keepalive: Keepalive) -> Response:
    """Asks the controller at an address.

    Raises:
        AdminRequestError: it did not answer.
    """
    api = CONTROLLER_API_OF[type(request)]
    try:
        async with open_channel(address, keepalive) as channel:
            method = channel.unary_unary(api.path, request_serializer=as_is, response_deserializer=as_is)
            payload = await method(api.encode_request(request, cause_id=_CAUSE), timeout=_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        raise AdminRequestError(api=api.name, reason=error.code().name) from error
    response, _ = api.decode_response(payload)
    return response


async def create_topics(
    ask_controller: Callable[[Request], Awaitable[Response]], topics: tuple[TopicPlan, ...], *, chance: Random
) -> None:
    """Creates topics with their assignments and properties; ``chance`` draws their ids.

    Raises:
        TopicNotCreatedError: the controller refused one.
        EmulatorError: the controller did not answer.
    """
    response = await ask_controller(
        CreateTopicsRequest(topics=tuple(creatable(topic, chance=chance) for topic in topics))
    )
    assert isinstance(response, CreateTopicsResponse)
    for result in response.topics:
        if result.error is not ErrorCode.NONE:
            raise TopicNotCreatedError(topic=result.name, error=result.error, message=result.error_message)
