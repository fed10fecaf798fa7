"""An elected controller's view of the cluster: a copy of ZooKeeper, and its own states (``ControllerContext``).

It is filled at failover and kept up by watches, by answers to its own writes, and by leaders' notifications; between a
leader's own write and the controller's read of it the copy is stale, so each write of a state node reads it first.
Nothing of it outlives the term.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import msgspec

from laststand.emulator.core.types import BrokerEpoch, BrokerId, TopicId, TopicPartition
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch, NodeVersion
from laststand.emulator.core.zookeeper.nodes.partition_state import PartitionLeadership
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment


class PartitionPhase(Enum):
    """The state of a partition's life cycle; ``partition_states`` has the edges."""

    NON_EXISTENT = "NonExistent"
    NEW = "New"
    ONLINE = "Online"
    OFFLINE = "Offline"


class ReplicaPhase(Enum):
    """The state of a replica's life cycle; ``replica_states`` has the edges."""

    NON_EXISTENT = "NonExistent"
    NEW = "New"
    ONLINE = "Online"
    OFFLINE = "Offline"
    DELETION_STARTED = "DeletionStarted"
    DELETION_SUCCESSFUL = "DeletionSuccessful"
    DELETION_INELIGIBLE = "DeletionIneligible"


class Replica(NamedTuple):
    """A partition on a broker (Kafka's ``PartitionAndReplica``)."""

    partition: TopicPartition
    broker_id: BrokerId


class RegisteredBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker as its node says; its epoch is the zxid that made the node."""

    broker_epoch: BrokerEpoch
    rack: str = ""


class ControllerContext:
    """The copy.

    Attributes:
        controller_epoch: of this term; 0 before any.
        epoch_version: version of ``/controller_epoch`` after this controller's election.
        brokers: registered ones, those that are shutting down included.
        shutting_down: brokers in controlled shutdown, until they are gone.
        offline_replicas: partitions whose directory failed, by broker.
        topic_ids: by name of all topics; ``None`` for one made before there were ids.
        assignments: replicas by partition.
        leadership: the state node of each partition that has one.
        reassigning: partitions on their way to other brokers, in order of arrival.
        partition_phases: by partition; absent means NON_EXISTENT.
        replica_phases: by replica; absent means NON_EXISTENT.
        topics_to_delete: in the order in which they were queued.
        topics_with_deletion_started: those that have lost partitions already.
        topics_ineligible_for_deletion: topics whose deletion waits for a broker or a reassignment.
    """

    def __init__(self) -> None:
        self.controller_epoch = ControllerEpoch(0)
        self.epoch_version = NodeVersion(0)
        self.brokers: dict[BrokerId, RegisteredBroker] = {}
        self.shutting_down: set[BrokerId] = set()
        self.offline_replicas: dict[BrokerId, frozenset[TopicPartition]] = {}
        self.topic_ids: dict[str, TopicId | None] = {}
        self.assignments: dict[TopicPartition, ReplicaAssignment] = {}
        self.leadership: dict[TopicPartition, PartitionLeadership] = {}
        self.reassigning: dict[TopicPartition, None] = {}
        self.partition_phases: dict[TopicPartition, PartitionPhase] = {}
        self.replica_phases: dict[Replica, ReplicaPhase] = {}
        self.topics_to_delete: dict[str, None] = {}
        self.topics_with_deletion_started: set[str] = set()
        self.topics_ineligible_for_deletion: set[str] = set()

    # --- Brokers --------------------------------------------------------------------------------------------------

    @property
    def live_brokers(self) -> frozenset[BrokerId]:
        """Registered brokers that are not shutting down: they may be elected or become ISR members."""
        return frozenset(self.brokers.keys() - self.shutting_down)

    @property
    def registered(self) -> tuple[BrokerId, ...]:
        """All registered brokers, ascending: they are sent control requests."""
        return tuple(sorted(self.brokers))

    def is_online(self, broker_id: BrokerId, partition: TopicPartition) -> bool:
        """Returns whether a replica can serve: its broker is live and its directory is not known to have failed."""
        return broker_id in self.live_brokers and self._has_directory(broker_id, partition)

    def is_online_or_shutting_down(self, broker_id: BrokerId, partition: TopicPartition) -> bool:
        """As ``is_online``, for brokers in controlled shutdown, too."""
        return broker_id in self.brokers and self._has_directory(broker_id, partition)

    def _has_directory(self, broker_id: BrokerId, partition: TopicPartition) -> bool:
        return partition not in self.offline_replicas.get(broker_id, frozenset())

    # --- Partitions and replicas ----------------------------------------------------------------------------------

    def replicas_of(self, partition: TopicPartition) -> tuple[BrokerId, ...]:
        """Returns a partition's replicas; none where it is unknown."""
        assignment = self.assignments.get(partition)
        return () if assignment is None else assignment.replicas

    def partitions_of(self, topic: str) -> tuple[TopicPartition, ...]:
        """Returns a topic's partitions, ascending."""
        return tuple(sorted(name for name in self.assignments if name.topic == topic))

    def partitions_on(self, broker_id: BrokerId) -> tuple[TopicPartition, ...]:
        """Returns the partitions that a broker is to hold, ascending."""
        return tuple(sorted(name for name, assignment in self.assignments.items() if broker_id in assignment.replicas))

    def replicas_on(self, broker_ids: Iterable[BrokerId]) -> tuple[Replica, ...]:
        """Returns all replicas on some brokers."""
        return tuple(Replica(name, broker_id) for broker_id in broker_ids for name in self.partitions_on(broker_id))

    def replicas_of_topic(self, topic: str) -> tuple[Replica, ...]:
        """Returns all replicas of a topic."""
        return tuple(
            Replica(name, broker_id) for name in self.partitions_of(topic) for broker_id in self.replicas_of(name)
        )

    def leader_of(self, partition: TopicPartition) -> BrokerId | None:
        """Returns the leader, as far as the copy knows."""
        leadership = self.leadership.get(partition)
        return None if leadership is None else leadership.leader_and_isr.leader

    def partitions_led_by(self, broker_id: BrokerId) -> tuple[TopicPartition, ...]:
        """Returns the replicated partitions that a broker leads and that are not being deleted, ascending."""
        return tuple(
            sorted(
                name
                for name in self.leadership
                if self.leader_of(name) == broker_id
                and len(self.replicas_of(name)) > 1
                and not self.is_being_deleted(name.topic)
            )
        )

    def partitions_with_offline_leader(self) -> tuple[TopicPartition, ...]:
        """Returns the partitions that have a state node but no leader that could serve, ascending."""
        return tuple(
            sorted(
                name
                for name in self.leadership
                if not self.has_online_leader(name) and not self.is_being_deleted(name.topic)
            )
        )

    def has_online_leader(self, partition: TopicPartition) -> bool:
        """Returns whether the leader by the copy could serve."""
        leader = self.leader_of(partition)
        return leader is not None and self.is_online(leader, partition)

    def phase_of(self, partition: TopicPartition) -> PartitionPhase:
        """Returns a partition's state."""
        return self.partition_phases.get(partition, PartitionPhase.NON_EXISTENT)

    def replica_phase_of(self, replica: Replica) -> ReplicaPhase:
        """Returns a replica's state, as in Kafka's ``ReplicaStateMachine``."""
        return self.replica_phases.get(replica, ReplicaPhase.NON_EXISTENT)

    # --- Deletion -------------------------------------------------------------------------------------------------

    def is_being_deleted(self, topic: str) -> bool:
        """Returns whether a topic is queued for deletion, begun or not."""
        return topic in self.topics_to_delete

    def topic_replicas_in(self, topic: str, phase: ReplicaPhase) -> tuple[Replica, ...]:
        """Returns a topic's replicas in a phase."""
        return tuple(replica for replica in self.replicas_of_topic(topic) if self.replica_phase_of(replica) is phase)

    def forget_topic(self, topic: str) -> None:
        """Drops everything about a topic whose nodes are gone."""
        for name in self.partitions_of(topic):
            self.assignments.pop(name)
            self.leadership.pop(name, None)
            self.reassigning.pop(name, None)
            self.partition_phases.pop(name, None)
        for replica in [replica for replica in self.replica_phases if replica.partition.topic == topic]:
            del self.replica_phases[replica]
        self.topic_ids.pop(topic, None)
        self.topics_to_delete.pop(topic, None)
        self.topics_with_deletion_started.discard(topic)
        self.topics_ineligible_for_deletion.discard(topic)
