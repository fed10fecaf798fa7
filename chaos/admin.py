"""The harness as an administrator: requests to the controller, past all proxies."""

from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

from chaos.administration import TopicPlan, creatable
from chaos.scenario import CONTROLLER
from emulator.client.admin_connection import AdminConnection
from emulator.client.admin_error import AdminError
from emulator.core.admin_messages import CreateTopicsRequest, CreateTopicsResponse
from emulator.core.errors import ErrorCode
from emulator.core.messages import Request, Response
from emulator.core.types import CauseId
from emulator.rpc.channel import Keepalive

_CAUSE: Final = CauseId("harness")


async def ask(address: str, request: Request, *, keepalive: Keepalive) -> Response:
    """Asks the controller at an address.

    Raises:
        AdminError: it did not answer.
    """
    async with AdminConnection({CONTROLLER: address}, keepalive=keepalive, cause_id=_CAUSE) as connection:
        return await connection.ask(CONTROLLER, request)


async def create_topics(
    ask_controller: Callable[[Request], Awaitable[Response]], topics: tuple[TopicPlan, ...], *, chance: Random
) -> None:
    """Creates topics with their assignments and properties; ``chance`` draws their ids.

    Raises:
        AdminError: the controller refused one.
        EmulatorError: the controller did not answer.
    """
    response = await ask_controller(
        CreateTopicsRequest(topics=tuple(creatable(topic, chance=chance) for topic in topics))
    )
    assert isinstance(response, CreateTopicsResponse)
    for result in response.topics:
        if result.error is not ErrorCode.NONE:
            subject = f"topic {result.name}"
            raise AdminError(api="CreateTopics", error=result.error, subject=subject, reason=result.error_message)
