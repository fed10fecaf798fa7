"""The recovery strategy in effect: KIP-966's property beside the boolean that it replaces."""

import pytest

from laststand.emulator.core import admin_messages, records
from laststand.emulator.core.controller.unclean_config import recovery_strategy, strategy_values
from laststand.emulator.core.effective_config import ConfigValue
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.types import ConfigResource, MetadataOffset, NodeId, RecoveryStrategy

STRATEGY, ENABLE = "unclean.recovery.strategy", "unclean.leader.election.enable"
PLACES = {
    "topic": (ConfigResource.TOPIC, "orders"),
    "node": (ConfigResource.BROKER, "100"),
    "cluster": (ConfigResource.BROKER, ""),
}


@pytest.mark.parametrize(
    ("static", "dynamic", "strategy"),
    [
        ({}, {}, "Balanced"),
        ({ENABLE: "false"}, {}, "Balanced"),
        ({ENABLE: "true"}, {}, "Aggressive"),
        ({ENABLE: "TRUE"}, {}, "Aggressive"),
        ({STRATEGY: "None"}, {}, "None"),
        ({STRATEGY: "None", ENABLE: "true"}, {}, "None"),
        ({STRATEGY: "None"}, {("cluster", ENABLE): "true"}, "Aggressive"),
        ({STRATEGY: "Aggressive"}, {("cluster", ENABLE): "false"}, "Balanced"),
        ({}, {("cluster", STRATEGY): "Aggressive", ("node", STRATEGY): "None"}, "None"),
        ({}, {("node", STRATEGY): "None", ("topic", ENABLE): "true"}, "Aggressive"),
        ({}, {("topic", STRATEGY): "Balanced", ("topic", ENABLE): "true"}, "Balanced"),
        ({}, {("topic", STRATEGY): "Aggressive", ("node", ENABLE): "false"}, "Aggressive"),
    ],
)
def test_the_nearest_place_decides_and_there_the_strategy(
    static: dict[str, str], dynamic: dict[tuple[str, str], str], strategy: str
) -> None:
    image = MetadataImage()
    for offset, ((place, name), value) in enumerate(dynamic.items()):
        resource, resource_name = PLACES[place]
        record = records.ConfigRecord(resource=resource, resource_name=resource_name, name=name, value=value)
        image.replay(record, offset=MetadataOffset(offset))

    found = recovery_strategy(image, topic="orders", node_id=NodeId(100), static=node_properties(static))

    assert found is RecoveryStrategy(strategy)


def test_every_place_that_gives_the_strategy_a_value_is_listed_and_balanced_stands_behind_them() -> None:
    topic, node, unset = (
        admin_messages.ConfigSource.DYNAMIC_TOPIC_CONFIG,
        admin_messages.ConfigSource.DYNAMIC_BROKER_CONFIG,
        admin_messages.ConfigSource.DEFAULT_CONFIG,
    )
    own = [
        ConfigValue(name=STRATEGY, value="None", source=node),
        ConfigValue(name=STRATEGY, value=None, source=unset),
    ]
    older = [
        ConfigValue(name=ENABLE, value="true", source=topic),
        ConfigValue(name=ENABLE, value="false", source=admin_messages.ConfigSource.STATIC_BROKER_CONFIG),
        ConfigValue(name=ENABLE, value="false", source=unset),
    ]

    assert strategy_values(own, older) == [
        ConfigValue(name=ENABLE, value="Aggressive", source=topic),
        ConfigValue(name=STRATEGY, value="None", source=node),
        ConfigValue(name=ENABLE, value="Balanced", source=admin_messages.ConfigSource.STATIC_BROKER_CONFIG),
        ConfigValue(name=STRATEGY, value="Balanced", source=unset),
    ]
    without_a_value = [ConfigValue(name=ENABLE, value=None, source=topic)]
    assert strategy_values(own, without_a_value) == strategy_values(own, [])
