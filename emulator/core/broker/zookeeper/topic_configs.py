"""Configurations of topics, as a ZooKeeper broker has read them (``LogManager.fetchLogConfig``).

A broker reads a topic's node before it first takes a role in a partition of it, and again when the node changes.
"""

from collections.abc import Collection, Mapping

from laststand.emulator.core.types import ConfigResource
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_config


class TopicConfigs:
    """The properties that are set on topics, besides the node's own."""

    def __init__(self) -> None:
        self._configs: dict[str, Mapping[str, str]] = {}

    def config(self, resource: ConfigResource, resource_name: str, name: str) -> str | None:
        """Returns a value as it was set on a topic, or ``None``."""
        return self._configs.get(resource_name, {}).get(name) if resource is ConfigResource.TOPIC else None

    def store(self, topic: str, config: Mapping[str, str]) -> None:
        """Stores a topic's configuration."""
        self._configs[topic] = config

    def retain(self, topics: Collection[str]) -> None:
        """Removes all other topics: if one is created again, its new configuration is not watched yet."""
        self._configs = {topic: config for topic, config in self._configs.items() if topic in topics}

    def is_known(self, topic: str) -> bool:
        """Returns whether a topic's node was read."""
        return topic in self._configs


def read_topic_config(topic: str) -> operations.Program[dict[str, str]]:
    """Reads a topic's configuration and watches it; returns no properties if there is no node."""
    (answer,) = yield (operations.GetData(path=paths.topic_config_node(topic), is_watched=True),)
    return decode_config(answer.data) if isinstance(answer, operations.DataRead) else {}
