"""Control requests of one decision, collected and then sent (Kafka's ``AbstractControllerBrokerRequestBatch``).

Per batch and broker: LeaderAndIsr first, then UpdateMetadata, then StopReplica. Every LeaderAndIsr goes with an
UpdateMetadata of its partition to all registered brokers. Within a batch, the marks "new" and "to be deleted" of a
replica stay set. Nothing is sent to, or kept for, a broker that is not registered: a replica that should have been
deleted there stays (KIP-550).
"""

from collections.abc import Iterable

import msgspec

from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.control_versions import as_carried, has_field
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.context import ControllerContext
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.nodes.partition_state import PartitionLeadership
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment


class AddressedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A control request and the broker that it is for."""

    broker_id: BrokerId
    request: control_messages.ControlMessage


class ControlBatch:
    """Control requests to send once a decision is complete.

    Attributes:
        outbox: requests of batches that were closed, in order; the controller's owner empties it.
    """

    def __init__(self, config: ControllerConfig, context: ControllerContext) -> None:
        self._config = config
        self._context = context
        self._leader_and_isr: dict[BrokerId, dict[TopicPartition, control_messages.LeaderAndIsrPartition]] = {}
        self._stop_replica: dict[BrokerId, dict[TopicPartition, control_messages.StopReplicaPartition]] = {}
        self._update_metadata_to: set[BrokerId] = set()
        self._metadata: dict[TopicPartition, control_messages.MetadataPartition] = {}
        self._full_to: frozenset[BrokerId] = frozenset()
        self.outbox: list[AddressedRequest] = []

    # --- Collecting -----------------------------------------------------------------------------------------------

    def add_leader_and_isr(
        self,
        broker_ids: Iterable[BrokerId],
        name: TopicPartition,
        leadership: PartitionLeadership,
        assignment: ReplicaAssignment,
        *,
        is_new: bool = False,
    ) -> None:
        """Sends a partition's leader and ISR to some brokers, and UpdateMetadata of it to all brokers."""
        partition = self._leader_and_isr_partition(name, leadership, assignment)
        for broker_id in broker_ids:
            partitions = self._leader_and_isr.setdefault(broker_id, {})
            was_new = name in partitions and partitions[name].is_new
            partitions[name] = msgspec.structs.replace(partition, is_new=is_new or was_new)
        self.add_update_metadata(self._context.registered, (name,))

    def add_stop_replica(self, broker_ids: Iterable[BrokerId], name: TopicPartition, *, is_deleted: bool) -> None:
        """Orders brokers to give up a replica."""
        leader_epoch = self._stop_epoch(name)
        for broker_id in broker_ids:
            partitions = self._stop_replica.setdefault(broker_id, {})
            was_deleted = name in partitions and partitions[name].is_deleted
            partitions[name] = control_messages.StopReplicaPartition(
                name=name, leader_epoch=leader_epoch, is_deleted=is_deleted or was_deleted
            )

    def add_update_metadata(self, broker_ids: Iterable[BrokerId], names: Iterable[TopicPartition]) -> None:
        """Sends the registered brokers, and the metadata of known partitions, to brokers."""
        self._update_metadata_to |= set(broker_ids)
        for name in names:
            leadership = self._context.leadership.get(name)
            if leadership is not None:
                self._metadata[name] = self._metadata_partition(name, leadership)

    def name_all_replicas_to(self, broker_ids: Iterable[BrokerId]) -> None:
        """Makes this batch's LeaderAndIsr to some brokers the list of all replicas that they are to hold (KIP-550).

        It is sent even if it is empty: a broker that is to hold no replica has to learn that, too. From version 5 on
        the request has a field for it.
        """
        if self._config.rules.contains_all_replicas:
            self._full_to |= frozenset(broker_ids)

    def _stop_epoch(self, name: TopicPartition) -> LeaderEpoch | control_messages.StopReplicaEpoch:
        if self._context.is_being_deleted(name.topic):
            return control_messages.StopReplicaEpoch.DURING_DELETE
        leadership = self._context.leadership.get(name)
        return (
            control_messages.StopReplicaEpoch.UNKNOWN if leadership is None else leadership.leader_and_isr.leader_epoch
        )

    def _leader_and_isr_partition(
        self, name: TopicPartition, leadership: PartitionLeadership, assignment: ReplicaAssignment
    ) -> control_messages.LeaderAndIsrPartition:
        decided = leadership.leader_and_isr
        return control_messages.LeaderAndIsrPartition(
            name=name,
            controller_epoch=leadership.controller_epoch,
            leader=decided.leader,
            leader_epoch=decided.leader_epoch,
            isr=decided.isr,
            partition_epoch=decided.partition_epoch,
            replicas=assignment.replicas,
            adding_replicas=assignment.adding,
            removing_replicas=assignment.removing,
            leader_recovery_state=decided.leader_recovery_state,
            topic_id=self._topic_id(name.topic),
        )

    def _metadata_partition(
        self, name: TopicPartition, leadership: PartitionLeadership
    ) -> control_messages.MetadataPartition:
        decided = leadership.leader_and_isr
        replicas = self._context.replicas_of(name)
        is_being_deleted = self._context.is_being_deleted(name.topic)
        no_leader = (
            control_messages.NoLeaderReason.BEING_DELETED
            if is_being_deleted
            else control_messages.NoLeaderReason.NONE_ELECTED
        )
        has_leader = decided.leader is not None and not is_being_deleted
        return control_messages.MetadataPartition(
            name=name,
            controller_epoch=leadership.controller_epoch,
            leader=decided.leader if decided.leader is not None and has_leader else no_leader,
            leader_epoch=LeaderEpoch(0) if is_being_deleted else decided.leader_epoch,
            isr=decided.isr,
            partition_epoch=PartitionEpoch(0) if is_being_deleted else decided.partition_epoch,
            replicas=replicas,
            offline_replicas=tuple(replica for replica in replicas if not self._context.is_online(replica, name)),
            topic_id=self._topic_id(name.topic),
        )

    def _topic_id(self, topic: str) -> TopicId | None:
        return self._context.topic_ids.get(topic) if self._config.ibp.knows_topic_ids else None

    # --- Sending --------------------------------------------------------------------------------------------------

    def discard(self) -> None:
        """Drops the collected requests: the controller was replaced in the middle of a decision."""
        self._leader_and_isr = {}
        self._stop_replica = {}
        self._update_metadata_to = set()
        self._metadata = {}
        self._full_to = frozenset()

    def close(self) -> None:
        """Moves the collected requests into the outbox, for registered brokers."""
        self._complete_full_lists()
        for broker_id in self._registered_of(self._leader_and_isr):
            self._send_leader_and_isr(broker_id)
        for broker_id in self._registered_of(self._update_metadata_to):
            self._send_update_metadata(broker_id)
        for broker_id in self._registered_of(self._stop_replica):
            self._send_stop_replica(broker_id)
        self.discard()

    def _registered_of(self, broker_ids: Iterable[BrokerId]) -> list[BrokerId]:
        return [broker_id for broker_id in sorted(broker_ids) if broker_id in self._context.brokers]

    def _complete_full_lists(self) -> None:
        """Adds partitions without a state node: they have no leader yet, but their logs are not strays."""
        version = self._config.ibp.leader_and_isr_version
        is_said = has_field(control_messages.LeaderAndIsrRequest, "contains_all_replicas", version)
        for broker_id in self._full_to:
            partitions = self._leader_and_isr.setdefault(broker_id, {})
            for name in self._context.partitions_on(broker_id) if is_said else ():
                if name not in partitions:
                    partitions[name] = self._partition_without_state(name)

    def _partition_without_state(self, name: TopicPartition) -> control_messages.LeaderAndIsrPartition:
        assignment = self._context.assignments[name]
        leadership = self._context.leadership.get(name)
        if leadership is not None:
            return self._leader_and_isr_partition(name, leadership, assignment)
        return control_messages.LeaderAndIsrPartition(
            name=name,
            controller_epoch=self._context.controller_epoch,
            leader=None,
            leader_epoch=LeaderEpoch(-1),
            isr=(),
            partition_epoch=PartitionEpoch(-1),
            replicas=assignment.replicas,
            topic_id=self._topic_id(name.topic),
        )

    def _send_leader_and_isr(self, broker_id: BrokerId) -> None:
        request = control_messages.LeaderAndIsrRequest(
            controller_id=self._config.broker_id,
            controller_epoch=self._term,
            broker_epoch=self._broker_epoch(broker_id),
            partitions=tuple(self._leader_and_isr[broker_id].values()),
            api_version=self._config.ibp.leader_and_isr_version,
            contains_all_replicas=broker_id in self._full_to,
        )
        self._send(broker_id, request)

    def _send_update_metadata(self, broker_id: BrokerId) -> None:
        live_brokers = tuple(
            control_messages.LiveBroker(broker_id=other, rack=self._context.brokers[other].rack)
            for other in self._context.registered
        )
        request = control_messages.UpdateMetadataRequest(
            controller_id=self._config.broker_id,
            controller_epoch=self._term,
            broker_epoch=self._broker_epoch(broker_id),
            live_brokers=live_brokers,
            partitions=tuple(self._metadata.values()),
            api_version=self._config.ibp.update_metadata_version,
        )
        self._send(broker_id, request)

    def _send_stop_replica(self, broker_id: BrokerId) -> None:
        stopped = tuple(self._stop_replica[broker_id].values())
        groups = [stopped]
        version = self._config.ibp.stop_replica_version
        if not has_field(control_messages.StopReplicaPartition, "leader_epoch", version):
            # Before KIP-570 a request deletes all that it names, or nothing.
            groups = [
                tuple(partition for partition in stopped if partition.is_deleted is is_deleted)
                for is_deleted in (False, True)
            ]
        for group in groups:
            if group:
                request = control_messages.StopReplicaRequest(
                    controller_id=self._config.broker_id,
                    controller_epoch=self._term,
                    broker_epoch=self._broker_epoch(broker_id),
                    partitions=group,
                    api_version=version,
                )
                self._send(broker_id, request)

    def _send(self, broker_id: BrokerId, request: control_messages.ControlMessage) -> None:
        self.outbox.append(AddressedRequest(broker_id=broker_id, request=as_carried(request)))

    @property
    def _term(self) -> ControllerEpoch:
        return self._context.controller_epoch

    def _broker_epoch(self, broker_id: BrokerId) -> BrokerEpoch:
        return self._context.brokers[broker_id].broker_epoch
