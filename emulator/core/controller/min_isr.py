"""Min ISR as the controller resolves it, with its own node in the place of a broker's.

The effective min ISR is capped by the replicas of the partition (KIP-966), as brokers do. Kafka's controller takes the
replicas of *partition 0* for every partition of the topic (``ReplicationControlManager.getTopicEffectiveMinIsr``),
which switch ``min_isr_per_partition`` mends (S42).
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from laststand.emulator.core.effective_config import DynamicConfig, dynamic_topic_value
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import BrokerId, NodeId

MIN_ISR: Final = "min.insync.replicas"
"""The property that ELR and high watermark depend on."""


class MinIsr(msgspec.Struct, frozen=True, kw_only=True):
    """The min ISR of a topic's partitions.

    Attributes:
        configured: ``min.insync.replicas`` of the topic.
        partition0_replicas: replica count of partition 0, which caps it for every partition, as in Kafka; ``None``
            where each partition's own count does.
    """

    configured: int
    partition0_replicas: int | None = None

    def effective(self, replicas: Sequence[BrokerId]) -> int:
        """Returns the min ISR of a partition with these replicas, those that are being added or removed included."""
        cap = len(replicas) if self.partition0_replicas is None else self.partition0_replicas
        return min(self.configured, cap)


def configured_min_isr(image: DynamicConfig, *, topic: str, node_id: NodeId, static: NodeProperties) -> int:
    """Returns ``min.insync.replicas`` of a topic, which need not exist yet."""
    value = dynamic_topic_value(image, MIN_ISR, topic=topic, node_id=node_id)
    return static.min_insync_replicas if value is None else int(value)
