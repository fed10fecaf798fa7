"""Deleting topics (Kafka's ``TopicDeletionManager``).

A topic is queued, and is removed once all its replicas are gone. Per attempt: partitions OFFLINE and NON_EXISTENT,
clients informed, replicas OFFLINE, then ordered to delete; each deleted replica becomes DELETION_SUCCESSFUL, and with
the last one the nodes are deleted. A replica that is not online, or whose broker answers an error, halts the topic: it
is *ineligible* until a broker with a replica of it starts, or a reassignment of it ends. So a deletion never leaves a
log behind, but may wait.

It is meant to wait for a reassignment, too. But the mark is set when the reassignment starts, and only topics that are
queued take it: a request that comes during the reassignment is carried out at once.
"""

from collections.abc import Iterable

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId
from laststand.emulator.core.zookeeper import control_messages, operations
from laststand.emulator.core.zookeeper.controller.context import (
    ControllerContext,
    PartitionPhase,
    Replica,
    ReplicaPhase,
)
from laststand.emulator.core.zookeeper.controller.control_batch import ControlBatch
from laststand.emulator.core.zookeeper.controller.partition_states import PartitionStateMachine
from laststand.emulator.core.zookeeper.controller.replica_states import ReplicaStateMachine
from laststand.emulator.core.zookeeper.controller.store import ControllerStore
from laststand.emulator.core.zookeeper.nodes import paths


class TopicDeletion:
    """The queue of topics to be deleted, and the progress of each."""

    def __init__(
        self,
        context: ControllerContext,
        store: ControllerStore,
        batch: ControlBatch,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
    ) -> None:
        self._context = context
        self._store = store
        self._batch = batch
        self._partitions = partitions
        self._replicas = replicas

    # --- Events ---------------------------------------------------------------------------------------------------

    def take_over(self, topics: Iterable[str]) -> None:
        """Queues the deletions that a predecessor left, without starting them; topics that are ineligible now wait."""
        self._context.topics_to_delete = dict.fromkeys(sorted(topics))
        ineligible = {
            name.topic
            for name, assignment in self._context.assignments.items()
            if assignment.is_being_reassigned
            or any(not self._context.is_online(broker_id, name) for broker_id in assignment.replicas)
        }
        self._mark_ineligible(ineligible)

    def queue(self, topics: Iterable[str]) -> operations.Program[None]:
        """Queues topics whose deletion was requested, and begins."""
        self._context.topics_to_delete |= dict.fromkeys(sorted(topics))
        yield from self.go_on()

    def resume(self, topics: Iterable[str]) -> operations.Program[None]:
        """Tries topics again that were waiting; others are left alone."""
        queued = {topic for topic in topics if self._context.is_being_deleted(topic)}
        if queued:
            self._context.topics_ineligible_for_deletion -= queued
            yield from self.go_on()

    def fail(self, replicas: Iterable[Replica]) -> operations.Program[None]:
        """Halts the topics of replicas that cannot be deleted now."""
        failed = [replica for replica in replicas if self._context.is_being_deleted(replica.partition.topic)]
        if failed:
            yield from self._replicas.enter(failed, ReplicaPhase.DELETION_INELIGIBLE)
            self._mark_ineligible({replica.partition.topic for replica in failed})
            yield from self.go_on()

    def complete(self, replicas: Iterable[Replica]) -> operations.Program[None]:
        """Marks replicas as deleted, and completes the topics whose last replica was deleted."""
        gone = [replica for replica in replicas if self._context.is_being_deleted(replica.partition.topic)]
        yield from self._replicas.enter(gone, ReplicaPhase.DELETION_SUCCESSFUL)
        yield from self.go_on()

    def handle_answer(
        self,
        broker_id: BrokerId,
        request: control_messages.StopReplicaRequest,
        response: control_messages.StopReplicaResponse,
    ) -> operations.Program[None]:
        """Handles a broker's response to StopReplica with delete, for topics that are being deleted."""
        asked = {
            partition.name
            for partition in request.partitions
            if partition.is_deleted and partition.name.topic in self._context.topics_with_deletion_started
        }
        errors = {result.name: result.error for result in response.partitions if result.name in asked}
        if response.error is not ErrorCode.NONE:
            errors = dict.fromkeys(asked, response.error)
        failed = [Replica(name, broker_id) for name, error in errors.items() if error is not ErrorCode.NONE]
        gone = [Replica(name, broker_id) for name, error in errors.items() if error is ErrorCode.NONE]
        yield from self.fail(failed)
        if gone:
            yield from self.complete(gone)

    def hold_for_reassignment(self, topic: str) -> None:
        """Halts the deletion of a queued topic while a partition of it is being reassigned."""
        self._mark_ineligible({topic})

    def _mark_ineligible(self, topics: set[str]) -> None:
        self._context.topics_ineligible_for_deletion |= topics & self._context.topics_to_delete.keys()

    # --- Going on -------------------------------------------------------------------------------------------------

    def go_on(self) -> operations.Program[None]:
        """Makes all progress that is possible now: completes topics, resets failed replicas, starts eligible topics."""
        retried: list[Replica] = []
        eligible: list[str] = []
        for topic in tuple(self._context.topics_to_delete):
            phases = [self._context.replica_phase_of(replica) for replica in self._context.replicas_of_topic(topic)]
            if all(phase is ReplicaPhase.DELETION_SUCCESSFUL for phase in phases):
                yield from self._end(topic)
                continue
            if ReplicaPhase.DELETION_STARTED not in phases:
                retried += self._context.topic_replicas_in(topic, ReplicaPhase.DELETION_INELIGIBLE)
                if topic not in self._context.topics_ineligible_for_deletion:
                    eligible.append(topic)
        yield from self._replicas.enter(retried, ReplicaPhase.OFFLINE)
        if eligible:
            yield from self._begin(eligible)

    def _begin(self, topics: list[str]) -> operations.Program[None]:
        unseen = [topic for topic in topics if topic not in self._context.topics_with_deletion_started]
        for topic in unseen:
            names = self._context.partitions_of(topic)
            self._partitions.enter(names, PartitionPhase.OFFLINE)
            self._partitions.enter(names, PartitionPhase.NON_EXISTENT)
            self._context.topics_with_deletion_started.add(topic)
        self._batch.add_update_metadata(
            self._context.registered, (name for topic in topics for name in self._context.partitions_of(topic))
        )
        self._batch.close()
        dead, alive = [], []
        for topic in topics:
            for replica in self._context.replicas_of_topic(topic):
                if not self._context.is_online(replica.broker_id, replica.partition):
                    dead.append(replica)
                elif self._context.replica_phase_of(replica) is not ReplicaPhase.DELETION_SUCCESSFUL:
                    alive.append(replica)
        yield from self._replicas.enter(dead, ReplicaPhase.DELETION_INELIGIBLE)
        yield from self._replicas.enter(alive, ReplicaPhase.OFFLINE)
        yield from self._replicas.enter(alive, ReplicaPhase.DELETION_STARTED)
        self._mark_ineligible({replica.partition.topic for replica in dead})

    def _end(self, topic: str) -> operations.Program[None]:
        gone = self._context.topic_replicas_in(topic, ReplicaPhase.DELETION_SUCCESSFUL)
        yield from self._replicas.enter(gone, ReplicaPhase.NON_EXISTENT)
        yield from self._store.delete_recursively(paths.topic_node(topic))
        removed = (paths.topic_config_node(topic), paths.delete_topic_node(topic))
        yield from self._store.write(operations.Delete(path=path, version=None) for path in removed)
        self._context.forget_topic(topic)
