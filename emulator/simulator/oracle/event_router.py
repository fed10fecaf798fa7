"""Passes each event to the checks that it concerns, and collects the partitions of the step.

Events about a deleted topic concern no promise any more, except the changes of its logs by brokers that do not know of
the deletion (D15): a topic of the same name makes its own promises.
"""

from collections.abc import Callable, Iterator, Mapping

from laststand.emulator.core import events
from laststand.emulator.core.broker.zookeeper.metadata_cache import real_topic_id
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerId,
    FenceReason,
    IncarnationId,
    NodeId,
    NodeRole,
    Offset,
    TopicId,
    TopicPartition,
    TruncationReason,
)
from laststand.emulator.simulator.oracle.checks import Checks
from laststand.emulator.simulator.oracle.guarantee import GuaranteeLedger, ProvenShutdowns
from laststand.emulator.simulator.oracle.truth import Acknowledgement


class EventRouter:
    """The router of one run.

    Attributes:
        dirty: partitions that the step has touched.
        has_applied_metadata: whether the step's node applied new metadata; its reader resets it.
    """

    def __init__(self, checks: Checks) -> None:
        self.dirty: dict[TopicPartition, None] = {}
        self.has_applied_metadata = False
        self._checks = checks
        self._topic_ids: dict[str, TopicId] = {}
        self._shutdowns = ProvenShutdowns()
        self._registered_at: dict[IncarnationId | None, int] = {}
        self._anywhere: Mapping[type[events.Event], Callable[[NodeId, events.Event], None]] = {
            events.BrokerFenced: self._fenced,
            events.BrokerRegistered: self._registered,
            events.BrokerStateChanged: self._state_changed,
            events.BrokerUnfenced: self._unfenced,
            events.ConfigChanged: self._config_changed,
            events.ControlledShutdownStarted: self._fenced,
            events.FeatureChanged: self._feature_changed,
            events.IncarnationEnded: self._ended,
            events.MetadataApplied: self._applied,
            events.NodeStarted: self._node_started,
            events.ControllerActivated: self._activated,
            events.TopicCreated: self._topic_created,
            events.TopicDeleted: self._topic_deleted,
            events.ZnodeWritten: self._znode_written,
        }
        self._on_partition: Mapping[type[events.Event], Callable[[NodeId, TopicPartition, events.Event], None]] = {
            events.AlterPartitionAnswered: self._answered,
            events.AlterPartitionDecided: self._decided,
            events.AlterPartitionProposed: self._proposed,
            events.BatchAppended: self._appended,
            events.BecameFollower: self._became_follower,
            events.BecameLeader: self._became_leader,
            events.HighWatermarkAdvanced: self._high_watermark_advanced,
            events.LogDeleted: self._log_deleted,
            events.LogOpened: self._log_opened,
            events.LogStartOffsetRaised: self._log_start_raised,
            events.LogTruncated: self._truncated,
            events.MarkersSent: self._markers_sent,
            events.PartitionChanged: self._partition_changed,
            events.PositionReturned: self._position_returned,
            events.PowerLost: self._power_lost,
            events.ProduceAnswered: self._produce_answered,
            events.RecoveryFinished: self._counted,
            events.StrayDeleted: self._stray_deleted,
            events.StrayDetected: self._stray_detected,
            events.TransitionBegun: self._transition_begun,
            events.TransitionEnded: self._transition_ended,
            events.UncleanLeaderElected: self._elected_uncleanly,
            events.UncleanRecoveryDropped: self._recovery_dropped,
            events.UncleanRecoveryStarted: self._recovery_started,
        }

    def route(self, node_id: NodeId, incarnation: int, event: events.Event) -> None:
        """Passes an event on."""
        offset = getattr(event, "metadata_offset", None)
        if offset is not None and node_id in (cluster := self._checks.cluster).metadata_nodes:
            self._checks.metadata.written(cluster.controller_term(node_id, incarnation), offset)
        if not isinstance(event, events.PartitionEvent):
            handler = self._anywhere.get(type(event))
            if handler is not None:
                handler(node_id, event)
            return
        name = TopicPartition(event.topic, event.partition)
        self.dirty[name] = None
        on_partition = self._on_partition.get(type(event))
        if on_partition is not None:
            on_partition(node_id, name, event)

    def is_current(self, topic: str, topic_id: TopicId | None) -> bool:
        """Returns whether a topic of this name has this id now."""
        return self._topic_ids.get(topic) == topic_id

    # --- The whole cluster ------------------------------------------------------------------------------------------

    def _node_started(self, node_id: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.NodeStarted)
        if event.role is NodeRole.CONTROLLER and not self._checks.cluster.has_quorum:
            self._checks.controller.controller_started()
            self._checks.metadata.controller_started()
        elif event.role is NodeRole.BROKER:
            self._checks.logs.started(node_id)

    def _activated(self, _: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.ControllerActivated)
        self._checks.controller.controller_started()

    def _ended(self, _: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.IncarnationEnded)
        if not self._shutdowns.leaves_proof(event):
            self._ended_without_proof(event)
        self._checks.controller.ended(event)

    def _ended_without_proof(self, event: events.IncarnationEnded) -> None:
        for ledger in self._ledgers():
            ledger.ended(event, moment=self._checks.alarm_log.moment)

    def _ledgers(self) -> Iterator[GuaranteeLedger]:
        yield self._checks.outstanding
        yield from (truth.ledger for truth in self._checks.truths.values())

    def _state_changed(self, node_id: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.BrokerStateChanged)
        if event.broker_epoch is not None:
            self._shutdowns.heard(node_id, self._checks.cluster.nodes[BrokerId(node_id)].incarnation)

    def _registered(self, _: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.BrokerRegistered)
        self._checks.tally.superseded(event.broker_id, self._checks.cluster.nodes[event.broker_id].broker)
        self._checks.tally.registered(event)
        self._checks.conjunctions.registered(event)
        self._registered_at.setdefault(event.incarnation_id, self._checks.alarm_log.moment)
        end = self._shutdowns.registered(event)
        if end is not None:
            self._ended_without_proof(end)
        self._checks.outstanding.registered(event)
        for name, truth in self._checks.truths.items():
            truth.ledger.registered(event)
            self.dirty[name] = None
        self._checks.controller.registered(event)
        self._checks.metadata.registered(event)

    def _fenced(self, _: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.BrokerFenced | events.ControlledShutdownStarted)
        self._checks.tally.superseded(event.broker_id, self._checks.cluster.nodes[event.broker_id].broker)
        self._checks.tally.fenced(event)
        if isinstance(event, events.BrokerFenced) and event.reason is FenceReason.UNREGISTERED:
            for ledger in self._ledgers():
                ledger.unregistered(event.broker_id, moment=self._checks.alarm_log.moment)
        self._checks.controller.fenced(event)

    def _unfenced(self, _: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.BrokerUnfenced)
        self._checks.controller.unfenced(event)

    def _config_changed(self, _: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.ConfigChanged)
        self._checks.conjunctions.configured(event)
        configuration = self._checks.configuration
        configuration.changed(event)
        for name, truth in self._checks.truths.items():
            min_isr = configuration.min_isr(name.topic, truth.ledger.replicas)
            truth.ledger.configured(min_isr, offset=event.metadata_offset, moment=self._checks.alarm_log.moment)

    def _feature_changed(self, _: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.FeatureChanged)
        self._checks.conjunctions.feature_changed(event)
        self._checks.controller.feature_changed(event)
        for ledger in self._ledgers():
            ledger.eligibility_ended()

    def _topic_created(self, _: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.TopicCreated)
        self._topic_ids[event.topic] = event.topic_id

    def _topic_deleted(self, _: NodeId, event: events.Event) -> None:
        """A deleted topic makes no more promises; a new topic of the same name makes its own."""
        assert isinstance(event, events.TopicDeleted)
        self._topic_ids.pop(event.topic, None)
        self._checks.configuration.deleted(event.topic)
        self._checks.coordinators.deleted(event.topic)
        self._checks.conjunctions.deleted(event)
        for name in [name for name in self._checks.truths if name.topic == event.topic]:
            self._checks.logs.topic_deleted(name, event.topic_id, self._checks.truths.pop(name))
            self._checks.durability.forget(name)
            self._checks.clients.forget(name)
            self._checks.transactions.forget(name)
            self._checks.copies.forget(name)
            self._checks.losses.forget(name)
        self._checks.controller.deleted(event.topic)
        if real_topic_id(event.topic_id) is None:
            self._checks.leaders.forget(event.topic)
            self._checks.logs.forget(event.topic)

    def _znode_written(self, _: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.ZnodeWritten)
        self._checks.metadata.znode_written(event)

    def _applied(self, node_id: NodeId, event: events.Event) -> None:
        assert isinstance(event, events.MetadataApplied)
        self.has_applied_metadata = True
        self._checks.conjunctions.applied(BrokerId(node_id), event)
        self._checks.metadata.applied(self._checks.cluster.nodes[BrokerId(node_id)], event)

    def _counted(self, _: NodeId, __: TopicPartition, event: events.Event) -> None:
        self._checks.tally.seen(event)

    # --- Partitions, by the controller ------------------------------------------------------------------------------

    def _partition_changed(self, _: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.PartitionChanged)
        configuration = self._checks.configuration
        self._checks.truths[name].ledger.changed(
            event,
            min_isr=configuration.min_isr(name.topic, event.replicas),
            accepts_unclean_leaders=configuration.accepts_unclean_leaders(name.topic),
            moment=self._checks.alarm_log.moment,
        )
        self._checks.tally.partition_changed(event)
        self._checks.conjunctions.changed(name, event)
        configured = configuration.min_isr_of_controller(name.topic)
        self._checks.controller.check_min_isr(name, event, configured=configured)
        self._checks.controller.committed(name, event)

    def _elected_uncleanly(self, _: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.UncleanLeaderElected)
        self._checks.tally.seen(event)
        configured = self._checks.configuration.recovery_strategy(name.topic)
        self._checks.controller.elected_uncleanly(name, event, configured=configured)

    def _recovery_started(self, _: NodeId, __: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.UncleanRecoveryStarted)
        self._checks.tally.seen(event)
        self._checks.controller.recovery_started(event)

    def _recovery_dropped(self, _: NodeId, __: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.UncleanRecoveryDropped)
        self._checks.tally.seen(event)
        self._checks.controller.recovery.dropped(event)

    def _decided(self, _: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.AlterPartitionDecided)
        self._checks.tally.decided(event)
        self._checks.controller.decided(name, event)

    # --- Partitions, by brokers -------------------------------------------------------------------------------------

    def _log_opened(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.LogOpened)
        self._checks.logs.opened(node_id, name, event)
        if self.is_current(event.topic, event.topic_id):
            self._checks.copies.cut(node_id, name, from_offset=event.log_end_offset)
        self._checks.leaders.opened(node_id, name)
        self._checks.tally.opened(node_id, name)

    def _log_deleted(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.LogDeleted)
        self._checks.logs.deleted(node_id, name, event)
        if self.is_current(event.topic, event.topic_id):
            self._checks.copies.cut(node_id, name, from_offset=Offset(0))
        self._checks.conjunctions.log_changed(node_id, name, event)
        self._checks.metadata.log_deleted(self._checks.cluster.nodes[BrokerId(node_id)], name, event)

    def _stray_detected(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.StrayDetected)
        self._checks.tally.seen(event)
        self._checks.logs.stray_detected(node_id, name, event)

    def _stray_deleted(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.StrayDeleted)
        self._checks.tally.seen(event)
        self._checks.logs.stray_deleted(node_id, name, event)
        if self.is_current(event.topic, event.topic_id):
            self._checks.copies.cut(node_id, name, from_offset=Offset(0))

    def _log_start_raised(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.LogStartOffsetRaised)
        if self.is_current(event.topic, event.topic_id):
            self._checks.durability.log_start_raised(node_id, name, event)
            self._checks.copies.deleted(node_id, name, below=event.new)

    def _appended(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.BatchAppended)
        self._checks.logs.appended(node_id, name, event)
        if event.ends_transaction:
            self._checks.clients.ended(event.crc)
            self._checks.coordinators.marker_appended(name, event)
        if self.is_current(event.topic, event.topic_id):
            self._checks.copies.appended(node_id, name, event)
            self._checks.leaders.appended(node_id, name, event)

    def _truncated(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.LogTruncated)
        self._checks.logs.truncated(node_id, name, event)
        if self.is_current(event.topic, event.topic_id):
            is_new_log = event.reason is TruncationReason.RESTARTED
            self._checks.copies.cut(node_id, name, from_offset=Offset(0) if is_new_log else event.new_end_offset)
        self._checks.conjunctions.log_changed(node_id, name, event)
        self._checks.tally.truncated(node_id, event, high_watermark=self._checks.truths[name].high_watermark)

    def _power_lost(self, _: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.PowerLost)
        if self.is_current(event.topic, event.topic_id):
            self._checks.copies.power_lost(name, event)
        self._checks.tally.power_lost(event)

    def _became_leader(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.BecameLeader)
        self._checks.leaders.became_leader(node_id, name, event)
        self._checks.losses.took_role(name, BrokerId(node_id), event.topic_id)
        if not self.is_current(event.topic, event.topic_id):
            return
        node = self._checks.cluster.nodes[BrokerId(node_id)]
        self._checks.truths[name].ledger.took_over(
            event.leader_epoch,
            node.incarnation,
            registered_at=self._registered_at.get(node.incarnation_id),
            moment=self._checks.alarm_log.moment,
        )
        self._checks.losses.became_leader(name, node, event.leader_epoch, event.epoch_start_offset)
        if self._checks.durability.serving_leader(name) is node:
            self._checks.durability.check_leader(name, node)
        else:
            self._checks.durability.check_late_leader(name, node, event)

    def _became_follower(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.BecameFollower)
        self._checks.leaders.became_follower(node_id, name, event)
        self._checks.losses.took_role(name, BrokerId(node_id), event.topic_id)

    def _high_watermark_advanced(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.HighWatermarkAdvanced)
        if not self.is_current(event.topic, event.topic_id):
            return
        node = self._checks.cluster.nodes[BrokerId(node_id)]
        log, moment = node.disk.logs[name].batches, self._made_at(node_id, name)
        self._checks.truths[name].commit(event.old, event.new, log, leader_epoch=event.leader_epoch, moment=moment)
        self._checks.durability.check_late_commit(name, node, event)
        self._checks.leaders.high_watermark_advanced(node_id, name, event)
        self._checks.logs.committed(node_id, name, event)

    def _proposed(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.AlterPartitionProposed)
        self._checks.tally.proposals += 1
        self._checks.leaders.proposed(node_id, name, event)

    def _produce_answered(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.ProduceAnswered)
        self._checks.tally.seen(event)
        self._checks.promptness.answered(name, event)
        if event.error == ErrorCode.NONE.name and event.leader_epoch is not None and name in self._checks.truths:
            node = self._checks.cluster.nodes[BrokerId(node_id)]
            own = (batch for batch in reversed(node.disk.logs[name].batches) if batch.base_offset == event.base_offset)
            copy = next(own, None)
            self._checks.truths[name].acknowledgements[event.cause_id] = Acknowledgement(
                leader_epoch=event.leader_epoch,
                appended_epoch=None if copy is None else copy.leader_epoch,
                incarnation=node.incarnation,
                moment=self._made_at(node_id, name),
            )

    def _made_at(self, node_id: NodeId, name: TopicPartition) -> int:
        """Returns the moment from which a promise counts that a leader makes now."""
        node = self._checks.cluster.nodes[BrokerId(node_id)]
        moment = self._checks.alarm_log.moment
        return self._checks.truths[name].ledger.known_at(node.metadata_end(name), moment)

    def _answered(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.AlterPartitionAnswered)
        self._checks.tally.answered(event, with_metadata=self.has_applied_metadata)
        self._checks.tally.seen(event)
        self._checks.leaders.answered(node_id, name, event)

    # --- Coordinators -----------------------------------------------------------------------------------------------

    def _transition_begun(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.TransitionBegun)
        self._checks.transaction_logs.is_asked = True
        self._checks.coordinators.begun(node_id, name, event)

    def _transition_ended(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.TransitionEnded)
        self._checks.coordinators.ended(node_id, name, event)

    def _markers_sent(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.MarkersSent)
        self._checks.coordinators.markers_sent(node_id, name, event)

    def _position_returned(self, node_id: NodeId, name: TopicPartition, event: events.Event) -> None:
        assert isinstance(event, events.PositionReturned)
        self._checks.coordinators.returned(node_id, name, event)
