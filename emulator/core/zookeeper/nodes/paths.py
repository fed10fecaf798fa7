"""The paths of Kafka's nodes."""

from typing import Final

from laststand.emulator.core.types import BrokerId, TopicPartition

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
CLUSTER_ID: Final = "/cluster/id"
DELETE_TOPICS: Final = "/admin/delete_topics"
ISR_CHANGE_NOTIFICATIONS: Final = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATIONS: Final = "/log_dir_event_notification"
CONFIG_CHANGES: Final = "/config/changes"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
PRODUCER_IDS: Final = "/latest_producer_id_block"

PERSISTENT_PATHS: Final = (
    "/cluster",
    "/brokers",
    BROKER_IDS,
    TOPICS,
    "/admin",
    DELETE_TOPICS,
    ISR_CHANGE_NOTIFICATIONS,
    LOG_DIR_EVENT_NOTIFICATIONS,
    PRODUCER_IDS,
    "/config",
    CONFIG_CHANGES,
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
)
"""Nodes that every broker makes at start where they are missing, parents first."""

ISR_CHANGE_PREFIX: Final = "isr_change_"
LOG_DIR_EVENT_PREFIX: Final = "log_dir_event_"


def broker_node(broker_id: BrokerId) -> str:
    """Returns where a broker registers."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_node(topic: str) -> str:
    """Returns where a topic's assignment is."""
    return f"{TOPICS}/{topic}"


def partitions_node(topic: str) -> str:
    """Returns the parent of a topic's partitions."""
    return f"{TOPICS}/{topic}/partitions"


def partition_node(name: TopicPartition) -> str:
    """Returns the parent of a partition's state."""
    return f"{partitions_node(name.topic)}/{name.partition}"


def state_node(name: TopicPartition) -> str:
    """Returns where a partition's leader and ISR are; the node's version is the partition epoch."""
    return f"{partition_node(name)}/state"


def topic_config_node(topic: str) -> str:
    """Returns where a topic's configuration is."""
    return f"{TOPIC_CONFIGS}/{topic}"


def broker_config_node(entity: str) -> str:
    """Returns where a broker's configuration is; ``<default>`` is for all brokers."""
    return f"{BROKER_CONFIGS}/{entity}"


def delete_topic_node(topic: str) -> str:
    """Returns where a topic's deletion is asked for."""
    return f"{DELETE_TOPICS}/{topic}"


def partition_of_state_node(path: str) -> TopicPartition | None:
    """Returns the partition of a state node; ``None`` for any other node."""
    parts = path.split("/")
    if not path.startswith(f"{TOPICS}/") or parts[4:5] != ["partitions"] or parts[6:] != ["state"]:
        return None
    return TopicPartition(parts[3], int(parts[5]))


def topic_of_node(path: str) -> str | None:
    """Returns the topic of an assignment node; ``None`` for any other node."""
    topic = path.removeprefix(f"{TOPICS}/")
    return None if topic == path or "/" in topic else topic


def topic_of_config_node(path: str) -> str | None:
    """Returns the topic of a configuration node; ``None`` for any other node."""
    topic = path.removeprefix(f"{TOPIC_CONFIGS}/")
    return None if topic == path else topic
