"""Translates ZooKeeper's writes into committed metadata and events.

In a ZooKeeper cluster the committed state is the history of nodes, and its order is the zxid: every event about
metadata has the zxid of its write as ``metadata_offset``. The process that decided a write may never learn that it was
executed; so the events come from the writes themselves, in the server's order, not from the processes that requested
them.
"""

from collections.abc import Callable, Iterator
from typing import Final

from laststand.emulator.core import events, records
from laststand.emulator.core.broker.zookeeper.metadata_cache import id_by_name
from laststand.emulator.core.effective_config import CLUSTER, effective_topic_properties
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    ChangeReason,
    ConfigResource,
    FenceReason,
    IncarnationId,
    MetadataOffset,
    NodeId,
    RecoveryStrategy,
    TopicPartition,
    ZnodeWrite,
)
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.identifiers import NodeVersion, SessionId, Zxid
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import LeaderAndIsr, decode_state
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_config, decode_rack
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment, TopicAssignment, decode_topic
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules

_DEFAULT_BROKER: Final = "<default>"


class ZooKeeperHistory:
    """The metadata image that all writes lead to, and their events.

    Args:
        rules: of the brokers, which decide how nodes are read.
        properties: of every node.
        incarnation_of: returns which process of a broker has a session.

    Attributes:
        image: the result of the writes so far; ``next_offset`` is the zxid after the last one.
    """

    def __init__(
        self,
        rules: ZooKeeperRules,
        properties: NodeProperties,
        *,
        incarnation_of: Callable[[BrokerId, SessionId], IncarnationId],
    ) -> None:
        self.image = MetadataImage()
        self._rules = rules
        self._properties = properties
        self._incarnation_of = incarnation_of
        self._assignments: dict[str, TopicAssignment] = {}

    def fold(self, change: operations.TreeChange, *, cause_id: CauseId) -> list[events.ControllerEvent]:
        """Applies a change of a node to the image; returns the events to record.

        Raises:
            MalformedNodeError: the node makes no sense.
        """
        written = events.ZnodeWritten(
            cause_id=cause_id,
            metadata_offset=MetadataOffset(change.zxid),
            path=change.path,
            write=ZnodeWrite(change.kind.value),
            session_id=change.session_id,
        )
        return [written, *self._meaning(change, cause_id)]

    def passed(self, zxid: Zxid) -> None:
        """Moves the image's end past a zxid, even if its write changed no metadata."""
        self.image.next_offset = MetadataOffset(zxid + 1)

    def _meaning(self, change: operations.TreeChange, cause_id: CauseId) -> Iterator[events.ControllerEvent]:
        path, is_gone = change.path, change.kind is operations.ZooKeeperEventKind.DELETED
        name = paths.partition_of_state_node(path)
        topic, configured = paths.topic_of_node(path), paths.topic_of_config_node(path)
        broker = path.removeprefix(f"{paths.BROKER_IDS}/")
        if name is not None:
            if not is_gone:
                yield from self._state_written(name, change, cause_id)
        elif topic is not None:
            yield from self._topic_gone(topic, change, cause_id) if is_gone else self._assigned(topic, change, cause_id)
        elif configured is not None:
            yield from self._configured(ConfigResource.TOPIC, configured, change, cause_id)
        elif path.startswith(f"{paths.BROKER_CONFIGS}/"):
            entity = path.removeprefix(f"{paths.BROKER_CONFIGS}/")
            entity = CLUSTER if entity == _DEFAULT_BROKER else entity
            yield from self._configured(ConfigResource.BROKER, entity, change, cause_id)
        elif broker != path:
            broker_id = BrokerId(NodeId(int(broker)))
            yield from self._left(broker_id, change, cause_id) if is_gone else self._came(broker_id, change, cause_id)

    def _replay(self, record: records.Record, zxid: Zxid) -> None:
        self.image.next_offset = MetadataOffset(zxid)  # zxids have gaps: not every write is about metadata
        self.image.replay(record, offset=MetadataOffset(zxid))

    # --- Brokers --------------------------------------------------------------------------------------------------

    def _came(
        self, broker_id: BrokerId, change: operations.TreeChange, cause_id: CauseId
    ) -> Iterator[events.ControllerEvent]:
        if change.kind is not operations.ZooKeeperEventKind.CREATED:
            return  # its content is set in the same transaction
        offset, epoch = MetadataOffset(change.zxid), BrokerEpoch(change.zxid)
        incarnation_id = self._incarnation_of(broker_id, change.session_id)
        record = records.RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=incarnation_id,
            broker_epoch=epoch,
            log_dirs=(),
            fenced=False,
            rack=decode_rack(change.data),
        )
        self._replay(record, change.zxid)
        yield events.BrokerRegistered(
            cause_id=cause_id,
            metadata_offset=offset,
            broker_id=broker_id,
            broker_epoch=epoch,
            incarnation_id=incarnation_id,
            previous_broker_epoch=None,
            stored_broker_epoch=None,
            is_clean=True,
        )
        yield events.BrokerUnfenced(cause_id=cause_id, metadata_offset=offset, broker_id=broker_id, broker_epoch=epoch)

    def _left(
        self, broker_id: BrokerId, change: operations.TreeChange, cause_id: CauseId
    ) -> Iterator[events.ControllerEvent]:
        epoch = self.image.brokers[broker_id].broker_epoch
        self._replay(records.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch), change.zxid)
        yield events.BrokerFenced(
            cause_id=cause_id,
            metadata_offset=MetadataOffset(change.zxid),
            broker_id=broker_id,
            broker_epoch=epoch,
            reason=FenceReason.SHUTDOWN if change.is_closing else FenceReason.SESSION_EXPIRED,
        )

    # --- Topics ---------------------------------------------------------------------------------------------------

    def _assigned(
        self, topic: str, change: operations.TreeChange, cause_id: CauseId
    ) -> Iterator[events.ControllerEvent]:
        assignment = decode_topic(change.data, topic_format=self._rules.topic_format)
        before = self._assignments.get(topic)
        self._assignments[topic] = assignment
        topic_id = assignment.topic_id or id_by_name(topic)
        known_id = self.image.topics.get(topic)
        if known_id != topic_id:
            self._replay(records.TopicRecord(name=topic, topic_id=topic_id), change.zxid)
            yield events.TopicCreated(
                cause_id=cause_id, metadata_offset=MetadataOffset(change.zxid), topic=topic, topic_id=topic_id
            )
        for number, replicas in sorted(assignment.partitions.items()):
            name = TopicPartition(topic, number)
            state = self.image.partitions.get(name)
            if state is not None and before is not None and before.partitions.get(number) != replicas:
                decided = LeaderAndIsr(
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=state.isr,
                    leader_recovery_state=state.leader_recovery_state,
                    partition_epoch=state.partition_epoch,
                )
                yield from self._changed(name, decided, ChangeReason.REASSIGNMENT, change.zxid, cause_id)

    def _topic_gone(
        self, topic: str, change: operations.TreeChange, cause_id: CauseId
    ) -> Iterator[events.ControllerEvent]:
        self._assignments.pop(topic, None)
        topic_id = self.image.topics.get(topic)
        if topic_id is not None:
            self._replay(records.RemoveTopicRecord(topic_id=topic_id), change.zxid)
            yield events.TopicDeleted(
                cause_id=cause_id, metadata_offset=MetadataOffset(change.zxid), topic=topic, topic_id=topic_id
            )

    def _configured(
        self, resource: ConfigResource, entity: str, change: operations.TreeChange, cause_id: CauseId
    ) -> Iterator[events.ControllerEvent]:
        before, after = self.image.configs(resource, entity), decode_config(change.data)
        for key in sorted({*before, *after}):
            value = after.get(key)
            if before.get(key) != value:
                record = records.ConfigRecord(resource=resource, resource_name=entity, name=key, value=value)
                self._replay(record, change.zxid)
                yield events.ConfigChanged(
                    cause_id=cause_id,
                    metadata_offset=MetadataOffset(change.zxid),
                    resource=resource,
                    resource_name=entity,
                    name=key,
                    value=value,
                )

    # --- Partitions -----------------------------------------------------------------------------------------------

    def _state_written(
        self, name: TopicPartition, change: operations.TreeChange, cause_id: CauseId
    ) -> Iterator[events.ControllerEvent]:
        version = NodeVersion(0) if change.version is None else change.version
        leadership = decode_state(change.data, version, state_format=self._rules.state_format)
        if leadership is None or name.topic not in self.image.topics:
            return
        decided, before = leadership.leader_and_isr, self.image.partitions.get(name)
        yield from self._changed(name, decided, self._reason(decided, before), change.zxid, cause_id)

    def _reason(self, after: LeaderAndIsr, before: PartitionState | None) -> ChangeReason:
        """Returns the cause of a decision, as far as the nodes say."""
        if before is None:
            return ChangeReason.CREATED
        if after.leader_epoch == before.leader_epoch:
            return ChangeReason.ALTER_PARTITION
        if before.adding_replicas or before.removing_replicas:
            return ChangeReason.REASSIGNMENT
        if before.leader is None:
            return ChangeReason.BROKER_UNFENCED
        gone = {before.leader, *(set(before.isr) - set(after.isr))} - self.image.brokers.keys()
        return ChangeReason.BROKER_FENCED if gone else ChangeReason.ELECT_LEADERS

    def _changed(
        self, name: TopicPartition, decided: LeaderAndIsr, reason: ChangeReason, zxid: Zxid, cause_id: CauseId
    ) -> Iterator[events.ControllerEvent]:
        before = self.image.partitions.get(name)
        topic_id = self.image.topics[name.topic]
        assigned = self._assignments[name.topic].partitions.get(name.partition, ReplicaAssignment(replicas=decided.isr))
        record = records.PartitionRecord(
            topic_id=topic_id,
            partition=name.partition,
            replicas=assigned.replicas,
            isr=decided.isr,
            leader=decided.leader,
            leader_epoch=decided.leader_epoch,
            partition_epoch=decided.partition_epoch,
            leader_recovery_state=decided.leader_recovery_state,
            adding_replicas=assigned.adding,
            removing_replicas=assigned.removing,
        )
        self._replay(record, zxid)
        election = _election(decided, before)
        min_isr = effective_topic_properties(
            self.image, topic=name.topic, node_id=NodeId(-1), static=self._properties
        ).min_insync_replicas
        yield events.PartitionChanged(
            cause_id=cause_id,
            topic=name.topic,
            partition=name.partition,
            topic_id=topic_id,
            metadata_offset=MetadataOffset(zxid),
            reason=reason,
            election=election,
            broker_id=decided.leader if reason is ChangeReason.ALTER_PARTITION else None,
            effective_min_isr=min(min_isr, len(assigned.replicas)),
            leader=decided.leader,
            leader_epoch=decided.leader_epoch,
            partition_epoch=decided.partition_epoch,
            replicas=assigned.replicas,
            isr=decided.isr,
            elr=(),
            last_known_elr=(),
            last_known_leader=None,
            leader_recovery_state=decided.leader_recovery_state,
            adding_replicas=assigned.adding,
            removing_replicas=assigned.removing,
        )
        if election is events.Election.UNCLEAN and decided.leader is not None:
            yield events.UncleanLeaderElected(
                cause_id=cause_id,
                topic=name.topic,
                partition=name.partition,
                topic_id=topic_id,
                metadata_offset=MetadataOffset(zxid),
                leader=decided.leader,
                leader_epoch=decided.leader_epoch,
                method=events.UncleanMethod.FIRST,
                strategy=RecoveryStrategy.AGGRESSIVE,
                candidates=tuple(each for each in assigned.replicas if each in self.image.brokers),
                draw=None,
                must_hear_from=(),
                answers=(),
                discarded=(),
                why="no member of the ISR is online",
            )


def _election(after: LeaderAndIsr, before: PartitionState | None) -> events.Election:
    """Returns the kind of election by which a decision found its leader."""
    if before is None:
        return events.Election.ISR
    if after.leader == before.leader:
        return events.Election.NONE
    if after.leader is None:
        return events.Election.NO_CANDIDATE
    return events.Election.ISR if after.leader in before.isr else events.Election.UNCLEAN
