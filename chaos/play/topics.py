"""Creates a scenario's topics before its steps begin."""

from collections.abc import Awaitable, Callable
from random import Random

from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.plan.topics import PlannedTopic, draw_topic_id


async def create_topics(
    ask_controller: Callable[[messages.Request], Awaitable[messages.Response]],
    topics: tuple[PlannedTopic, ...],
    *,
    chance: Random,
) -> None:
    """Creates topics with their assignments and properties; ``chance`` draws their ids.

    Raises:
        AdminError: the controller refused a topic.
        EmulatorError: the controller did not answer.
    """
    response = await ask_controller(
        admin_messages.CreateTopicsRequest(topics=tuple(topic.creatable(draw_topic_id(chance)) for topic in topics))
    )
    assert isinstance(response, admin_messages.CreateTopicsResponse)
    for result in response.topics:
        if result.error is not ErrorCode.NONE:
            subject = f"topic {result.name}"
            raise AdminError(api="CreateTopics", error=result.error, subject=subject, reason=result.error_message)
