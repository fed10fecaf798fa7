"""Moving partitions to other brokers (Kafka's ``KafkaController.onPartitionReassignment``).

The origin of a reassignment stays its origin: another target replaces the one under way, and the origin itself cancels
it. Replicas that the new plan does not want any more are stopped at once.

A. While a target is not in the ISR: the leader epoch is raised, all replicas of both lists are informed, those to be
added start. B. Once all targets are: those to be added are ONLINE; the cached assignment becomes the target; a leader
that is no target, or dead, is replaced by an election, else its epoch is raised; removed replicas leave the ISR one by
one, get StopReplica with deletion, and are forgotten; only then the assignment is written.

A removed replica whose broker is down gets no request and is forgotten all the same: its log is a stray (KIP-550).
"""

from collections.abc import Iterable, Mapping

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.context import ControllerContext, Replica, ReplicaPhase
from laststand.emulator.core.zookeeper.controller.control_batch import ControlBatch
from laststand.emulator.core.zookeeper.controller.leader_election import ElectionStrategy
from laststand.emulator.core.zookeeper.controller.partition_states import PartitionStateMachine
from laststand.emulator.core.zookeeper.controller.replica_states import ReplicaStateMachine
from laststand.emulator.core.zookeeper.controller.store import ControllerStore
from laststand.emulator.core.zookeeper.controller.topic_deletion import TopicDeletion
from laststand.emulator.core.zookeeper.inter_broker_protocol import IsrChange
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import PartitionLeadership
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment


class Reassignments:
    """All reassignments of the cluster."""

    def __init__(
        self,
        config: ControllerConfig,
        context: ControllerContext,
        store: ControllerStore,
        batch: ControlBatch,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        deletion: TopicDeletion,
    ) -> None:
        self._config = config
        self._context = context
        self._store = store
        self._batch = batch
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion

    # --- Requests -------------------------------------------------------------------------------------------------

    def request(
        self, targets: Mapping[TopicPartition, tuple[BrokerId, ...] | None]
    ) -> operations.Program[dict[TopicPartition, ErrorCode]]:
        """Starts, replaces or (``None``) cancels reassignments, as AlterPartitionReassignments asks.

        Raises:
            ControllerMovedError: the term is over.
        """
        errors: dict[TopicPartition, ErrorCode] = {}
        for name, target in targets.items():
            errors[name] = yield from self._request_one(name, target)
        return errors

    def _request_one(self, name: TopicPartition, target: tuple[BrokerId, ...] | None) -> operations.Program[ErrorCode]:
        current = self._context.assignments.get(name, ReplicaAssignment(replicas=()))
        if target is not None and not self._is_valid(current, target):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        if target is None and not current.is_being_reassigned:
            return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        wanted = current.reassign_to(current.origin_replicas if target is None else target)
        return (yield from self.start(name, wanted))

    def _is_valid(self, current: ReplicaAssignment, target: tuple[BrokerId, ...]) -> bool:
        """Returns whether the replicas can be assigned: at least one, no duplicates, and all added ones alive."""
        if not target or len(set(target)) != len(target) or any(broker_id < 0 for broker_id in target):
            return False
        return set(current.reassign_to(target).adding) <= self._context.live_brokers

    def start(self, name: TopicPartition, wanted: ReplicaAssignment) -> operations.Program[ErrorCode]:
        """Starts a reassignment without a check that its targets are alive, as the legacy request node does."""
        if self._context.is_being_deleted(name.topic) or not self._context.replicas_of(name):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        yield from self._go_on(name, wanted)
        return ErrorCode.NONE

    # --- What makes one go on -------------------------------------------------------------------------------------

    def resume_all(self) -> operations.Program[None]:
        """Resumes the reassignments that a predecessor left."""
        yield from self._resume(tuple(self._context.reassigning))

    def resume_with_targets_on(self, broker_ids: Iterable[BrokerId]) -> operations.Program[None]:
        """Resumes the reassignments that wait for brokers which have just registered."""
        started = set(broker_ids)
        waiting = (
            name for name in self._context.reassigning if started & set(self._context.assignments[name].target_replicas)
        )
        yield from self._resume(tuple(waiting))

    def _resume(self, names: tuple[TopicPartition, ...]) -> operations.Program[None]:
        for name in names:
            if name in self._context.reassigning:
                yield from self._go_on(name, self._context.assignments[name])

    def complete_if_in_sync(self, names: Iterable[TopicPartition]) -> operations.Program[None]:
        """Completes those of some partitions' reassignments whose targets are all in the ISR, after an ISR changed."""
        for name in names:
            if name not in self._context.reassigning:
                continue
            assignment = self._context.assignments[name]
            if (yield from self._is_complete(name, assignment)):
                yield from self._go_on(name, assignment)

    def check_isr(self, name: TopicPartition) -> operations.Program[None]:
        """Checks the ISR of a partition whose leader writes it itself, and watches it again if targets are missing."""
        yield from self.complete_if_in_sync((name,))
        if name in self._context.reassigning:
            yield (operations.Exists(path=paths.state_node(name), is_watched=True),)

    # --- Phases ---------------------------------------------------------------------------------------------------

    def _go_on(self, name: TopicPartition, wanted: ReplicaAssignment) -> operations.Program[None]:
        self._deletion.hold_for_reassignment(name.topic)
        yield from self._adopt(name, wanted)
        if (yield from self._is_complete(name, wanted)):
            yield from self._finish(name, wanted)
        else:
            yield from self._raise_epoch(name, wanted)
            adding = (Replica(name, broker_id) for broker_id in wanted.adding)
            yield from self._replicas.enter(adding, ReplicaPhase.NEW)

    def _adopt(self, name: TopicPartition, wanted: ReplicaAssignment) -> operations.Program[None]:
        current = self._context.assignments[name]
        if current != wanted:
            self._context.assignments[name] = wanted
            yield from self._store.write_assignment(name.topic)
            unneeded = tuple(broker_id for broker_id in current.replicas if broker_id not in wanted.replicas)
            yield from self._remove_replicas(name, unneeded)
        if self._config.ibp.isr_change is IsrChange.ZOOKEEPER:
            yield (operations.Exists(path=paths.state_node(name), is_watched=True),)
        self._context.reassigning[name] = None

    def _is_complete(self, name: TopicPartition, assignment: ReplicaAssignment) -> operations.Program[bool]:
        if not assignment.is_being_reassigned:
            return True
        states = yield from self._store.read_states((name,))
        isr = states[name].leader_and_isr.isr if name in states else ()
        return set(assignment.target_replicas) <= set(isr)

    def _finish(self, name: TopicPartition, wanted: ReplicaAssignment) -> operations.Program[None]:
        added = (Replica(name, broker_id) for broker_id in wanted.adding)
        yield from self._replicas.enter(added, ReplicaPhase.ONLINE)
        final = ReplicaAssignment(replicas=wanted.target_replicas)
        self._context.assignments[name] = final
        leader = self._context.leader_of(name)
        if leader in final.replicas and self._context.has_online_leader(name):
            yield from self._raise_epoch(name, final)
        else:
            yield from self._partitions.bring_online((name,), ElectionStrategy.REASSIGN)
        yield from self._remove_replicas(name, wanted.removing)
        self._context.assignments[name] = final
        yield from self._store.write_assignment(name.topic)
        del self._context.reassigning[name]
        self._batch.add_update_metadata(self._context.registered, (name,))
        self._batch.close()
        yield from self._deletion.resume((name.topic,))

    def _remove_replicas(self, name: TopicPartition, broker_ids: tuple[BrokerId, ...]) -> operations.Program[None]:
        """Removes replicas from the ISR, orders their deletion, and forgets them without awaiting it."""
        removed = tuple(Replica(name, broker_id) for broker_id in broker_ids)
        for phase in (
            ReplicaPhase.OFFLINE,
            ReplicaPhase.DELETION_STARTED,
            ReplicaPhase.DELETION_SUCCESSFUL,
            ReplicaPhase.NON_EXISTENT,
        ):
            yield from self._replicas.enter(removed, phase)

    def _raise_epoch(self, name: TopicPartition, assignment: ReplicaAssignment) -> operations.Program[None]:
        """Writes the state with the next leader epoch, so that brokers take the new replicas from LeaderAndIsr."""
        while True:
            states = yield from self._store.read_states((name,))
            leadership = states.get(name)
            if leadership is None or leadership.controller_epoch > self._context.controller_epoch:
                return
            current = leadership.leader_and_isr
            raised = current.next_epoch(leader=current.leader, isr=current.isr)
            updates = yield from self._store.update_states({name: raised})
            if name not in updates.outdated:
                break
        written = updates.written.get(name)
        if written is None:
            return
        leadership = PartitionLeadership(leader_and_isr=written, controller_epoch=self._context.controller_epoch)
        self._context.leadership[name] = leadership
        self._batch.add_leader_and_isr(assignment.origin_replicas, name, leadership, assignment)
        self._batch.add_leader_and_isr(assignment.adding, name, leadership, assignment, is_new=True)
        self._batch.close()
