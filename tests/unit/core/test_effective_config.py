"""The value of a property that counts, and how it is written (Kafka's ``DescribeConfigsResponse``)."""

import pytest

from laststand.emulator.core import admin_messages
from laststand.emulator.core.effective_config import ConfigValue, static_node_values, topic_values
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import NodeId


@pytest.mark.parametrize(
    ("name", "static", "own", "default"),
    [
        ("auto.leader.rebalance.enable", NodeProperties(auto_leader_rebalance_enable=False), "false", "true"),
        ("unclean.recovery.manager.enabled", NodeProperties(unclean_recovery_manager_enabled=True), "true", "false"),
        ("min.insync.replicas", NodeProperties(min_insync_replicas=7), "7", "1"),
        ("log.flush.interval.ms", NodeProperties(log_flush_interval_ms=5), "5", None),
    ],
)
def test_what_a_nodes_file_says_comes_before_the_default(
    name: str, static: NodeProperties, own: str, default: str | None
) -> None:
    assert static_node_values(name, static=static) == [
        ConfigValue(name=name, value=own, source=admin_messages.ConfigSource.STATIC_BROKER_CONFIG),
        ConfigValue(name=name, value=default, source=admin_messages.ConfigSource.DEFAULT_CONFIG),
    ]


def test_a_property_without_a_limit_has_no_value() -> None:
    values = topic_values(MetadataImage(), "flush.ms", topic="orders", node_id=NodeId(0), static=NodeProperties())
    assert values == [
        ConfigValue(name="log.flush.interval.ms", value=None, source=admin_messages.ConfigSource.DEFAULT_CONFIG)
    ]
