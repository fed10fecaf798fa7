"""Configuration as the controller resolves it: topic over its own node over cluster over static.

The effective min ISR is capped by the replica count of *partition 0*, for every partition of the topic
(Kafka's ``PartitionChangeBuilder``); a broker caps by its own partition's count instead.
"""

from typing import Final

from emulator.core.image import MetadataImage
from emulator.core.properties import NodeProperties
from emulator.core.records import ConfigResource
from emulator.core.types import NodeId

MIN_ISR: Final = "min.insync.replicas"
"""The property that ELR and high watermark depend on."""

UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
"""The property that allows unclean elections."""

CLUSTER: Final = ""
"""Resource name of the cluster default."""


def dynamic_config(image: MetadataImage, name: str, *, topic: str, node_id: NodeId) -> str | None:
    """Returns the value set on the topic, else on the controller's node, else on the cluster; ``None`` if nowhere."""
    places = (
        (ConfigResource.TOPIC, topic),
        (ConfigResource.BROKER, str(node_id)),
        (ConfigResource.BROKER, CLUSTER),
    )
    for resource, resource_name in places:
        value = image.config(resource, resource_name, name)
        if value is not None:
            return value
    return None


def configured_min_isr(image: MetadataImage, *, topic: str, node_id: NodeId, static: NodeProperties) -> int:
    """Returns ``min.insync.replicas`` of a topic, which need not exist yet."""
    value = dynamic_config(image, MIN_ISR, topic=topic, node_id=node_id)
    return static.min_insync_replicas if value is None else int(value)


def is_unclean_election_enabled(image: MetadataImage, *, topic: str, node_id: NodeId, static: NodeProperties) -> bool:
    """Returns ``unclean.leader.election.enable`` of a topic."""
    value = dynamic_config(image, UNCLEAN_ELECTION, topic=topic, node_id=node_id)
    return static.unclean_leader_election_enable if value is None else value.lower() == "true"


def effective_min_isr(*, configured: int, partition0_replicas: int) -> int:
    """Returns the smaller of the two (KIP-966: a topic cannot ask for more than it has)."""
    return min(configured, partition0_replicas)
