"""What a decision may look at: the image as replayed so far, the node's properties and the switches.

Every decision module gets a ``ClusterView`` and returns records; none changes anything. ``change_partition`` is the one
way into the pipeline, so that min ISR, features and switches enter it in one place.
"""

from collections.abc import Iterator

from emulator.core.controller import min_isr
from emulator.core.controller.decision import ChangeReason, Decision, PartitionCause
from emulator.core.controller.features import is_elr_enabled
from emulator.core.controller.partition_change import PartitionRules, PartitionTarget, next_partition_change
from emulator.core.image import MetadataImage, PartitionState
from emulator.core.metadata_version import METADATA_VERSION
from emulator.core.properties import NodeProperties
from emulator.core.switches import Switches
from emulator.core.types import BrokerId, ElectionType, NodeId, TopicPartition


class ClusterView:
    """Read access to everything durable that a decision depends on; always the latest replayed state.

    Attributes:
        image: the fold of all records, durable or not yet.
        properties: static configuration of the controller's node.
        switches: which rules hold.
        node_id: the controller's node.
    """

    def __init__(
        self, *, image: MetadataImage, properties: NodeProperties, switches: Switches, node_id: NodeId
    ) -> None:
        self.image = image
        self.properties = properties
        self.switches = switches
        self.node_id = node_id

    def partition_rules(self) -> PartitionRules:
        """Returns what the change pipeline depends on."""
        return PartitionRules(
            metadata_level=self.image.feature_level(METADATA_VERSION),
            elr_enabled=is_elr_enabled(self.image, self.switches),
            last_known=self.switches.last_known,
        )

    def configured_min_isr(self, topic: str) -> int:
        """Returns ``min.insync.replicas`` as configured for a topic."""
        return min_isr.configured_min_isr(self.image, topic=topic, node_id=self.node_id, static=self.properties)

    def effective_min_isr(self, topic: str) -> int:
        """Returns the min ISR that decisions on a topic's partitions use."""
        return min_isr.effective_min_isr(
            configured=self.configured_min_isr(topic),
            partition0_replicas=len(self.image.partitions[TopicPartition(topic, 0)].replicas),
        )

    def is_unclean_election_enabled(self, topic: str) -> bool:
        """Whether a topic prefers an unclean leader to none."""
        return min_isr.is_unclean_election_enabled(
            self.image, topic=topic, node_id=self.node_id, static=self.properties
        )

    def election_type(self, topic: str) -> ElectionType:
        """Returns how fencing and its like elect leaders for a topic."""
        return ElectionType.UNCLEAN if self.is_unclean_election_enabled(topic) else ElectionType.ONLINE

    def active_brokers(self) -> frozenset[BrokerId]:
        """Returns the brokers that may lead and may join an ISR."""
        return frozenset(broker.broker_id for broker in self.image.brokers.values() if broker.is_active)

    def partitions_in_isr_of(self, broker_id: BrokerId) -> Iterator[tuple[TopicPartition, PartitionState]]:
        """Yields the partitions that have the broker in their ISR."""
        for partition, state in self.image.partitions.items():
            if broker_id in state.isr:
                yield partition, state

    def partitions_in_elr_of(self, broker_id: BrokerId) -> Iterator[tuple[TopicPartition, PartitionState]]:
        """Yields the partitions that have the broker in their ELR."""
        for partition, state in self.image.partitions.items():
            if broker_id in state.elr:
                yield partition, state

    def leaderless_partitions(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        """Yields the partitions without a leader."""
        for partition, state in self.image.partitions.items():
            if state.leader is None:
                yield partition, state

    def leads_any(self, broker_id: BrokerId) -> bool:
        """Whether the broker leads a partition."""
        return any(state.leader == broker_id for state in self.image.partitions.values())

    def change_partition(
        self,
        partition: TopicPartition,
        target: PartitionTarget,
        *,
        reason: ChangeReason,
        broker_id: BrokerId | None,
    ) -> list[Decision]:
        """Returns the record that takes the partition to its target, or nothing if it is there."""
        effective_min_isr = self.effective_min_isr(partition.topic)
        change = next_partition_change(
            self.image.partitions[partition],
            target,
            partition=partition.partition,
            rules=self.partition_rules(),
            effective_min_isr=effective_min_isr,
        )
        if change is None:
            return []
        cause = PartitionCause(
            reason=reason, election=change.election, broker_id=broker_id, effective_min_isr=effective_min_isr
        )
        return [Decision(record=change.record, cause=cause)]
