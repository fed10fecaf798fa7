"""Controlled shutdown of a broker (Kafka's ``KafkaController.doControlledShutdown``).

A broker in controlled shutdown is marked until it dies or another controller is elected: it may not be elected or
become an ISR member, but still gets every request. Its leaderships move to other ISR members; if there is none, it
continues to lead, and the answer lists the partition. It leaves the ISRs of partitions that it follows. Partitions with
a single replica are left alone.
"""

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, BrokerId
from laststand.emulator.core.zookeeper import control_messages, operations
from laststand.emulator.core.zookeeper.controller.context import ControllerContext, Replica, ReplicaPhase
from laststand.emulator.core.zookeeper.controller.control_batch import ControlBatch
from laststand.emulator.core.zookeeper.controller.leader_election import ElectionStrategy
from laststand.emulator.core.zookeeper.controller.partition_states import PartitionStateMachine
from laststand.emulator.core.zookeeper.controller.replica_states import ReplicaStateMachine


class ControlledShutdown:
    """Moves leaderships off brokers that are about to go."""

    def __init__(
        self,
        context: ControllerContext,
        batch: ControlBatch,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
    ) -> None:
        self._context = context
        self._batch = batch
        self._partitions = partitions
        self._replicas = replicas

    def shut_down(
        self, broker_id: BrokerId, broker_epoch: BrokerEpoch | None
    ) -> operations.Program[control_messages.ControlledShutdownResponse]:
        """Moves all leaderships that can be moved; ``broker_epoch`` is ``None`` in requests from before KIP-380.

        Raises:
            ControllerMovedError: the term is over.
        """
        error = self._refusal(broker_id, broker_epoch)
        if error is not ErrorCode.NONE:
            return control_messages.ControlledShutdownResponse(error=error)
        self._context.shutting_down.add(broker_id)
        moved = tuple(
            name
            for name in self._context.partitions_on(broker_id)
            if len(self._context.replicas_of(name)) > 1
            and name in self._context.leadership
            and not self._context.is_being_deleted(name.topic)
        )
        led = tuple(name for name in moved if self._context.leader_of(name) == broker_id)
        followed = tuple(name for name in moved if name not in led)
        yield from self._partitions.bring_online(led, ElectionStrategy.CONTROLLED_SHUTDOWN)
        # It stops fetching before its leaders hear that it left the ISR, so that they do not take it back.
        for name in followed:
            self._batch.add_stop_replica((broker_id,), name, is_deleted=False)
        self._batch.close()
        yield from self._replicas.enter((Replica(name, broker_id) for name in followed), ReplicaPhase.OFFLINE)
        return control_messages.ControlledShutdownResponse(
            error=ErrorCode.NONE, remaining=self._context.partitions_led_by(broker_id)
        )

    def _refusal(self, broker_id: BrokerId, broker_epoch: BrokerEpoch | None) -> ErrorCode:
        registered = self._context.brokers.get(broker_id)
        if registered is None:
            # Kafka looks the epoch up before it looks for the broker, and trips over that.
            return ErrorCode.BROKER_NOT_AVAILABLE if broker_epoch is None else ErrorCode.UNKNOWN_SERVER_ERROR
        if broker_epoch is not None and broker_epoch < registered.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        return ErrorCode.NONE
