"""Brokers that register, go, or return before the controller saw them go (``KafkaController.processBrokerChange``).

One look at ``/brokers/ids`` distinguishes three kinds: new (registered, not cached), dead (cached, not registered) and
bounced (both, but the node was made later than the cached one: KAFKA-7235). New ones start; bounced ones fail and then
start; dead ones fail.
"""

from collections.abc import Iterable, Mapping

from laststand.emulator.core.types import BrokerEpoch, BrokerId, NodeId
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.context import (
    ControllerContext,
    PartitionPhase,
    RegisteredBroker,
    Replica,
    ReplicaPhase,
)
from laststand.emulator.core.zookeeper.controller.control_batch import ControlBatch
from laststand.emulator.core.zookeeper.controller.partition_states import PartitionStateMachine
from laststand.emulator.core.zookeeper.controller.reassignment import Reassignments
from laststand.emulator.core.zookeeper.controller.replica_states import ReplicaStateMachine
from laststand.emulator.core.zookeeper.controller.store import children_of
from laststand.emulator.core.zookeeper.controller.topic_deletion import TopicDeletion
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import LeaderAndIsr
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_rack


def read_brokers(*, is_watched: bool = True) -> operations.Program[dict[BrokerId, RegisteredBroker]]:
    """Returns all registered brokers, and watches for changes; a broker's epoch is the zxid that made its node."""
    children = yield (operations.GetChildren(path=paths.BROKER_IDS, is_watched=is_watched),)
    names = children_of(children, paths.BROKER_IDS)
    if not names:
        return {}
    broker_ids = sorted(BrokerId(NodeId(int(name))) for name in names)
    answers = yield tuple(operations.GetData(path=paths.broker_node(broker_id)) for broker_id in broker_ids)
    return {
        broker_id: RegisteredBroker(broker_epoch=BrokerEpoch(answer.stat.czxid), rack=decode_rack(answer.data))
        for broker_id, answer in zip(broker_ids, answers, strict=True)
        if isinstance(answer, operations.DataRead)
    }


class BrokerChanges:
    """Acts on changes of the registered brokers."""

    def __init__(
        self,
        context: ControllerContext,
        batch: ControlBatch,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        reassignments: Reassignments,
        deletion: TopicDeletion,
    ) -> None:
        self._context = context
        self._batch = batch
        self._partitions = partitions
        self._replicas = replicas
        self._reassignments = reassignments
        self._deletion = deletion

    def refresh(self) -> operations.Program[None]:
        """Reads the registrations, and acts on changes since they were last read."""
        yield from self.apply((yield from read_brokers()))

    def apply(self, registered: Mapping[BrokerId, RegisteredBroker]) -> operations.Program[None]:
        """Acts on the difference between the registered brokers and the cached ones."""
        cached = dict(self._context.brokers)
        new = {broker_id: broker for broker_id, broker in registered.items() if broker_id not in cached}
        dead = tuple(sorted(cached.keys() - registered.keys()))
        bounced = {
            broker_id: broker
            for broker_id, broker in registered.items()
            if broker_id in cached and broker.broker_epoch > cached[broker_id].broker_epoch
        }
        if new:
            self._context.brokers |= new
            yield from self._start(tuple(sorted(new)))
        if bounced:
            self._remove(bounced)
            yield from self._fail(tuple(sorted(bounced)))
            self._context.brokers |= bounced
            yield from self._start(tuple(sorted(bounced)))
        if dead:
            self._remove(dead)
            yield from self._fail(dead)

    def _remove(self, broker_ids: Iterable[BrokerId]) -> None:
        for broker_id in broker_ids:
            del self._context.brokers[broker_id]

    # --- Start ----------------------------------------------------------------------------------------------------

    def _start(self, broker_ids: tuple[BrokerId, ...]) -> operations.Program[None]:
        for broker_id in broker_ids:
            self._context.offline_replicas.pop(broker_id, None)
        others = tuple(broker_id for broker_id in self._context.registered if broker_id not in broker_ids)
        self._batch.add_update_metadata(others, ())
        self._batch.close()
        # A broker ignores roles under a leader that it does not know to be alive, so all are announced to it before.
        self._batch.add_update_metadata(broker_ids, sorted(self._context.leadership))
        self._batch.close()
        yield from self._replicas.welcome(broker_ids)
        yield from self._partitions.elect_missing_leaders()
        yield from self._reassignments.resume_with_targets_on(broker_ids)
        hosted = {replica.partition.topic for replica in self._context.replicas_on(broker_ids)}
        yield from self._deletion.resume(sorted(hosted))

    # --- Failure --------------------------------------------------------------------------------------------------

    def _fail(self, broker_ids: tuple[BrokerId, ...]) -> operations.Program[None]:
        for broker_id in broker_ids:
            self._context.offline_replicas.pop(broker_id, None)
            self._context.shutting_down.discard(broker_id)
        yield from self.lose(self._context.replicas_on(broker_ids))

    def lose(self, replicas: Iterable[Replica]) -> operations.Program[None]:
        """Acts on replicas that went offline: elections first, then ISRs without them."""
        lost = tuple(replicas)
        for_deletion = tuple(replica for replica in lost if self._context.is_being_deleted(replica.partition.topic))
        others = tuple(replica for replica in lost if replica not in for_deletion)
        self._partitions.enter(self._context.partitions_with_offline_leader(), PartitionPhase.OFFLINE)
        elections = yield from self._partitions.elect_missing_leaders()
        yield from self._replicas.enter(others, ReplicaPhase.OFFLINE)
        yield from self._deletion.fail(for_deletion)
        if not others and not any(isinstance(result, LeaderAndIsr) for result in elections.values()):
            # Nothing else has announced that brokers are gone.
            self._batch.add_update_metadata(self._context.registered, ())
            self._batch.close()
