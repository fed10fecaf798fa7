"""Leaders that wrote their ISR themselves, and log directories that failed: reported by sequence nodes.

Below IBP 2.7-IV2 a leader sets its state node and leaves a notification; the controller reads the nodes that are named,
sends UpdateMetadata to all brokers, and deletes the notification. Until then its copy is stale. Kafka listens
at every protocol version, as other brokers may be older. Kafka's ``KafkaController.processIsrChangeNotification``.
"""

from laststand.emulator.core.types import TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.context import ControllerContext, ReplicaPhase
from laststand.emulator.core.zookeeper.controller.control_batch import ControlBatch
from laststand.emulator.core.zookeeper.controller.reassignment import Reassignments
from laststand.emulator.core.zookeeper.controller.replica_states import ReplicaStateMachine
from laststand.emulator.core.zookeeper.controller.store import ControllerStore, children_of
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_isr_notification, decode_log_dir_event


class Notifications:
    """Reads notifications, acts on them, and deletes them."""

    def __init__(
        self,
        context: ControllerContext,
        store: ControllerStore,
        batch: ControlBatch,
        replicas: ReplicaStateMachine,
        reassignments: Reassignments,
        *,
        watches_isr_changes: bool,
    ) -> None:
        self._context = context
        self._store = store
        self._batch = batch
        self._replicas = replicas
        self._reassignments = reassignments
        self._watches_isr_changes = watches_isr_changes

    def discard_all(self) -> operations.Program[None]:
        """Deletes notifications to a predecessor: a new controller reads all state nodes anyway."""
        is_watched = {
            paths.LOG_DIR_EVENT_NOTIFICATIONS: True,
            paths.ISR_CHANGE_NOTIFICATIONS: self._watches_isr_changes,
        }
        for parent, watch in is_watched.items():
            names = children_of((yield (operations.GetChildren(path=parent, is_watched=watch),)), parent)
            yield from self._delete(parent, names)

    def handle_isr_changes(self) -> operations.Program[None]:
        """Reads the ISRs that leaders wrote, and sends them to all brokers, changed or not."""
        parent = paths.ISR_CHANGE_NOTIFICATIONS
        names = children_of((yield (operations.GetChildren(path=parent, is_watched=True),)), parent)
        named: set[TopicPartition] = set()
        for data in (yield from self._read(parent, names)):
            named |= decode_isr_notification(data)
        if named:
            yield from self.refresh(tuple(sorted(named)))
            yield from self._reassignments.complete_if_in_sync(sorted(named))
        yield from self._delete(parent, names)

    def refresh(self, names: tuple[TopicPartition, ...]) -> operations.Program[None]:
        """Reads state nodes again, and sends UpdateMetadata of them to all brokers."""
        self._context.leadership |= yield from self._store.read_states(names)
        self._batch.add_update_metadata(self._context.registered, names)
        self._batch.close()

    def handle_log_dir_events(self) -> operations.Program[None]:
        """Sends LeaderAndIsr to brokers whose directory failed: the response names the remaining replicas."""
        parent = paths.LOG_DIR_EVENT_NOTIFICATIONS
        names = children_of((yield (operations.GetChildren(path=parent, is_watched=True),)), parent)
        failed = {decode_log_dir_event(data) for data in (yield from self._read(parent, names))}
        broker_ids = sorted(broker_id for broker_id in failed if broker_id is not None)
        yield from self._replicas.enter(self._context.replicas_on(broker_ids), ReplicaPhase.ONLINE)
        yield from self._delete(parent, names)

    def _read(self, parent: str, names: tuple[str, ...]) -> operations.Program[tuple[bytes, ...]]:
        if not names:
            return ()
        answers = yield tuple(operations.GetData(path=f"{parent}/{name}") for name in names)
        return tuple(answer.data for answer in answers if isinstance(answer, operations.DataRead))

    def _delete(self, parent: str, names: tuple[str, ...]) -> operations.Program[None]:
        yield from self._store.write(operations.Delete(path=f"{parent}/{name}", version=None) for name in names)
