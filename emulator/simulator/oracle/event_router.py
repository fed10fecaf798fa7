"""Passes each event to the checks that it concerns, and collects the partitions of the step.

Events about a deleted topic concern no promise any more, except the changes of its logs by brokers that do not know of
the deletion (D15): a topic of the same name makes its own promises.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar, get_args

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

_HandlerT = TypeVar("_HandlerT", bound=Callable[..., None])

_handlers: Final[dict[type[events.Event], Callable[..., None]]] = {}


def _routed(handler: _HandlerT) -> _HandlerT:
    """Has a method called for the kinds of events that its annotation names; those about a partition with its name."""
    named = handler.__annotations__["event"]
    _handlers.update(dict.fromkeys(get_args(named) or (named,), handler))
    return handler


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

    def route(self, node_id: NodeId, incarnation: int, event: events.Event) -> None:
        """Passes an event on."""
        offset = getattr(event, "metadata_offset", None)
        if offset is not None and node_id in (cluster := self._checks.cluster).metadata_nodes:
            self._checks.metadata.written(cluster.controller_term(node_id, incarnation), offset)
        handler = _handlers.get(type(event))
        if isinstance(event, events.PartitionEvent):
            name = TopicPartition(event.topic, event.partition)
            self.dirty[name] = None
            if handler is not None:
                handler(self, node_id, name, event)
        elif handler is not None:
            handler(self, node_id, event)

    def is_current(self, topic: str, topic_id: TopicId | None) -> bool:
        """Returns whether a topic of this name has this id now."""
        return self._topic_ids.get(topic) == topic_id

    # --- The whole cluster ------------------------------------------------------------------------------------------

    @_routed
    def _node_started(self, node_id: NodeId, event: events.NodeStarted) -> None:
        if event.role is NodeRole.CONTROLLER and not self._checks.cluster.has_quorum:
            self._checks.controller.controller_started()
            self._checks.metadata.controller_started()
        elif event.role is NodeRole.BROKER:
            self._checks.logs.started(node_id)

    @_routed
    def _activated(self, _: NodeId, event: events.ControllerActivated) -> None:
        self._checks.controller.controller_started()

    @_routed
    def _ended(self, _: NodeId, event: events.IncarnationEnded) -> None:
        if not self._shutdowns.leaves_proof(event):
            self._ended_without_proof(event)
        self._checks.controller.ended(event)

    def _ended_without_proof(self, event: events.IncarnationEnded) -> None:
        for ledger in self._ledgers():
            ledger.ended(event, moment=self._checks.alarm_log.moment)

    def _ledgers(self) -> Iterator[GuaranteeLedger]:
        yield self._checks.outstanding
        yield from (truth.ledger for truth in self._checks.truths.values())

    @_routed
    def _state_changed(self, node_id: NodeId, event: events.BrokerStateChanged) -> None:
        if event.broker_epoch is not None:
            self._shutdowns.heard(node_id, self._checks.cluster.nodes[BrokerId(node_id)].incarnation)

    @_routed
    def _registered(self, _: NodeId, event: events.BrokerRegistered) -> None:
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

    @_routed
    def _fenced(self, _: NodeId, event: events.BrokerFenced | events.ControlledShutdownStarted) -> None:
        self._checks.tally.superseded(event.broker_id, self._checks.cluster.nodes[event.broker_id].broker)
        self._checks.tally.fenced(event)
        if isinstance(event, events.BrokerFenced) and event.reason is FenceReason.UNREGISTERED:
            for ledger in self._ledgers():
                ledger.unregistered(event.broker_id, moment=self._checks.alarm_log.moment)
        self._checks.controller.fenced(event)

    @_routed
    def _unfenced(self, _: NodeId, event: events.BrokerUnfenced) -> None:
        self._checks.controller.unfenced(event)

    @_routed
    def _config_changed(self, _: NodeId, event: events.ConfigChanged) -> None:
        self._checks.conjunctions.configured(event)
        configuration = self._checks.configuration
        configuration.changed(event)
        for name, truth in self._checks.truths.items():
            min_isr = configuration.min_isr(name.topic, truth.ledger.replicas)
            truth.ledger.configured(min_isr, offset=event.metadata_offset, moment=self._checks.alarm_log.moment)

    @_routed
    def _feature_changed(self, _: NodeId, event: events.FeatureChanged) -> None:
        self._checks.conjunctions.feature_changed(event)
        self._checks.controller.feature_changed(event)
        for ledger in self._ledgers():
            ledger.eligibility_ended()

    @_routed
    def _topic_created(self, _: NodeId, event: events.TopicCreated) -> None:
        self._topic_ids[event.topic] = event.topic_id

    @_routed
    def _topic_deleted(self, _: NodeId, event: events.TopicDeleted) -> None:
        """A deleted topic makes no more promises; a new topic of the same name makes its own."""
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

    @_routed
    def _znode_written(self, _: NodeId, event: events.ZnodeWritten) -> None:
        self._checks.metadata.znode_written(event)

    @_routed
    def _applied(self, node_id: NodeId, event: events.MetadataApplied) -> None:
        self.has_applied_metadata = True
        self._checks.conjunctions.applied(BrokerId(node_id), event)
        self._checks.metadata.applied(self._checks.cluster.nodes[BrokerId(node_id)], event)

    @_routed
    def _counted(self, _: NodeId, __: TopicPartition, event: events.RecoveryFinished) -> None:
        self._checks.tally.seen(event)

    # --- Partitions, by the controller ------------------------------------------------------------------------------

    @_routed
    def _partition_changed(self, _: NodeId, name: TopicPartition, event: events.PartitionChanged) -> None:
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

    @_routed
    def _elected_uncleanly(self, _: NodeId, name: TopicPartition, event: events.UncleanLeaderElected) -> None:
        self._checks.tally.seen(event)
        configured = self._checks.configuration.recovery_strategy(name.topic)
        self._checks.controller.elected_uncleanly(name, event, configured=configured)

    @_routed
    def _recovery_started(self, _: NodeId, __: TopicPartition, event: events.UncleanRecoveryStarted) -> None:
        self._checks.tally.seen(event)
        self._checks.controller.recovery_started(event)

    @_routed
    def _recovery_dropped(self, _: NodeId, __: TopicPartition, event: events.UncleanRecoveryDropped) -> None:
        self._checks.tally.seen(event)
        self._checks.controller.recovery.dropped(event)

    @_routed
    def _decided(self, _: NodeId, name: TopicPartition, event: events.AlterPartitionDecided) -> None:
        self._checks.tally.decided(event)
        self._checks.controller.decided(name, event)

    # --- Partitions, by brokers -------------------------------------------------------------------------------------

    @_routed
    def _log_opened(self, node_id: NodeId, name: TopicPartition, event: events.LogOpened) -> None:
        self._checks.logs.opened(node_id, name, event)
        if self.is_current(event.topic, event.topic_id):
            self._checks.copies.cut(node_id, name, from_offset=event.log_end_offset)
        self._checks.leaders.opened(node_id, name)
        self._checks.tally.opened(node_id, name)

    @_routed
    def _log_deleted(self, node_id: NodeId, name: TopicPartition, event: events.LogDeleted) -> None:
        self._checks.logs.deleted(node_id, name, event)
        if self.is_current(event.topic, event.topic_id):
            self._checks.copies.cut(node_id, name, from_offset=Offset(0))
        self._checks.conjunctions.log_changed(node_id, name, event)
        self._checks.metadata.log_deleted(self._checks.cluster.nodes[BrokerId(node_id)], name, event)

    @_routed
    def _stray_detected(self, node_id: NodeId, name: TopicPartition, event: events.StrayDetected) -> None:
        self._checks.tally.seen(event)
        self._checks.logs.stray_detected(node_id, name, event)

    @_routed
    def _stray_deleted(self, node_id: NodeId, name: TopicPartition, event: events.StrayDeleted) -> None:
        self._checks.tally.seen(event)
        self._checks.logs.stray_deleted(node_id, name, event)
        if self.is_current(event.topic, event.topic_id):
            self._checks.copies.cut(node_id, name, from_offset=Offset(0))

    @_routed
    def _log_start_raised(self, node_id: NodeId, name: TopicPartition, event: events.LogStartOffsetRaised) -> None:
        if self.is_current(event.topic, event.topic_id):
            self._checks.durability.log_start_raised(node_id, name, event)
            self._checks.copies.deleted(node_id, name, below=event.new)

    @_routed
    def _appended(self, node_id: NodeId, name: TopicPartition, event: events.BatchAppended) -> None:
        self._checks.logs.appended(node_id, name, event)
        if event.ends_transaction:
            self._checks.clients.ended(event.crc)
            self._checks.coordinators.marker_appended(name, event)
        if self.is_current(event.topic, event.topic_id):
            self._checks.copies.appended(node_id, name, event)
            self._checks.leaders.appended(node_id, name, event)

    @_routed
    def _truncated(self, node_id: NodeId, name: TopicPartition, event: events.LogTruncated) -> None:
        self._checks.logs.truncated(node_id, name, event)
        if self.is_current(event.topic, event.topic_id):
            is_new_log = event.reason is TruncationReason.RESTARTED
            self._checks.copies.cut(node_id, name, from_offset=Offset(0) if is_new_log else event.new_end_offset)
        self._checks.conjunctions.log_changed(node_id, name, event)
        self._checks.tally.truncated(node_id, event, high_watermark=self._checks.truths[name].high_watermark)

    @_routed
    def _power_lost(self, _: NodeId, name: TopicPartition, event: events.PowerLost) -> None:
        if self.is_current(event.topic, event.topic_id):
            self._checks.copies.power_lost(name, event)
        self._checks.tally.power_lost(event)

    @_routed
    def _became_leader(self, node_id: NodeId, name: TopicPartition, event: events.BecameLeader) -> None:
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

    @_routed
    def _became_follower(self, node_id: NodeId, name: TopicPartition, event: events.BecameFollower) -> None:
        self._checks.leaders.became_follower(node_id, name, event)
        self._checks.losses.took_role(name, BrokerId(node_id), event.topic_id)

    @_routed
    def _high_watermark_advanced(
        self, node_id: NodeId, name: TopicPartition, event: events.HighWatermarkAdvanced
    ) -> None:
        if not self.is_current(event.topic, event.topic_id):
            return
        node = self._checks.cluster.nodes[BrokerId(node_id)]
        log, moment = node.disk.logs[name].batches, self._made_at(node_id, name)
        self._checks.truths[name].commit(event.old, event.new, log, leader_epoch=event.leader_epoch, moment=moment)
        self._checks.durability.check_late_commit(name, node, event)
        self._checks.leaders.high_watermark_advanced(node_id, name, event)
        self._checks.logs.committed(node_id, name, event)

    @_routed
    def _proposed(self, node_id: NodeId, name: TopicPartition, event: events.AlterPartitionProposed) -> None:
        self._checks.tally.proposals += 1
        self._checks.leaders.proposed(node_id, name, event)

    @_routed
    def _produce_answered(self, node_id: NodeId, name: TopicPartition, event: events.ProduceAnswered) -> None:
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

    @_routed
    def _answered(self, node_id: NodeId, name: TopicPartition, event: events.AlterPartitionAnswered) -> None:
        self._checks.tally.answered(event, with_metadata=self.has_applied_metadata)
        self._checks.tally.seen(event)
        self._checks.leaders.answered(node_id, name, event)

    # --- Coordinators -----------------------------------------------------------------------------------------------

    @_routed
    def _transition_begun(self, node_id: NodeId, name: TopicPartition, event: events.TransitionBegun) -> None:
        self._checks.transaction_logs.is_asked = True
        self._checks.coordinators.begun(node_id, name, event)

    @_routed
    def _transition_ended(self, node_id: NodeId, name: TopicPartition, event: events.TransitionEnded) -> None:
        self._checks.coordinators.ended(node_id, name, event)

    @_routed
    def _markers_sent(self, node_id: NodeId, name: TopicPartition, event: events.MarkersSent) -> None:
        self._checks.coordinators.markers_sent(node_id, name, event)

    @_routed
    def _position_returned(self, node_id: NodeId, name: TopicPartition, event: events.PositionReturned) -> None:
        self._checks.coordinators.returned(node_id, name, event)
