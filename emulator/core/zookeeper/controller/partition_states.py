"""The life of a partition, and the elections in it (Kafka's ``PartitionStateMachine``).

States and edges::

    NON_EXISTENT --> NEW --> ONLINE <--> OFFLINE --> NON_EXISTENT
                     NEW --> OFFLINE        (ONLINE and OFFLINE may follow themselves)

NEW becomes ONLINE with a first state node: the first live replica leads, all live ones are the ISR, epochs are 0.
ONLINE and OFFLINE become ONLINE by an election, which reads the state node again: a leader may have written it. An
election that finds no leader, or a node that another controller wrote, leaves the partition as it was.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

from laststand.emulator.core.types import LeaderEpoch, TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.context import ControllerContext, PartitionPhase
from laststand.emulator.core.zookeeper.controller.control_batch import ControlBatch
from laststand.emulator.core.zookeeper.controller.leader_election import (
    ElectionOutcome,
    ElectionStrategy,
    Electorate,
    RecoveryMark,
    elect_leader,
)
from laststand.emulator.core.zookeeper.controller.store import ControllerStore, StateUpdates
from laststand.emulator.core.zookeeper.errors import ControllerMovedError
from laststand.emulator.core.zookeeper.nodes.partition_state import LeaderAndIsr, PartitionLeadership

_ANY_STARTED: Final = frozenset({PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE})

LEGAL_FROM: Final[Mapping[PartitionPhase, frozenset[PartitionPhase]]] = MappingProxyType(
    {
        PartitionPhase.NEW: frozenset({PartitionPhase.NON_EXISTENT}),
        PartitionPhase.ONLINE: _ANY_STARTED,
        PartitionPhase.OFFLINE: _ANY_STARTED,
        PartitionPhase.NON_EXISTENT: frozenset({PartitionPhase.OFFLINE}),
    }
)
"""The phases from which each phase may be entered."""


class ElectionFailure(Enum):
    """Reason why a partition did not come online."""

    ILLEGAL = "illegal transition"
    NO_LEADER = "nobody can lead"
    NO_STATE = "no state node"
    LATER_CONTROLLER = "written by a later controller"
    REFUSED = "refused by ZooKeeper"


ElectionResult: TypeAlias = LeaderAndIsr | ElectionFailure


class PartitionStateMachine:
    """Moves partitions of the context, and elects their leaders."""

    def __init__(
        self, config: ControllerConfig, context: ControllerContext, store: ControllerStore, batch: ControlBatch
    ) -> None:
        self._config = config
        self._context = context
        self._store = store
        self._batch = batch

    def start(self) -> operations.Program[None]:
        """Determines the state of all partitions, and elects leaders for those that have none."""
        for name in sorted(self._context.assignments):
            phase = PartitionPhase.NEW
            if name in self._context.leadership:
                is_led = self._context.has_online_leader(name)
                phase = PartitionPhase.ONLINE if is_led else PartitionPhase.OFFLINE
            self._context.partition_phases[name] = phase
        yield from self.elect_missing_leaders()

    def elect_missing_leaders(self) -> operations.Program[dict[TopicPartition, ElectionResult]]:
        """Tries to bring all NEW and OFFLINE partitions online, those of topics being deleted excepted."""
        waiting = tuple(
            name
            for name, phase in sorted(self._context.partition_phases.items())
            if phase in (PartitionPhase.NEW, PartitionPhase.OFFLINE) and not self._context.is_being_deleted(name.topic)
        )
        return (yield from self.bring_online(waiting, ElectionStrategy.OFFLINE))

    def enter(self, names: Iterable[TopicPartition], phase: PartitionPhase) -> tuple[TopicPartition, ...]:
        """Marks partitions as NEW, OFFLINE or NON_EXISTENT; returns those that may not, and keep their state."""
        illegal = []
        for name in names:
            if self._context.phase_of(name) not in LEGAL_FROM[phase]:
                illegal.append(name)
            elif phase is PartitionPhase.NON_EXISTENT:
                del self._context.partition_phases[name]
            else:
                self._context.partition_phases[name] = phase
        return tuple(illegal)

    def bring_online(
        self, names: Iterable[TopicPartition], strategy: ElectionStrategy
    ) -> operations.Program[dict[TopicPartition, ElectionResult]]:
        """Brings partitions online and informs brokers; returns each one's leader and ISR, or why it has no leader.

        Raises:
            ControllerMovedError: the term is over; brokers are not informed.
        """
        asked = tuple(names)
        if not asked:
            return {}
        results: dict[TopicPartition, ElectionResult] = {
            name: ElectionFailure.ILLEGAL
            for name in asked
            if self._context.phase_of(name) not in LEGAL_FROM[PartitionPhase.ONLINE]
        }
        legal = tuple(name for name in asked if name not in results)
        new = tuple(name for name in legal if self._context.phase_of(name) is PartitionPhase.NEW)
        try:
            results |= yield from self._initialise(new)
            results |= yield from self._elect(tuple(name for name in legal if name not in new), strategy)
        except ControllerMovedError:
            self._batch.discard()
            raise
        for name, result in results.items():
            if isinstance(result, LeaderAndIsr):
                self._context.partition_phases[name] = PartitionPhase.ONLINE
        self._batch.close()
        return results

    # --- The first leader -----------------------------------------------------------------------------------------

    def _initialise(
        self, names: tuple[TopicPartition, ...]
    ) -> operations.Program[dict[TopicPartition, ElectionResult]]:
        results: dict[TopicPartition, ElectionResult] = dict.fromkeys(names, ElectionFailure.NO_LEADER)
        decided = {}
        for name in names:
            live = tuple(
                replica for replica in self._context.replicas_of(name) if self._context.is_online(replica, name)
            )
            if live:
                decided[name] = LeaderAndIsr(leader=live[0], leader_epoch=LeaderEpoch(0), isr=live)
        made = yield from self._store.create_states(decided)
        for name, leader_and_isr in decided.items():
            if name not in made:
                results[name] = ElectionFailure.REFUSED
                continue
            results[name] = leader_and_isr
            self._remember(name, leader_and_isr)
            self._batch.add_leader_and_isr(
                leader_and_isr.isr,
                name,
                self._context.leadership[name],
                self._context.assignments[name],
                is_new=True,
            )
        return results

    # --- Elections ------------------------------------------------------------------------------------------------

    def _elect(
        self, names: tuple[TopicPartition, ...], strategy: ElectionStrategy
    ) -> operations.Program[dict[TopicPartition, ElectionResult]]:
        results: dict[TopicPartition, ElectionResult] = {}
        remaining = names
        while remaining:
            updates = yield from self._elect_once(remaining, strategy, results)
            # Another process wrote in between: the node is read again, and the election is repeated.
            remaining = updates.outdated
        return results

    def _elect_once(
        self,
        names: tuple[TopicPartition, ...],
        strategy: ElectionStrategy,
        results: dict[TopicPartition, ElectionResult],
    ) -> operations.Program[StateUpdates]:
        current = yield from self._store.read_states(names)
        results |= dict.fromkeys((name for name in names if name not in current), ElectionFailure.NO_STATE)
        own = {name: leadership for name, leadership in current.items() if self._is_own(leadership)}
        results |= dict.fromkeys(current.keys() - own.keys(), ElectionFailure.LATER_CONTROLLER)
        unclean_topics = yield from self._unclean_topics(own, strategy)
        outcomes = {
            name: elect_leader(strategy, self._electorate(name, leadership, unclean_topics))
            for name, leadership in own.items()
        }
        results |= dict.fromkeys(
            (name for name, outcome in outcomes.items() if outcome.elected is None), ElectionFailure.NO_LEADER
        )
        updates = yield from self._store.update_states(
            {name: outcome.elected for name, outcome in outcomes.items() if outcome.elected is not None}
        )
        results |= dict.fromkeys(updates.refused, ElectionFailure.REFUSED)
        for name, leader_and_isr in updates.written.items():
            results[name] = leader_and_isr
            self._announce(name, leader_and_isr, outcomes[name])
        return updates

    def _is_own(self, leadership: PartitionLeadership) -> bool:
        return leadership.controller_epoch <= self._context.controller_epoch

    def _unclean_topics(
        self, states: Mapping[TopicPartition, PartitionLeadership], strategy: ElectionStrategy
    ) -> operations.Program[frozenset[str]]:
        """Returns the topics that allow unclean elections; reads only those that have no live ISR member."""
        match strategy:
            case ElectionStrategy.OFFLINE:
                asked = (
                    name.topic
                    for name, leadership in states.items()
                    if not any(self._context.is_online(member, name) for member in leadership.leader_and_isr.isr)
                )
                return (yield from self._store.read_unclean_topics(asked))
            case ElectionStrategy.OFFLINE_UNCLEAN:
                return frozenset(name.topic for name in states)
            case _:
                return frozenset()

    def _electorate(
        self, name: TopicPartition, leadership: PartitionLeadership, unclean_topics: frozenset[str]
    ) -> Electorate:
        replicas = self._context.replicas_of(name)
        leaving = (
            replica
            for replica in replicas
            if replica in self._context.shutting_down and self._context.is_online_or_shutting_down(replica, name)
        )
        is_recorded = self._config.ibp.records_leader_recovery
        return Electorate(
            assignment=self._context.assignments[name],
            current=leadership.leader_and_isr,
            online=frozenset(replica for replica in replicas if self._context.is_online(replica, name)),
            shutting_down=frozenset(leaving),
            is_unclean_allowed=name.topic in unclean_topics,
            recovery_mark=RecoveryMark.RECORDED if is_recorded else RecoveryMark.NOT_RECORDED,
        )

    def _announce(self, name: TopicPartition, leader_and_isr: LeaderAndIsr, outcome: ElectionOutcome) -> None:
        self._remember(name, leader_and_isr)
        self._batch.add_leader_and_isr(
            outcome.recipients, name, self._context.leadership[name], self._context.assignments[name]
        )

    def _remember(self, name: TopicPartition, leader_and_isr: LeaderAndIsr) -> None:
        self._context.leadership[name] = PartitionLeadership(
            leader_and_isr=leader_and_isr, controller_epoch=self._context.controller_epoch
        )
