"""Configuration with Kafka's property names and defaults, parsed once.

A property file or a scenario gives text; ``NodeProperties`` and ``TopicProperties`` are what the rest of the program
reads. Their fields are the known properties, and the type of a field is the range of its property. Effective
values follow Kafka's order, topic over cluster over node.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.property_text import (
    INT_MAX,
    LONG_MAX,
    Natural,
    Positive,
    PropertyReader,
    Unlimited,
    dotted,
)

_SegmentBytes: TypeAlias = Annotated[int, msgspec.Meta(ge=1024, le=INT_MAX)]
_SegmentIndexBytes: TypeAlias = Annotated[int, msgspec.Meta(ge=4, le=INT_MAX)]
_LocalRetention: TypeAlias = Annotated[int, msgspec.Meta(ge=-2, le=LONG_MAX)]
_GzipLevel: TypeAlias = Annotated[int, msgspec.Meta(ge=-1, le=9)]
_Lz4Level: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=17)]
_ZstdLevel: TypeAlias = Annotated[int, msgspec.Meta(ge=-131_072, le=22)]
_Ratio: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
_ThrottledReplicas: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(\*|(\d+:\d+(,\d+:\d+)*)?)$")]
_Strategy: TypeAlias = Literal["None", "Balanced", "Aggressive"]
_CleanupPolicy: TypeAlias = Literal["delete", "compact", "compact,delete", "delete,compact", ""]
_TimestampType: TypeAlias = Literal["CreateTime", "LogAppendTime"]
_CompressionType: TypeAlias = Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_Authorizer: TypeAlias = Literal["", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"]
_SecurityProtocolMap: TypeAlias = Literal["KAFKA:PLAINTEXT", "KAFKA:SASL_PLAINTEXT", "KAFKA:SSL", "KAFKA:SASL_SSL"]
_InterBrokerProtocol: TypeAlias = Literal["PLAINTEXT", "SSL"]
_ClientAuth: TypeAlias = Literal["none", "requested", "required"]
_ReplicaSelector: TypeAlias = Literal[
    "",
    "org.apache.kafka.common.replica.LeaderSelector",
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
]


SASL_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_USER: Final = re.compile(r'user_(\S+?)="([^"]*)"')
_SECRET: Final = frozenset({"sasl_jaas_config"})
TLS_BETWEEN_NODES: Final[Mapping[str, str]] = MappingProxyType({"security.inter.broker.protocol": "SSL"})
"""Properties of nodes that use TLS between each other."""

TLS_PROPERTIES: Final[Mapping[str, str]] = MappingProxyType(
    {**TLS_BETWEEN_NODES, "listener.security.protocol.map": "KAFKA:SSL", "ssl.client.auth": "required"}
)
"""Properties of nodes that use TLS between each other and with Kafka clients, and require client certificates."""

HIDDEN: Final = "[hidden]"
"""Shown in place of a password."""


class NodeProperties(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of one node. Field names are Kafka's with dots turned to underscores; times are ms, sizes bytes.

    In ``broker.rack``, ``{node}`` stands for the broker's id; a list of racks, separated by commas, is dealt out to the
    brokers in turn. Four properties are not Kafka's: ``leader.recovery.min.ms``, the minimum duration of a leader's
    recovery step (KIP-704), so that the step can be observed; ``stray.delete.delay.ms``, the grace period of stray logs
    (KIP-550); ``alter.partition.retry.backoff.ms``, a constant in Kafka; and ``unclean.recovery.retry.backoff.ms``, the
    wait before the controller asks a replica again that did not answer.
    """

    broker_heartbeat_interval_ms: Positive = 2000
    broker_session_timeout_ms: Positive = 9000
    initial_broker_registration_timeout_ms: Positive = 60_000
    controller_quorum_election_timeout_ms: Positive = 1000
    controller_quorum_fetch_timeout_ms: Positive = 2000
    controller_quorum_election_backoff_max_ms: Positive = 1000
    controller_quorum_append_linger_ms: Natural = 25
    controller_quorum_request_timeout_ms: Positive = 2000
    controller_quorum_retry_backoff_ms: Natural = 20
    controlled_shutdown_enable: bool = True
    controlled_shutdown_retry_backoff_ms: Natural = 5000
    min_insync_replicas: Positive = 1
    unclean_leader_election_enable: bool = False
    unclean_recovery_strategy: _Strategy | None = None
    unclean_recovery_manager_enabled: bool = False
    unclean_recovery_timeout_ms: Positive = 300_000
    unclean_recovery_retry_backoff_ms: Positive = 100
    alter_partition_retry_backoff_ms: Positive = 50
    default_replication_factor: Positive = 1
    num_partitions: Positive = 1
    replica_lag_time_max_ms: Positive = 30_000
    replica_fetch_wait_max_ms: Natural = 500
    replica_fetch_min_bytes: Natural = 1
    replica_fetch_max_bytes: Natural = 1 << 20
    replica_fetch_response_max_bytes: Natural = 10 << 20
    replica_fetch_backoff_ms: Natural = 1000
    leader_replication_throttled_rate: Natural = LONG_MAX
    follower_replication_throttled_rate: Natural = LONG_MAX
    replica_high_watermark_checkpoint_interval_ms: Positive = 5000
    replica_socket_timeout_ms: Positive = 30_000
    log_flush_interval_messages: Positive = LONG_MAX
    log_flush_interval_ms: Natural | None = None
    log_flush_offset_checkpoint_interval_ms: Positive = 60_000
    log_segment_bytes: _SegmentBytes = 1 << 30
    log_index_interval_bytes: Natural = 4096
    log_segment_delete_delay_ms: Natural = 60_000
    log_retention_bytes: Unlimited = -1
    log_retention_ms: Unlimited = 7 * 24 * 3600 * 1000
    log_retention_check_interval_ms: Positive = 300_000
    log_cleanup_policy: _CleanupPolicy = "delete"
    message_max_bytes: Natural = 1_048_588
    log_message_timestamp_type: _TimestampType = "CreateTime"
    log_message_timestamp_before_max_ms: Natural = LONG_MAX
    log_message_timestamp_after_max_ms: Natural = 3_600_000
    compression_type: _CompressionType = "producer"
    offsets_topic_num_partitions: Positive = 3
    offsets_topic_replication_factor: Positive = 3
    offsets_commit_timeout_ms: Positive = 5000
    offset_metadata_max_bytes: Natural = 4096
    offsets_retention_minutes: Positive = 7 * 24 * 60
    offsets_retention_check_interval_ms: Positive = 600_000
    transaction_state_log_num_partitions: Positive = 3
    transaction_state_log_replication_factor: Positive = 3
    transaction_state_log_min_isr: Positive = 2
    transaction_max_timeout_ms: Positive = 900_000
    transactional_id_expiration_ms: Positive = 7 * 24 * 3600 * 1000
    request_timeout_ms: Positive = 30_000
    group_min_session_timeout_ms: Positive = 6000
    group_max_session_timeout_ms: Positive = 1_800_000
    group_initial_rebalance_delay_ms: Natural = 3000
    group_max_size: Positive = INT_MAX
    producer_id_expiration_ms: Positive = 24 * 3600 * 1000
    leader_recovery_min_ms: Natural = 0
    stray_delete_delay_ms: Natural = 60_000
    broker_rack: str = ""
    replica_selector_class: _ReplicaSelector = ""
    max_request_partition_size_limit: Positive = 2000
    socket_request_max_bytes: Positive = 100 << 20
    connections_max_idle_ms: Positive = 600_000
    max_connections: Natural = INT_MAX
    leader_imbalance_check_interval_seconds: Positive = 300
    auto_leader_rebalance_enable: bool = True
    unclean_leader_election_interval_ms: Positive = 300_000
    metadata_version: str = "4.2"
    authorizer_class_name: _Authorizer = ""
    super_users: str = ""
    allow_everyone_if_no_acl_found: bool = False
    security_inter_broker_protocol: _InterBrokerProtocol = "PLAINTEXT"
    listener_security_protocol_map: _SecurityProtocolMap = "KAFKA:PLAINTEXT"
    sasl_enabled_mechanisms: str = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
    sasl_jaas_config: str = ""
    ssl_keystore_location: str = ""
    ssl_truststore_location: str = ""
    ssl_client_auth: _ClientAuth = "none"
    ssl_principal_mapping_rules: str = "DEFAULT"

    @property
    def has_sasl(self) -> bool:
        """True if Kafka clients have to authenticate by SASL."""
        return "SASL_" in self.listener_security_protocol_map

    @property
    def has_tls_between_nodes(self) -> bool:
        """True if nodes use TLS between each other, with certificates on both sides."""
        return self.security_inter_broker_protocol == "SSL"

    @property
    def has_tls(self) -> bool:
        """True if Kafka clients use TLS."""
        return self.listener_security_protocol_map.endswith("SSL")

    @property
    def sasl_mechanisms(self) -> tuple[str, ...]:
        """The SASL mechanisms that are enabled."""
        return tuple(map(str.strip, self.sasl_enabled_mechanisms.split(",")))

    @property
    def sasl_users(self) -> dict[str, str]:
        """Passwords by user."""
        return dict(_USER.findall(self.sasl_jaas_config))


class TopicProperties(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of one topic, every default resolved.

    The properties of timestamps and compression apply to batches that Kafka's own clients send (``kafka_listener``).
    """

    min_insync_replicas: Positive
    unclean_leader_election_enable: bool
    unclean_recovery_strategy: _Strategy | None
    flush_messages: Positive
    flush_ms: Natural | None
    segment_bytes: _SegmentBytes
    index_interval_bytes: Natural
    retention_bytes: Unlimited
    retention_ms: Unlimited
    max_message_bytes: Natural
    cleanup_policy: _CleanupPolicy
    message_timestamp_type: _TimestampType
    message_timestamp_before_max_ms: Natural
    message_timestamp_after_max_ms: Natural
    compression_type: _CompressionType
    leader_replication_throttled_replicas: _ThrottledReplicas = ""
    follower_replication_throttled_replicas: _ThrottledReplicas = ""


class StoredTopicProperties(msgspec.Struct, frozen=True, kw_only=True):
    """Topic properties that are stored and described as in Kafka, but have no effect in the emulator."""

    compression_gzip_level: _GzipLevel = -1
    compression_lz4_level: _Lz4Level = 9
    compression_zstd_level: _ZstdLevel = 3
    delete_retention_ms: Natural = 86_400_000
    file_delete_delay_ms: Natural = 60_000
    local_retention_bytes: _LocalRetention = -2
    local_retention_ms: _LocalRetention = -2
    max_compaction_lag_ms: Positive = LONG_MAX
    min_cleanable_dirty_ratio: _Ratio = 0.5
    min_compaction_lag_ms: Natural = 0
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: Literal["false"] = "false"
    segment_index_bytes: _SegmentIndexBytes = 10 << 20
    segment_jitter_ms: Natural = 0
    segment_ms: Positive = 7 * 24 * 3600 * 1000


_NODE: Final = PropertyReader(NodeProperties, dotted(*NodeProperties.__struct_fields__))
_TOPIC: Final = PropertyReader(TopicProperties, dotted(*TopicProperties.__struct_fields__))
_STORED: Final = PropertyReader(StoredTopicProperties, dotted(*StoredTopicProperties.__struct_fields__))


def field_name(property_name: str) -> str:
    """Returns the field that holds a property: ``min.insync.replicas`` becomes ``min_insync_replicas``."""
    return property_name.replace(".", "_")


def node_property_names() -> tuple[str, ...]:
    """Returns the names of all node properties."""
    return tuple(_NODE.fields)


def is_node_property(name: str) -> bool:
    """Returns whether ``name`` is a node property."""
    return name in _NODE.fields


def node_properties(given: Mapping[str, str]) -> NodeProperties:
    """Returns a node's properties: Kafka's defaults with ``given`` on top, keyed by Kafka's names.

    Raises:
        ConfigError: unknown name, or a value out of range.
    """
    properties = msgspec.structs.replace(NodeProperties(), **_NODE.read(given))
    unknown = next((each for each in properties.sasl_mechanisms if each not in SASL_MECHANISMS), None)
    if unknown is not None:
        expected = f"some of {', '.join(SASL_MECHANISMS)}"
        raise ConfigError(key="sasl.enabled.mechanisms", value=unknown, expected=expected)
    return properties


def property_texts(properties: NodeProperties | StoredTopicProperties) -> dict[str, str]:
    """Returns properties as texts by Kafka's names; unset properties are left out.

    Passwords are hidden, as Kafka's ``Password`` is.
    """
    texts = {}
    for field, value in msgspec.structs.asdict(properties).items():
        if value and field in _SECRET:
            texts[field.replace("_", ".")] = HIDDEN
        elif value is not None:
            texts[field.replace("_", ".")] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def check_topic_properties(given: Mapping[str, str]) -> None:
    """Checks names and values of properties set on a topic.

    Raises:
        ConfigError: unknown name, or a value out of range.
    """
    stored = {name: text for name, text in given.items() if name in _STORED.fields}
    _STORED.read(stored)
    _TOPIC.read({name: text for name, text in given.items() if name not in stored})


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
        index_interval_bytes=node.log_index_interval_bytes,
        retention_bytes=node.log_retention_bytes,
        retention_ms=node.log_retention_ms,
        max_message_bytes=node.message_max_bytes,
        cleanup_policy=node.log_cleanup_policy,
        message_timestamp_type=node.log_message_timestamp_type,
        message_timestamp_before_max_ms=node.log_message_timestamp_before_max_ms,
        message_timestamp_after_max_ms=node.log_message_timestamp_after_max_ms,
        compression_type=node.compression_type,
    )
    return msgspec.structs.replace(defaults, **_TOPIC.read(given))
