import pytest

from laststand.emulator.core.client.settings import (
    ConsumerSettings,
    ProducerSettings,
    consumer_settings,
    producer_settings,
)
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.properties import (
    NodeProperties,
    check_topic_properties,
    field_name,
    is_node_property,
    node_properties,
    topic_properties,
)
from laststand.emulator.core.types import Acks


def test_kafkas_defaults_hold_where_nothing_is_given() -> None:
    properties = node_properties({})

    assert properties.replica_lag_time_max_ms == 30_000
    assert properties.broker_session_timeout_ms == 9000
    assert properties.broker_heartbeat_interval_ms == 2000
    assert properties.min_insync_replicas == 1
    assert properties.log_flush_interval_ms is None


def test_the_defaults_of_kip_966_hold_where_nothing_is_given() -> None:
    properties = node_properties({})
    assert not properties.unclean_recovery_manager_enabled
    assert properties.unclean_recovery_timeout_ms == 5 * 60 * 1000


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


def test_properties_that_are_only_stored_are_checked() -> None:
    check_topic_properties({"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.1", "min.insync.replicas": "2"})
    check_topic_properties({"leader.replication.throttled.replicas": "0:1,1:2", "preallocate": "true"})
    for name, value in (("segment.ms", "0"), ("leader.replication.throttled.replicas", "all"), ("no.such", "1")):
        with pytest.raises(ConfigError, match=name):
            check_topic_properties({name: value})


def test_every_field_is_a_property() -> None:
    assert all(is_node_property(field.replace("_", ".")) for field in NodeProperties.__struct_fields__)
    assert field_name("min.insync.replicas") == "min_insync_replicas"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("min.insync.replicas", "0", "an integer from 1 on"),
        ("log.segment.bytes", "12", "an integer from 1024 on"),
        ("auto.leader.rebalance.enable", "perhaps", "true or false"),
        ("unclean.recovery.strategy", "null", "one of None, Balanced, Aggressive"),
        ("log.flush.interval.ms", "null", "an integer from 0 on"),
    ],
)
def test_an_error_says_what_is_expected(name: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        node_properties({name: value})

    assert caught.value.expected == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max.in.flight.requests.per.connection", "6", "an integer from 1 to 5"),
        ("enable.idempotence", "perhaps", "true or false"),
        ("request.timeout.ms", "0", "an integer from 1 on"),
        ("acks", "1", "one of delivery.timeout.ms, "),
    ],
)
def test_a_producers_properties_are_read_by_the_same_rules(name: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        producer_settings(Acks.ALL, {name: value})

    assert caught.value.expected.startswith(expected)


def test_a_producers_properties_replace_defaults() -> None:
    given = {"max.in.flight.requests.per.connection": "1", "enable.idempotence": "FALSE", "retry.backoff.ms": " 7 "}

    settings = producer_settings(Acks.ALL, given)

    assert settings == ProducerSettings(max_in_flight=1, enable_idempotence=False, retry_backoff_ms=7)


def test_a_consumers_properties_replace_defaults() -> None:
    settings = consumer_settings({"client.rack": "r1", "fetch.max.wait.ms": "0"})

    assert settings == ConsumerSettings(client_rack="r1", fetch_max_wait_ms=0)
