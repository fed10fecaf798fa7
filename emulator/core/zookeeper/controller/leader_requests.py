"""Elections without a failure: an administrator's, the return to preferred replicas, a topic that became unclean.

Kafka's ``KafkaController.processReplicaLeaderElection``, ``checkAndTriggerAutoLeaderRebalance`` and
``processTopicUncleanLeaderElectionEnable``.
"""

from collections.abc import Iterable

from laststand.emulator.core import admin_messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.context import ControllerContext, PartitionPhase
from laststand.emulator.core.zookeeper.controller.leader_election import ElectionStrategy
from laststand.emulator.core.zookeeper.controller.partition_states import PartitionStateMachine
from laststand.emulator.core.zookeeper.nodes.partition_state import LeaderAndIsr


class LeaderRequests:
    """Elections on request."""

    def __init__(self, config: ControllerConfig, context: ControllerContext, partitions: PartitionStateMachine) -> None:
        self._config = config
        self._context = context
        self._partitions = partitions

    def elect(
        self, names: Iterable[TopicPartition] | None, election: admin_messages.RequestedElection
    ) -> operations.Program[dict[TopicPartition, ErrorCode]]:
        """Elects leaders for partitions, or for all (``None``); then only those that needed an election are answered.

        Raises:
            ControllerMovedError: the term is over.
        """
        asked = tuple(sorted(self._context.assignments)) if names is None else tuple(names)
        errors = {name: self._refusal(name, election) for name in asked}
        needed = tuple(name for name, error in errors.items() if error is ErrorCode.NONE)
        is_preferred = election is admin_messages.RequestedElection.PREFERRED
        strategy = ElectionStrategy.PREFERRED if is_preferred else ElectionStrategy.OFFLINE_UNCLEAN
        results = yield from self._partitions.bring_online(needed, strategy)
        failed = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if is_preferred else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        for name, result in results.items():
            errors[name] = ErrorCode.NONE if isinstance(result, LeaderAndIsr) else failed
        if names is None:
            return {name: error for name, error in errors.items() if error is not ErrorCode.ELECTION_NOT_NEEDED}
        return errors

    def _refusal(self, name: TopicPartition, election: admin_messages.RequestedElection) -> ErrorCode:
        if name not in self._context.assignments:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._context.is_being_deleted(name.topic):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if election is admin_messages.RequestedElection.PREFERRED:
            is_needed = self._context.leader_of(name) != self._context.replicas_of(name)[0]
        else:
            is_needed = not self._context.has_online_leader(name)
        return ErrorCode.NONE if is_needed else ErrorCode.ELECTION_NOT_NEEDED

    def balance(self) -> operations.Program[None]:
        """Returns leaderships to the heads of assignments, broker by broker, where too many are elsewhere.

        Raises:
            ControllerMovedError: the term is over.
        """
        by_head: dict[BrokerId, list[TopicPartition]] = {}
        for name, assignment in sorted(self._context.assignments.items()):
            if assignment.replicas and not self._context.is_being_deleted(name.topic):
                by_head.setdefault(assignment.replicas[0], []).append(name)
        for head, names in sorted(by_head.items()):
            elsewhere = [
                name for name in names if name in self._context.leadership and self._context.leader_of(name) != head
            ]
            if 100 * len(elsewhere) > self._config.leader_imbalance_per_broker_percentage * len(names):
                movable = tuple(name for name in elsewhere if self._can_return(name, head))
                yield from self._partitions.bring_online(movable, ElectionStrategy.PREFERRED)

    def _can_return(self, name: TopicPartition, head: BrokerId) -> bool:
        is_member = head in self._context.leadership[name].leader_and_isr.isr
        return is_member and self._context.is_online(head, name) and name not in self._context.reassigning

    def enable_unclean(self, topic: str) -> operations.Program[None]:
        """Tries again to elect leaders in a topic that now allows unclean elections.

        Raises:
            ControllerMovedError: the term is over.
        """
        waiting = tuple(
            name
            for name, phase in sorted(self._context.partition_phases.items())
            if phase in (PartitionPhase.NEW, PartitionPhase.OFFLINE)
            and topic == name.topic
            and not self._context.is_being_deleted(name.topic)
        )
        yield from self._partitions.bring_online(waiting, ElectionStrategy.OFFLINE)
