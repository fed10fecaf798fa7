"""Min ISR as the controller resolves it, with its own node in the place of a broker's.

The effective min ISR is capped by the replica count of *partition 0*, for every partition of the topic
(Kafka's ``PartitionChangeBuilder``); a broker caps by its own partition's count instead.
"""

from typing import Final

from emulator.core.effective_config import DynamicConfig, dynamic_topic_value
from emulator.core.properties import NodeProperties
from emulator.core.types import NodeId

MIN_ISR: Final = "min.insync.replicas"
"""The property that ELR and high watermark depend on."""


def configured_min_isr(image: DynamicConfig, *, topic: str, node_id: NodeId, static: NodeProperties) -> int:
    """Returns ``min.insync.replicas`` of a topic, which need not exist yet."""
    value = dynamic_topic_value(image, MIN_ISR, topic=topic, node_id=node_id)
    return static.min_insync_replicas if value is None else int(value)


def effective_min_isr(*, configured: int, partition0_replicas: int) -> int:
    """Returns the smaller of the two (KIP-966: a topic cannot ask for more than it has)."""
    return min(configured, partition0_replicas)
