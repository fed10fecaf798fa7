"""New topics: brokers write their nodes, and the controller brings them online (``onNewPartitionCreation``).

A broker writes a topic's configuration, then its node; the controller's watch does the rest. A topic that was made
while there was no controller, or by one that died in between, is finished by the next one.
"""

from collections.abc import Iterable

from laststand.emulator.core.types import TopicId, TopicPartition
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.context import (
    ControllerContext,
    PartitionPhase,
    Replica,
    ReplicaPhase,
)
from laststand.emulator.core.zookeeper.controller.leader_election import ElectionStrategy
from laststand.emulator.core.zookeeper.controller.partition_states import PartitionStateMachine
from laststand.emulator.core.zookeeper.controller.replica_states import ReplicaStateMachine
from laststand.emulator.core.zookeeper.controller.store import ControllerStore, children_of
from laststand.emulator.core.zookeeper.identifiers import Zxid
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.topic import decode_topic


class TopicChanges:
    """Reads topic nodes into the context, and starts new partitions."""

    def __init__(
        self,
        config: ControllerConfig,
        context: ControllerContext,
        store: ControllerStore,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
    ) -> None:
        self._config = config
        self._context = context
        self._store = store
        self._partitions = partitions
        self._replicas = replicas

    def load(self) -> operations.Program[None]:
        """Reads all topics of a cluster; a new controller knows none."""
        topics = children_of((yield (operations.GetChildren(path=paths.TOPICS, is_watched=True),)), paths.TOPICS)
        yield from self._read(topics)

    def refresh(self) -> operations.Program[None]:
        """Reads which topics there are: forgets those that are gone, starts those that are new."""
        topics = children_of((yield (operations.GetChildren(path=paths.TOPICS, is_watched=True),)), paths.TOPICS)
        for gone in sorted(self._context.topic_ids.keys() - set(topics)):
            self._context.forget_topic(gone)
        new = yield from self._read(topic for topic in topics if topic not in self._context.topic_ids)
        yield from self.start(new)

    def refresh_topic(self, topic: str) -> operations.Program[None]:
        """Reads a topic whose node changed: starts partitions that were added."""
        known = set(self._context.partitions_of(topic))
        before = {name: self._context.assignments[name] for name in known}
        names = yield from self._read((topic,))
        # What is known was assigned by this controller; only new partitions come from elsewhere.
        self._context.assignments |= before
        if not self._context.is_being_deleted(topic):
            yield from self.start(name for name in names if name not in known)

    def start(self, names: Iterable[TopicPartition]) -> operations.Program[None]:
        """Brings new partitions and their replicas online."""
        new = tuple(names)
        if not new:
            return
        replicas = tuple(Replica(name, broker_id) for name in new for broker_id in self._context.replicas_of(name))
        self._partitions.enter(new, PartitionPhase.NEW)
        yield from self._replicas.enter(replicas, ReplicaPhase.NEW)
        yield from self._partitions.bring_online(new, ElectionStrategy.OFFLINE)
        yield from self._replicas.enter(replicas, ReplicaPhase.ONLINE)

    def _read(self, topics: Iterable[str]) -> operations.Program[tuple[TopicPartition, ...]]:
        asked = tuple(topics)
        if not asked:
            return ()
        answers = yield tuple(operations.GetData(path=paths.topic_node(topic), is_watched=True) for topic in asked)
        names: list[TopicPartition] = []
        without_id: list[str] = []
        for topic, answer in zip(asked, answers, strict=True):
            if not isinstance(answer, operations.DataRead):
                continue
            content = decode_topic(answer.data, topic_format=self._config.rules.topic_format)
            self._context.topic_ids[topic] = content.topic_id
            if content.topic_id is None and self._config.ibp.makes_topic_ids:
                self._context.topic_ids[topic] = topic_id_from(answer.stat.czxid)
                without_id.append(topic)
            for number, assignment in sorted(content.partitions.items()):
                name = TopicPartition(topic, number)
                self._context.assignments[name] = assignment
                names.append(name)
        for topic in without_id:
            yield from self._store.write_assignment(topic)
        return tuple(names)


def topic_id_from(czxid: Zxid) -> TopicId:
    """Returns the id of a topic that was created without one: unique, because no other topic was created by that write.

    Kafka draws the id at random; this id is the same for any controller that finds the topic first.
    """
    return TopicId(uuid_text(czxid.to_bytes(16)))
