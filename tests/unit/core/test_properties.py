import pytest

from emulator.core.errors import ConfigError
from emulator.core.properties import (
    NodeProperties,
    TopicProperties,
    check_topic_properties,
    field_name,
    is_node_property,
    is_topic_property,
    node_properties,
    topic_properties,
)


def test_kafkas_defaults_hold_where_nothing_is_given() -> None:
    properties = node_properties({})

    assert properties.replica_lag_time_max_ms == 30_000
    assert properties.broker_session_timeout_ms == 9000
    assert properties.broker_heartbeat_interval_ms == 2000
    assert properties.min_insync_replicas == 1
    assert properties.log_flush_interval_ms is None


def test_given_values_replace_defaults() -> None:
    given = {"min.insync.replicas": " 2 ", "controlled.shutdown.enable": "FALSE", "log.retention.bytes": "-1"}

    properties = node_properties(given)

    assert properties.min_insync_replicas == 2
    assert properties.controlled_shutdown_enable is False
    assert properties.log_retention_bytes == -1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("min.insync.replicas", "0"),
        ("min.insync.replicas", "two"),
        ("log.segment.bytes", str(2**31)),
        ("controlled.shutdown.enable", "yes"),
        ("unclean.recovery.strategy", "Fastest"),
    ],
)
def test_a_value_out_of_range_names_the_property_and_what_it_may_be(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        node_properties({name: value})

    assert (caught.value.key, caught.value.value) == (name, value)
    assert caught.value.expected


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(ConfigError, match="min\\.insync\\.replica'") as caught:
        node_properties({"min.insync.replica": "2"})

    assert caught.value.value is None


def test_a_topics_properties_stand_over_the_nodes() -> None:
    node = node_properties({"min.insync.replicas": "2", "log.flush.interval.messages": "1"})

    topic = topic_properties(node, {"min.insync.replicas": "3"})

    assert topic.min_insync_replicas == 3
    assert topic.flush_messages == 1


def test_a_topic_does_not_know_node_properties() -> None:
    with pytest.raises(ConfigError):
        check_topic_properties({"broker.session.timeout.ms": "1"})


def test_every_field_has_a_name_in_the_table() -> None:
    def is_named(field: str, struct: type[NodeProperties] | type[TopicProperties]) -> bool:
        known = is_node_property if struct is NodeProperties else is_topic_property
        return known(field.replace("_", "."))

    unnamed = [
        field
        for struct in (NodeProperties, TopicProperties)
        for field in struct.__struct_fields__
        if not is_named(field, struct)
    ]

    assert unnamed == []
    assert field_name("min.insync.replicas") == "min_insync_replicas"
