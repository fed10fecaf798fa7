"""The input of every decision: the image as replayed so far, the node's properties and the switches.

Every decision module gets a ``ClusterView`` and returns records; none changes anything. ``change_partition`` is the one
way into the pipeline, so that min ISR, features and switches enter it in one place.
"""

from collections.abc import Iterator

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.controller.decision import Decision, PartitionCause, UncleanElection
from laststand.emulator.core.controller.features import is_elr_enabled
from laststand.emulator.core.controller.min_isr import MinIsr, configured_min_isr
from laststand.emulator.core.controller.partition_change import (
    PartitionChange,
    PartitionRules,
    PartitionTarget,
    next_partition_change,
)
from laststand.emulator.core.controller.unclean_config import recovery_strategy
from laststand.emulator.core.effective_config import DynamicConfig
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.metadata_version import METADATA_VERSION
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import ClearElr, Switches, UncleanPick
from laststand.emulator.core.types import BrokerId, ChangeReason, ElectionType, NodeId, RecoveryStrategy, TopicPartition


class ClusterView:
    """Read access to everything durable that a decision depends on; always the latest replayed state.

    Attributes:
        image: the fold of all records, durable or not yet.
        properties: static configuration of the controller's node.
        switches: the rules in force.
        node_id: the controller's node.
        draw: number that picks in unclean elections; the controller's to replace. 0 before the first.
    """

    def __init__(
        self, *, image: MetadataImage, properties: NodeProperties, switches: Switches, node_id: NodeId
    ) -> None:
        self.image = image
        self.properties = properties
        self.switches = switches
        self.node_id = node_id
        self.draw = 0
        self.picks_at_random = switches.unclean_pick is UncleanPick.RANDOM

    @property
    def clear_elr(self) -> ClearElr:
        """The effect of a new min ISR on eligible leader replicas."""
        return self.switches.clear_elr_on_min_isr_change

    def partition_rules(self) -> PartitionRules:
        """Returns the rules on which the change pipeline depends."""
        return PartitionRules(
            metadata_level=self.image.feature_level(METADATA_VERSION),
            elr_enabled=is_elr_enabled(self.image, self.switches),
            last_known=self.switches.last_known,
            elr_within_replicas=self.switches.elr_within_replicas,
            reassignment_needs_all=self.switches.reassignment_needs_all,
            reassignment_requires_min_isr=self.switches.reassignment_requires_min_isr,
            clear_elr=self.clear_elr,
            downgrade_ignores_elr=self.switches.downgrade_ignores_elr,
        )

    def min_isr(self, topic: str, *, config: DynamicConfig | None = None) -> MinIsr:
        """Returns the min ISR that decisions on a topic's partitions use.

        Args:
            topic: which must exist.
            config: dynamic configuration as a change would leave it; the committed one, if ``None``.
        """
        configured = configured_min_isr(
            self.image if config is None else config, topic=topic, node_id=self.node_id, static=self.properties
        )
        if self.switches.min_isr_per_partition:
            return MinIsr(configured=configured)
        partition0 = self.image.partitions[TopicPartition(topic, 0)]
        return MinIsr(configured=configured, partition0_replicas=len(partition0.replicas))

    def effective_min_isr(self, partition: TopicPartition) -> int:
        """Returns the min ISR of a partition with the replicas that it has now."""
        return self.min_isr(partition.topic).effective(self.image.partitions[partition].replicas)

    def recovery_strategy(self, topic: str) -> RecoveryStrategy:
        """Returns the recovery strategy that a topic's configuration allows."""
        return recovery_strategy(self.image, topic=topic, node_id=self.node_id, static=self.properties)

    def is_unclean_election_enabled(self, topic: str) -> bool:
        """Returns whether a topic elects an unclean leader without comparing logs, where it would have none."""
        return self.election_type(topic) is ElectionType.UNCLEAN

    def election_type(self, topic: str) -> ElectionType:
        """Returns the kind of election for a topic after fencing and its like (KIP-966)."""
        if self.properties.unclean_recovery_manager_enabled:
            return ElectionType.CLEAN
        match self.recovery_strategy(topic):
            case RecoveryStrategy.AGGRESSIVE:
                return ElectionType.UNCLEAN
            case RecoveryStrategy.BALANCED:
                return ElectionType.ONLINE
            case RecoveryStrategy.NONE:
                return ElectionType.CLEAN

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
        """Returns whether the broker leads a partition."""
        return any(state.leader == broker_id for state in self.image.partitions.values())

    def change_partition(
        self,
        partition: TopicPartition,
        target: PartitionTarget,
        *,
        reason: ChangeReason,
        broker_id: BrokerId | None,
        unclean: UncleanElection | None = None,
        config: DynamicConfig | None = None,
    ) -> list[Decision]:
        """Returns the record that takes the partition to its target, or nothing if it is there.

        Args:
            partition: must exist.
            target: the aim of the change.
            reason: the reason of the change.
            broker_id: the broker that the reason is about.
            unclean: how the one acceptable leader was found, should electing it be unclean; ``None`` where the
                pipeline finds it.
            config: dynamic configuration as a change in the same batch leaves it; the committed one, if ``None``.
        """
        # Elections of one turn share a draw; neighbours get different ones of it.
        draw = self.draw + partition.partition if self.picks_at_random else 0
        change = next_partition_change(
            self.image.partitions[partition],
            target,
            partition=partition.partition,
            rules=msgspec.structs.replace(
                self.partition_rules(),
                draw=draw,
                is_last_known_leader_electable=self._is_last_known_leader_electable(partition.topic, target.election),
            ),
            min_isr=self.min_isr(partition.topic, config=config),
        )
        if change is None:
            return []
        if change.election is events.Election.LAST_KNOWN_LEADER:
            unclean = self._last_known_leader_election(partition)
        elif change.election is events.Election.UNCLEAN and unclean is None:
            unclean = self._blind_election(partition, change, target, draw=draw)
        cause = PartitionCause(
            reason=reason,
            election=change.election,
            broker_id=broker_id,
            effective_min_isr=change.effective_min_isr,
            unclean=unclean
            if change.election in (events.Election.UNCLEAN, events.Election.LAST_KNOWN_LEADER)
            else None,
        )
        return [Decision(record=change.record, cause=cause)]

    def _is_last_known_leader_electable(self, topic: str, election: ElectionType) -> bool:
        """Returns whether a change may elect the last known leader, whatever sets it off.

        Not while the unclean recovery manager is on, which compares logs. KIP-966, strategy None: the controller waits
        for the administrator, also where a reassignment or the search for preferred leaders would elect one; only the
        administrator's own unclean election does not wait.
        """
        if self.properties.unclean_recovery_manager_enabled:
            return False
        return election is ElectionType.UNCLEAN or self.recovery_strategy(topic) is not RecoveryStrategy.NONE

    def _last_known_leader_election(self, partition: TopicPartition) -> UncleanElection:
        last_known_leader = self.image.partitions[partition].last_known_leader
        return UncleanElection(
            method=events.UncleanMethod.LAST_KNOWN_LEADER,
            strategy=self.recovery_strategy(partition.topic),
            candidates=() if last_known_leader is None else (last_known_leader,),
            why="it led when the partition went offline, and nobody eligible is left",
        )

    def _blind_election(
        self, partition: TopicPartition, change: PartitionChange, target: PartitionTarget, *, draw: int
    ) -> UncleanElection:
        replicas = change.record.replicas
        if replicas is msgspec.UNSET:
            replicas = self.image.partitions[partition].replicas
        return UncleanElection(
            method=events.UncleanMethod.RANDOM if self.picks_at_random else events.UncleanMethod.FIRST,
            strategy=self.recovery_strategy(partition.topic),
            candidates=tuple(broker_id for broker_id in replicas if broker_id in target.acceptable),
            why="it was drawn" if self.picks_at_random else "it is the first of the assignment that may lead",
            draw=draw if self.picks_at_random else None,
        )
