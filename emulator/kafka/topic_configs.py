"""Topic configurations with which brokers do not store batches as they were sent."""

from collections.abc import Iterable
from typing import Final, cast

from kio.schema.describe_configs.v4 import request as describe_configs
from kio.schema.describe_configs.v4 import response as configs_described
from kio.static.primitive import i8

from laststand.emulator.kafka.connection import KafkaConnection

_TOPIC: Final = i8(2)
_KEPT: Final = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
}
"""The values with which batches stay what they are, until they are deleted as a whole."""


async def configs_that_change_batches(connection: KafkaConnection, topics: Iterable[str]) -> dict[str, str]:
    """Returns topics whose batches are changed, each with the configuration that is the reason.

    Raises:
        OSError: the connection broke.
    """
    resources = tuple(
        describe_configs.DescribeConfigsResource(
            resource_type=_TOPIC, resource_name=topic, configuration_keys=tuple(_KEPT)
        )
        for topic in topics
    )
    request = describe_configs.DescribeConfigsRequest(resources=resources)
    answer = await connection.ask(request, configs_described.DescribeConfigsResponse)
    found: dict[str, str] = {}
    for topic in cast(configs_described.DescribeConfigsResponse, answer).results:
        for each in topic.configs:
            if each.name in _KEPT and each.value not in (None, "", _KEPT[each.name]):
                found.setdefault(topic.resource_name, f"{each.name}={each.value}")
    return found
