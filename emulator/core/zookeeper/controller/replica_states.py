"""The life of a replica (Kafka's ``ReplicaStateMachine``).

States and edges::

    NON_EXISTENT --> NEW --> ONLINE <--> OFFLINE          (ONLINE and OFFLINE may follow themselves)
                     NEW --> OFFLINE
    OFFLINE --> DELETION_STARTED --> DELETION_SUCCESSFUL --> NON_EXISTENT
    OFFLINE or DELETION_STARTED --> DELETION_INELIGIBLE --> ONLINE or OFFLINE

A replica that goes OFFLINE leaves the ISR, unless it is the last member; if it led, the partition has no leader. Each
such write raises the leader epoch. The other replicas are informed even if nothing was written.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.types import BrokerId, TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.context import ControllerContext, Replica, ReplicaPhase
from laststand.emulator.core.zookeeper.controller.control_batch import ControlBatch
from laststand.emulator.core.zookeeper.controller.store import ControllerStore
from laststand.emulator.core.zookeeper.errors import ControllerMovedError
from laststand.emulator.core.zookeeper.nodes.partition_state import LeaderAndIsr, PartitionLeadership
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment

_HOSTED: Final = frozenset(
    {ReplicaPhase.NEW, ReplicaPhase.ONLINE, ReplicaPhase.OFFLINE, ReplicaPhase.DELETION_INELIGIBLE}
)

LEGAL_FROM: Final[Mapping[ReplicaPhase, frozenset[ReplicaPhase]]] = MappingProxyType(
    {
        ReplicaPhase.NEW: frozenset({ReplicaPhase.NON_EXISTENT}),
        ReplicaPhase.ONLINE: _HOSTED,
        ReplicaPhase.OFFLINE: _HOSTED,
        ReplicaPhase.DELETION_STARTED: frozenset({ReplicaPhase.OFFLINE}),
        ReplicaPhase.DELETION_SUCCESSFUL: frozenset({ReplicaPhase.DELETION_STARTED}),
        ReplicaPhase.DELETION_INELIGIBLE: frozenset({ReplicaPhase.OFFLINE, ReplicaPhase.DELETION_STARTED}),
        ReplicaPhase.NON_EXISTENT: frozenset({ReplicaPhase.DELETION_SUCCESSFUL}),
    }
)
"""The phases from which each phase may be entered."""


class ReplicaStateMachine:
    """Moves replicas of the context, and takes those that go offline out of their ISR."""

    def __init__(self, context: ControllerContext, store: ControllerStore, batch: ControlBatch) -> None:
        self._context = context
        self._store = store
        self._batch = batch

    def start(self) -> operations.Program[None]:
        """Determines the state of all replicas; online ones are sent their roles, the others leave their ISRs."""
        online: list[Replica] = []
        offline: list[Replica] = []
        for name in sorted(self._context.assignments):
            for broker_id in self._context.replicas_of(name):
                replica = Replica(name, broker_id)
                is_online = self._context.is_online(broker_id, name)
                (online if is_online else offline).append(replica)
                # A replica that is not there cannot be deleted; from here it can go offline, too.
                phase = ReplicaPhase.ONLINE if is_online else ReplicaPhase.DELETION_INELIGIBLE
                self._context.replica_phases[replica] = phase
        self._batch.name_all_replicas_to(self._context.registered)
        yield from self.enter(online, ReplicaPhase.ONLINE)
        yield from self.enter(offline, ReplicaPhase.OFFLINE)

    def welcome(self, broker_ids: Iterable[BrokerId]) -> operations.Program[None]:
        """Sends newly registered brokers the roles of all their replicas.

        Raises:
            ControllerMovedError: the term is over; brokers are not informed.
        """
        started = tuple(broker_ids)
        self._batch.name_all_replicas_to(started)
        yield from self.enter(self._context.replicas_on(started), ReplicaPhase.ONLINE)

    def enter(self, replicas: Iterable[Replica], phase: ReplicaPhase) -> operations.Program[tuple[Replica, ...]]:
        """Moves replicas to a state and informs brokers; returns those whose state does not allow that, unchanged.

        Raises:
            ControllerMovedError: the term is over; brokers are not informed.
        """
        illegal: list[Replica] = []
        by_broker: dict[BrokerId, list[Replica]] = {}
        for replica in replicas:
            if self._context.replica_phase_of(replica) in LEGAL_FROM[phase]:
                by_broker.setdefault(replica.broker_id, []).append(replica)
            else:
                illegal.append(replica)
        try:
            for broker_id, moved in sorted(by_broker.items()):
                yield from self._enter_on(broker_id, moved, phase)
        except ControllerMovedError:
            self._batch.discard()
            raise
        self._batch.close()
        return tuple(illegal)

    def _enter_on(self, broker_id: BrokerId, replicas: list[Replica], phase: ReplicaPhase) -> operations.Program[None]:
        match phase:
            case ReplicaPhase.OFFLINE:
                yield from self._go_offline(broker_id, replicas)
            case ReplicaPhase.NEW:
                for replica in replicas:
                    self._become_new(replica)
            case ReplicaPhase.ONLINE:
                for replica in replicas:
                    self._come_online(replica)
            case ReplicaPhase.NON_EXISTENT:
                for replica in replicas:
                    self._cease(replica)
            case ReplicaPhase.DELETION_STARTED | ReplicaPhase.DELETION_SUCCESSFUL | ReplicaPhase.DELETION_INELIGIBLE:
                for replica in replicas:
                    self._context.replica_phases[replica] = phase
                    if phase is ReplicaPhase.DELETION_STARTED:
                        self._batch.add_stop_replica((broker_id,), replica.partition, is_deleted=True)

    def _become_new(self, replica: Replica) -> None:
        leadership = self._context.leadership.get(replica.partition)
        if leadership is not None:
            if leadership.leader_and_isr.leader == replica.broker_id:
                return  # it leads, so it is not new
            self._batch.add_leader_and_isr(
                (replica.broker_id,), replica.partition, leadership, self._assignment(replica), is_new=True
            )
        self._context.replica_phases[replica] = ReplicaPhase.NEW

    def _come_online(self, replica: Replica) -> None:
        leadership = self._context.leadership.get(replica.partition)
        if leadership is not None and self._context.replica_phase_of(replica) is not ReplicaPhase.NEW:
            self._batch.add_leader_and_isr(
                (replica.broker_id,), replica.partition, leadership, self._assignment(replica)
            )
        self._context.replica_phases[replica] = ReplicaPhase.ONLINE

    def _cease(self, replica: Replica) -> None:
        self._context.assignments[replica.partition] = self._assignment(replica).without(replica.broker_id)
        self._context.replica_phases.pop(replica, None)

    def _assignment(self, replica: Replica) -> ReplicaAssignment:
        return self._context.assignments.get(replica.partition, ReplicaAssignment(replicas=()))

    # --- Offline --------------------------------------------------------------------------------------------------

    def _go_offline(self, broker_id: BrokerId, replicas: list[Replica]) -> operations.Program[None]:
        for replica in replicas:
            self._batch.add_stop_replica((broker_id,), replica.partition, is_deleted=False)
        known = [replica.partition for replica in replicas if replica.partition in self._context.leadership]
        settled = yield from self._remove_from_isr(broker_id, known)
        for name in settled:
            if not self._context.is_being_deleted(name.topic):
                others = (other for other in self._context.replicas_of(name) if other != broker_id)
                self._batch.add_leader_and_isr(
                    others, name, self._context.leadership[name], self._context.assignments[name]
                )
            self._context.replica_phases[Replica(name, broker_id)] = ReplicaPhase.OFFLINE
        for replica in replicas:
            if replica.partition not in self._context.leadership:
                self._batch.add_update_metadata(self._context.registered, (replica.partition,))
                self._context.replica_phases[replica] = ReplicaPhase.OFFLINE

    def _remove_from_isr(
        self, broker_id: BrokerId, names: list[TopicPartition]
    ) -> operations.Program[list[TopicPartition]]:
        """Writes the ISRs without a broker; returns the partitions that are done."""
        settled: list[TopicPartition] = []
        remaining = names
        while remaining:
            current = yield from self._store.read_states(remaining)
            own = {
                name: leadership.leader_and_isr
                for name, leadership in current.items()
                if leadership.controller_epoch <= self._context.controller_epoch
            }
            updates = yield from self._store.update_states(
                {
                    name: _without_member(leader_and_isr, broker_id)
                    for name, leader_and_isr in own.items()
                    if broker_id in leader_and_isr.isr
                }
            )
            untouched = {
                name: leader_and_isr for name, leader_and_isr in own.items() if broker_id not in leader_and_isr.isr
            }
            for name, leader_and_isr in (untouched | updates.written).items():
                self._context.leadership[name] = PartitionLeadership(
                    leader_and_isr=leader_and_isr, controller_epoch=self._context.controller_epoch
                )
                settled.append(name)
            # A partition whose node went with its topic has no ISR to leave.
            settled += [
                name for name in remaining if name not in current and self._context.is_being_deleted(name.topic)
            ]
            remaining = list(updates.outdated)
        return settled


def _without_member(current: LeaderAndIsr, broker_id: BrokerId) -> LeaderAndIsr:
    leader = None if current.leader == broker_id else current.leader
    isr = tuple(member for member in current.isr if member != broker_id)
    # The last member is kept, so that there is a replica to wait for.
    return current.next_epoch(leader=leader, isr=isr or current.isr)
