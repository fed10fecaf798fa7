"""The replication throttle of the leader side or the follower side (KIP-73, Kafka's ``ReplicationQuotaManager``).

All bytes of throttled replicas count; once they exceed the rate, out-of-sync replicas get no records for a while.
"""

from collections.abc import Callable
from typing import Final

from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.effective_config import dynamic_node_values
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import TopicProperties, field_name
from laststand.emulator.core.property_text import LONG_MAX
from laststand.emulator.core.rates import SimpleRate

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
_ALL: Final = "*"


class ReplicationQuota:
    """The throttle of this broker as leader, or as follower.

    Args:
        config: of the broker.
        rate: the property that limits the bytes per second.
        replicas: the topic's property that lists throttled replicas as ``partition:broker``.
    """

    def __init__(self, config: BrokerConfig, *, rate: str, replicas: Callable[[TopicProperties], str]) -> None:
        self._broker_id = config.broker_id
        self._name = rate
        self._static = int(getattr(config.properties, field_name(rate)))
        self._replicas = replicas
        self._limit = self._static
        self._rate = SimpleRate()

    def reconfigure(self, image: MetadataImage) -> None:
        """Adopts the rate in effect by the current metadata."""
        values = dynamic_node_values(image, self._name, node_id=self._broker_id)
        self._limit = int(values[0].value or self._static) if values else self._static

    @property
    def is_limited(self) -> bool:
        """A rate limits the throttled replicas."""
        return self._limit != LONG_MAX

    def record(self, partition: Partition, size: int, *, now_ms: int) -> None:
        """Counts bytes of a partition, if its replica here is throttled."""
        if self._is_throttled(partition):
            self._rate.record(size, now_ms=now_ms)

    def is_exceeded(self, partition: Partition, *, now_ms: int) -> bool:
        """Returns whether an out-of-sync replica of this partition gets no records now."""
        return self._is_throttled(partition) and self._rate.per_second(now_ms=now_ms) > self._limit

    def _is_throttled(self, partition: Partition) -> bool:
        if not self.is_limited:
            return False
        replicas = self._replicas(partition.topic_properties)
        return replicas == _ALL or f"{partition.name.partition}:{self._broker_id}" in replicas.split(",")
