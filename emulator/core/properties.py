"""Configuration with Kafka's property names and defaults, parsed once.

A property file or a scenario gives text; ``NodeProperties`` and ``TopicProperties`` are what the rest of the program
reads. One table names every property that exists: anything else is an error. Effective values follow Kafka's order,
topic over cluster over node.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from emulator.core.errors import ConfigError

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1


class NodeProperties(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of one node. Field names are Kafka's with dots turned to underscores; times are ms, sizes bytes.

    In ``broker.rack``, ``{node}`` stands for the broker's id. Two are ours: ``leader.recovery.min.ms``, how long a
    leader's recovery step takes at least (KIP-704), so that it is seen, and ``stray.delete.delay.ms``, the grace of
    logs that do not belong here any more (KIP-550).
    """

    broker_heartbeat_interval_ms: int = 2000
    broker_session_timeout_ms: int = 9000
    initial_broker_registration_timeout_ms: int = 60_000
    controlled_shutdown_enable: bool = True
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    unclean_recovery_strategy: str | None = None
    unclean_recovery_manager_enabled: bool = False
    unclean_recovery_timeout_ms: int = 300_000
    default_replication_factor: int = 1
    num_partitions: int = 1
    replica_lag_time_max_ms: int = 30_000
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_min_bytes: int = 1
    replica_fetch_max_bytes: int = 1 << 20
    replica_fetch_response_max_bytes: int = 10 << 20
    replica_fetch_backoff_ms: int = 1000
    replica_high_watermark_checkpoint_interval_ms: int = 5000
    replica_socket_timeout_ms: int = 30_000
    log_flush_interval_messages: int = _LONG_MAX
    log_flush_interval_ms: int | None = None
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_segment_bytes: int = 1 << 30
    log_index_interval_bytes: int = 4096
    log_segment_delete_delay_ms: int = 60_000
    log_retention_bytes: int = -1
    log_retention_ms: int = 7 * 24 * 3600 * 1000
    log_retention_check_interval_ms: int = 300_000
    message_max_bytes: int = 1_048_588
    producer_id_expiration_ms: int = 24 * 3600 * 1000
    leader_recovery_min_ms: int = 0
    stray_delete_delay_ms: int = 60_000
    broker_rack: str = ""
    replica_selector_class: str = ""
    max_request_partition_size_limit: int = 2000
    leader_imbalance_check_interval_seconds: int = 300
    auto_leader_rebalance_enable: bool = True
    unclean_leader_election_interval_ms: int = 300_000
    metadata_version: str = "4.2"


class TopicProperties(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of one topic, every default resolved."""

    min_insync_replicas: int
    unclean_leader_election_enable: bool
    unclean_recovery_strategy: str | None
    flush_messages: int
    flush_ms: int | None
    segment_bytes: int
    retention_bytes: int
    retention_ms: int
    max_message_bytes: int
    cleanup_policy: str


class _Kind(msgspec.Struct, frozen=True):
    parse: Callable[[str], int | bool | str]
    expected: str


def _integer(low: int, high: int) -> _Kind:
    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    span = f"an integer from {low} on" if high >= _INT_MAX else f"an integer from {low} to {high}"
    return _Kind(parse, span)


def _choice(*allowed: str) -> _Kind:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(text)
        return text

    return _Kind(parse, "one of " + ", ".join(allowed))


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_POSITIVE: Final = _integer(1, _LONG_MAX)
_NATURAL: Final = _integer(0, _LONG_MAX)
_UNLIMITED: Final = _integer(-1, _LONG_MAX)
_FLAG: Final = _Kind(_boolean, "true or false")
_STRATEGY: Final = _choice("None", "Balanced", "Aggressive")
_TEXT: Final = _Kind(str, "text")

_NODE_KINDS: Final[Mapping[str, _Kind]] = {
    "broker.heartbeat.interval.ms": _POSITIVE,
    "broker.session.timeout.ms": _POSITIVE,
    "initial.broker.registration.timeout.ms": _POSITIVE,
    "controlled.shutdown.enable": _FLAG,
    "min.insync.replicas": _POSITIVE,
    "unclean.leader.election.enable": _FLAG,
    "unclean.recovery.strategy": _STRATEGY,
    "unclean.recovery.manager.enabled": _FLAG,
    "unclean.recovery.timeout.ms": _POSITIVE,
    "default.replication.factor": _POSITIVE,
    "num.partitions": _POSITIVE,
    "replica.lag.time.max.ms": _POSITIVE,
    "replica.fetch.wait.max.ms": _NATURAL,
    "replica.fetch.min.bytes": _NATURAL,
    "replica.fetch.max.bytes": _NATURAL,
    "replica.fetch.response.max.bytes": _NATURAL,
    "replica.fetch.backoff.ms": _NATURAL,
    "replica.high.watermark.checkpoint.interval.ms": _POSITIVE,
    "replica.socket.timeout.ms": _POSITIVE,
    "log.flush.interval.messages": _POSITIVE,
    "log.flush.interval.ms": _NATURAL,
    "log.flush.offset.checkpoint.interval.ms": _POSITIVE,
    "log.segment.bytes": _integer(1024, _INT_MAX),
    "log.index.interval.bytes": _NATURAL,
    "log.segment.delete.delay.ms": _NATURAL,
    "log.retention.bytes": _UNLIMITED,
    "log.retention.ms": _UNLIMITED,
    "log.retention.check.interval.ms": _POSITIVE,
    "message.max.bytes": _NATURAL,
    "producer.id.expiration.ms": _POSITIVE,
    "leader.recovery.min.ms": _NATURAL,
    "stray.delete.delay.ms": _NATURAL,
    "broker.rack": _TEXT,
    "replica.selector.class": _choice(
        "",
        "org.apache.kafka.common.replica.LeaderSelector",
        "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    ),
    "max.request.partition.size.limit": _POSITIVE,
    "leader.imbalance.check.interval.seconds": _POSITIVE,
    "auto.leader.rebalance.enable": _FLAG,
    "unclean.leader.election.interval.ms": _POSITIVE,
    "metadata.version": _TEXT,
}

_TOPIC_KINDS: Final[Mapping[str, _Kind]] = {
    "min.insync.replicas": _POSITIVE,
    "unclean.leader.election.enable": _FLAG,
    "unclean.recovery.strategy": _STRATEGY,
    "flush.messages": _POSITIVE,
    "flush.ms": _NATURAL,
    "segment.bytes": _integer(1024, _INT_MAX),
    "retention.bytes": _UNLIMITED,
    "retention.ms": _UNLIMITED,
    "max.message.bytes": _NATURAL,
    "cleanup.policy": _choice("delete", "compact", "compact,delete", "delete,compact"),
}


def field_name(property_name: str) -> str:
    """Returns the field that holds a property: ``min.insync.replicas`` becomes ``min_insync_replicas``."""
    return property_name.replace(".", "_")


def is_node_property(name: str) -> bool:
    """Whether a node knows a property of that name."""
    return name in _NODE_KINDS


def is_topic_property(name: str) -> bool:
    """Whether a topic knows a property of that name."""
    return name in _TOPIC_KINDS


def _parse(kinds: Mapping[str, _Kind], given: Mapping[str, str]) -> dict[str, int | bool | str]:
    fields: dict[str, int | bool | str] = {}
    for name, text in given.items():
        if name not in kinds:
            raise ConfigError(key=name, value=None, expected="one of " + ", ".join(sorted(kinds)))
        try:
            fields[field_name(name)] = kinds[name].parse(str(text).strip())
        except (ValueError, KeyError):
            raise ConfigError(key=name, value=str(text), expected=kinds[name].expected) from None
    return fields


def node_properties(given: Mapping[str, str]) -> NodeProperties:
    """Returns a node's properties: Kafka's defaults with ``given`` on top, keyed by Kafka's names.

    Raises:
        ConfigError: unknown name, or a value out of range.
    """
    return msgspec.structs.replace(NodeProperties(), **_parse(_NODE_KINDS, given))


def property_texts(properties: NodeProperties) -> dict[str, str]:
    """Returns a node's properties by Kafka's names, as they would be written; those that are not set are left out."""
    texts = {}
    for field, value in msgspec.structs.asdict(properties).items():
        if value is not None:
            texts[field.replace("_", ".")] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def check_topic_properties(given: Mapping[str, str]) -> None:
    """Checks names and values of properties set on a topic.

    Raises:
        ConfigError: unknown name, or a value out of range.
    """
    _parse(_TOPIC_KINDS, given)


def topic_properties(node: NodeProperties, given: Mapping[str, str]) -> TopicProperties:
    """Returns a topic's properties: the node's with ``given`` (set on the topic, or on the cluster) on top.

    Raises:
        ConfigError: unknown name, or a value out of range.
    """
    defaults = TopicProperties(
        min_insync_replicas=node.min_insync_replicas,
        unclean_leader_election_enable=node.unclean_leader_election_enable,
        unclean_recovery_strategy=node.unclean_recovery_strategy,
        flush_messages=node.log_flush_interval_messages,
        flush_ms=node.log_flush_interval_ms,
        segment_bytes=node.log_segment_bytes,
        retention_bytes=node.log_retention_bytes,
        retention_ms=node.log_retention_ms,
        max_message_bytes=node.message_max_bytes,
        cleanup_policy="delete",
    )
    return msgspec.structs.replace(defaults, **_parse(_TOPIC_KINDS, given))
