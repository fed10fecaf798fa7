"""One term of an elected controller: its copy of the cluster, its machines, its start (``onControllerFailover``).

A term's state is created for the term and dropped with it. The order of the start matters: brokers learn which brokers
are alive before they get roles, as they ignore a leader that they do not know to be alive. Dead replicas leave their
ISRs before leaders are looked for, so a dead leader costs two writes here, and one at a running controller.
"""

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId
from laststand.emulator.core.zookeeper import control_messages, operations
from laststand.emulator.core.zookeeper.controller.alter_partition import AlterPartition
from laststand.emulator.core.zookeeper.controller.broker_changes import BrokerChanges, read_brokers
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.context import ControllerContext, Replica
from laststand.emulator.core.zookeeper.controller.control_batch import ControlBatch
from laststand.emulator.core.zookeeper.controller.controlled_shutdown import ControlledShutdown
from laststand.emulator.core.zookeeper.controller.controller_election import ControllerTerm
from laststand.emulator.core.zookeeper.controller.isr_notifications import Notifications
from laststand.emulator.core.zookeeper.controller.leader_requests import LeaderRequests
from laststand.emulator.core.zookeeper.controller.partition_states import PartitionStateMachine
from laststand.emulator.core.zookeeper.controller.reassignment import Reassignments
from laststand.emulator.core.zookeeper.controller.replica_states import ReplicaStateMachine
from laststand.emulator.core.zookeeper.controller.store import ControllerStore, children_of
from laststand.emulator.core.zookeeper.controller.topic_changes import TopicChanges
from laststand.emulator.core.zookeeper.controller.topic_deletion import TopicDeletion
from laststand.emulator.core.zookeeper.inter_broker_protocol import IsrChange
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.rules import WatchNotifications


class Term:
    """The machines of one term; each method is a program of one event."""

    def __init__(self, config: ControllerConfig, term: ControllerTerm) -> None:
        self.context = ControllerContext()
        self.context.controller_epoch = term.controller_epoch
        self.context.epoch_version = term.epoch_version
        self.store = ControllerStore(config, self.context)
        self.batch = ControlBatch(config, self.context)
        self.partitions = PartitionStateMachine(config, self.context, self.store, self.batch)
        self.replicas = ReplicaStateMachine(self.context, self.store, self.batch)
        self.deletion = TopicDeletion(self.context, self.store, self.batch, self.partitions, self.replicas)
        self.reassignments = Reassignments(
            config, self.context, self.store, self.batch, self.partitions, self.replicas, self.deletion
        )
        self.brokers = BrokerChanges(
            self.context, self.batch, self.partitions, self.replicas, self.reassignments, self.deletion
        )
        self.shutdown = ControlledShutdown(self.context, self.batch, self.partitions, self.replicas)
        self.alter_partition = AlterPartition(config, self.context, self.store, self.batch)
        self.notifications = Notifications(
            self.context,
            self.store,
            self.batch,
            self.replicas,
            self.reassignments,
            watches_isr_changes=_watches_isr_changes(config),
        )
        self.leaders = LeaderRequests(config, self.context, self.partitions)
        self.topics = TopicChanges(config, self.context, self.store, self.partitions, self.replicas)

    def start(self) -> operations.Program[None]:
        """Starts the term: sets watches, reads the complete copy, and handles all events that wait for a controller.

        Raises:
            ControllerMovedError: the term is over already.
        """
        yield from self.notifications.discard_all()
        self.context.brokers = yield from read_brokers()
        yield from self.topics.load()
        self.context.leadership = yield from self.store.read_states(sorted(self.context.assignments))
        self.context.reassigning = {
            name: None
            for name, assignment in sorted(self.context.assignments.items())
            if assignment.is_being_reassigned
        }
        self.deletion.take_over((yield from self._topics_to_delete()))
        self.batch.add_update_metadata(self.context.registered, ())
        self.batch.close()
        yield from self.replicas.start()
        yield from self.partitions.start()
        yield from self.reassignments.resume_all()
        yield from self.deletion.go_on()

    def read_deletions(self) -> operations.Program[None]:
        """Queues the topics whose deletion was requested; the request node of an unknown topic is deleted."""
        asked = yield from self._topics_to_delete()
        known = [topic for topic in asked if topic in self.context.topic_ids]
        for topic in asked:
            if topic not in known:
                yield from self.store.delete_recursively(paths.delete_topic_node(topic))
        new = [topic for topic in known if not self.context.is_being_deleted(topic)]
        if new:
            yield from self.deletion.queue(new)

    def check_config(self, topic: str) -> operations.Program[None]:
        """Elects leaders in a topic whose configuration allows unclean elections, even if it did before."""
        if topic in self.context.topic_ids and (yield from self.store.read_unclean_topics([topic])):
            yield from self.leaders.enable_unclean(topic)

    def _topics_to_delete(self) -> operations.Program[tuple[str, ...]]:
        path = paths.DELETE_TOPICS
        return children_of((yield (operations.GetChildren(path=path, is_watched=True),)), path)

    def handle_roles_answer(
        self, broker_id: BrokerId, response: control_messages.LeaderAndIsrResponse
    ) -> operations.Program[None]:
        """Handles a broker's response to LeaderAndIsr: replicas in a failed directory go offline."""
        failed = {result.name for result in response.partitions if result.error is ErrorCode.KAFKA_STORAGE_ERROR}
        working = {result.name for result in response.partitions if result.error is ErrorCode.NONE}
        before = self.context.offline_replicas.get(broker_id, frozenset())
        self.context.offline_replicas[broker_id] = (before - working) | failed
        lost = sorted(failed - before)
        if lost:
            yield from self.brokers.lose(tuple(Replica(name, broker_id) for name in lost))


def _watches_isr_changes(config: ControllerConfig) -> bool:
    """Returns whether notifications of leaders that write their ISR themselves are watched."""
    is_always = config.rules.watch_notifications is WatchNotifications.ALWAYS
    return is_always or config.ibp.isr_change is IsrChange.ZOOKEEPER
