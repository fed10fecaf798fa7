"""The harness as an administrator: requests to the controller, past all proxies."""

import base64
import os
from typing import Final

from chaos.scenario import TopicPlan
from emulator.core.errors import EmulatorError, ErrorCode
from emulator.core.messages import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from emulator.core.types import CauseId, TopicId
from emulator.rpc.apis import CONTROLLER_API_OF
from emulator.rpc.channel import Keepalive, as_is, open_channel

_TIMEOUT_S: Final = 10.0
_CAUSE: Final = CauseId("harness")


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


async def create_topics(address: str, topics: tuple[TopicPlan, ...], *, keepalive: Keepalive) -> None:
    """Creates topics with their assignments and properties.

    Raises:
        TopicNotCreatedError: the controller refused one.
        grpc.aio.AioRpcError: the controller did not answer.
    """
    request = CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=topic.name, topic_id=_new_topic_id(), assignments=topic.replicas, configs=topic.properties
            )
            for topic in topics
        )
    )
    api = CONTROLLER_API_OF[CreateTopicsRequest]
    async with open_channel(address, keepalive) as channel:
        method = channel.unary_unary(api.path, request_serializer=as_is, response_deserializer=as_is)
        payload = await method(api.encode_request(request, cause_id=_CAUSE), timeout=_TIMEOUT_S)
    response, _ = api.decode_response(payload)
    assert isinstance(response, CreateTopicsResponse)
    for result in response.topics:
        if result.error is not ErrorCode.NONE:
            raise TopicNotCreatedError(topic=result.name, error=result.error, message=result.error_message)


def _new_topic_id() -> TopicId:
    return TopicId(base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("="))
