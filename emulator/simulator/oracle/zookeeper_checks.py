"""Checks of the oracle that differ where ZooKeeper has the metadata.

Rules about records, logs, leaders and clients are the same. Rules about commits differ: a decision is a write of a
state node, in the order of zxids, by the elected controller or by the leader itself. So the rules of the KRaft
controller, and the time bounds that follow from its heartbeats, are replaced by those of section "Invariants" in
``docs/eras-zookeeper.md``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.zookeeper.broker import ZooKeeperBroker
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.types import (
    BrokerId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    RecoveryStrategy,
    TopicId,
    TopicPartition,
    ZnodeWrite,
)
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch, NodeVersion, SessionId
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import StateFormat, decode_state
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_controller_epoch
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.checks import Checks
from laststand.emulator.simulator.oracle.controller_rules import ControllerRules
from laststand.emulator.simulator.oracle.deletions import Deletions
from laststand.emulator.simulator.oracle.durability import DurabilityChecks
from laststand.emulator.simulator.oracle.finding import Alarm
from laststand.emulator.simulator.oracle.leader_rules import LeaderRules
from laststand.emulator.simulator.oracle.logs import LogChecks
from laststand.emulator.simulator.oracle.metadata import MetadataChecks
from laststand.emulator.simulator.oracle.promptness import Promptness
from laststand.emulator.simulator.oracle.reference import MetadataReference
from laststand.emulator.simulator.oracle.truth import PartitionTruth
from laststand.emulator.simulator.oracle.zookeeper_proposals import ProposalChecks
from laststand.emulator.simulator.oracle.zookeeper_roles import RoleChecks
from laststand.emulator.simulator.zookeeper.cluster import ZooKeeperCluster


class ZooKeeperChecks(Checks):
    """All checks of a run of a ZooKeeper cluster."""

    def __init__(self, on_alarm: Callable[[Alarm], None] | None) -> None:
        super().__init__(on_alarm)
        self._roles = RoleChecks(self.alarm_log)
        self._proposals = ProposalChecks(self.alarm_log)
        metadata = ZooKeeperMetadata(self.alarm_log, self._proposals)
        self.metadata = metadata
        self.controller = ZooKeeperWrites(self.alarm_log, metadata, self._proposals)
        self.leaders = ZooKeeperLeaders(
            self.alarm_log, metadata, self.truths, roles=self._roles, proposals=self._proposals
        )
        self.durability = ZooKeeperDurability(self.alarm_log, self.truths, self.copies, self.losses)
        self.logs = ZooKeeperLogs(self.alarm_log, self.truths, self.durability.deletions, roles=self._roles)
        self.promptness = NoPromptness(self.alarm_log, self.truths, self.durability, self.tally.mark)

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        super().attach(cluster)
        cluster = cast(ZooKeeperCluster, cluster)
        self._proposals.attach(cluster)
        cluster.on_request = self._asked

    def _asked(self, node: BrokerNode, received: inputs.RequestReceived) -> None:
        self._roles.asked(node, received)
        self._proposals.asked(node, received)

    def answered(self, node: BrokerNode, answer: effects.SendResponse) -> None:
        """A broker answers a request: it knows the content of each request that it accepted."""
        self._roles.answered(node, answer)


class ZooKeeperReference(MetadataReference):
    """All ISRs that state nodes ever contained.

    Attributes:
        last_isrs: the last ISR of each leader epoch.
    """

    def __init__(self) -> None:
        super().__init__(lambda _, __, ___: None)
        self.last_isrs: dict[tuple[TopicPartition, LeaderEpoch], tuple[BrokerId, ...]] = {}

    def written(self, name: TopicPartition, event: events.PartitionChanged) -> None:
        """A state node was written."""
        self.last_isrs[name, event.leader_epoch] = event.isr
        self._isrs.setdefault((name, event.leader_epoch), set()).add(frozenset(event.isr))

    def has_committed(self, name: TopicPartition, leader_epoch: LeaderEpoch, isr: Sequence[BrokerId]) -> bool:
        """Returns whether the node had an ISR in a leader epoch or before: a LeaderAndIsr with it may still arrive."""
        members = frozenset(isr)
        return any(members in self._isrs.get((name, LeaderEpoch(epoch)), ()) for epoch in range(leader_epoch + 1))


class ZooKeeperMetadata(MetadataChecks):
    """Checks of brokers and the controller against the nodes: M14, Z1, Z2, Z4, Z5, Z6."""

    def __init__(self, alarm_log: AlarmLog, proposals: ProposalChecks) -> None:
        super().__init__(alarm_log)
        self.reference: ZooKeeperReference = ZooKeeperReference()
        self._proposals = proposals
        self._known_epochs: dict[tuple[BrokerId, int], ControllerEpoch] = {}
        self._last_elected = ControllerEpoch(0)

    def controller_started(self) -> None:
        """Notes that the server started; it has lost nothing."""

    def follow(self) -> None:
        """There is no log to follow."""

    def written(self, incarnation: int, offset: MetadataOffset) -> None:
        """The server recorded a write: M14, first half."""
        if offset < self._last_offset:
            self._alarm_log.report("M14", None, f"write {offset} was told after {self._last_offset}")
        self._last_offset = offset

    def znode_written(self, event: events.ZnodeWritten) -> None:
        """ZooKeeper was written: M14, an election of a controller raises the epoch."""
        self._proposals.writer = SessionId(event.session_id)
        if event.path != paths.CONTROLLER or event.write is not ZnodeWrite.CREATED:
            return
        data = cast(ZooKeeperCluster, self._cluster).zookeeper_node.store.server.data(paths.CONTROLLER_EPOCH)
        elected = ControllerEpoch(0) if data is None else decode_controller_epoch(data)
        if elected <= self._last_elected:
            sentence = f"write {event.metadata_offset} elected a controller in epoch {elected}"
            self._alarm_log.report("M14", None, f"{sentence}, after one of {self._last_elected}")
        self._last_elected = elected

    def check_role(self, node: BrokerNode, name: TopicPartition, partition: Partition | None) -> None:
        """Z2 on a broker; Z6: a leader was written to the state node as leader of its epoch."""
        self._check_known_epoch(node)
        if partition is None or not partition.is_leader:
            return
        state = self._cluster.state(name)
        if state is not None and state.leader_epoch == partition.leader_epoch and state.leader != node.broker_id:
            sentence = f"broker {node.broker_id} leads {name} in epoch {partition.leader_epoch}, which is of"
            self._alarm_log.report("Z6", name, f"{sentence} {state.leader}")

    def _check_known_epoch(self, node: BrokerNode) -> None:
        assert isinstance(node.broker, ZooKeeperBroker), "a ZooKeeper cluster has such brokers"
        known, process = node.broker.fence.controller_epoch, (node.broker_id, node.incarnation)
        before = self._known_epochs.get(process, known)
        if known < before:
            sentence = f"broker {node.broker_id} knows controller epoch {known}, and knew {before}"
            self._alarm_log.report("Z2", None, sentence)
        self._known_epochs[process] = known

    def missing(self) -> Iterator[tuple[str, TopicPartition | None, str]]:
        """Yields Z1 and Z5."""
        cluster = cast(ZooKeeperCluster, self._cluster)
        server = cluster.zookeeper_node.store.server
        left = server.children(paths.ISR_CHANGE_NOTIFICATIONS)
        if left:
            yield "Z5", None, f"notifications {', '.join(left)} are still there"
        term = cluster.term
        if term is None:
            return  # L1 reports that
        for name, state in cluster.image.partitions.items():
            known = term.context.leadership.get(name)
            decided = None if known is None else known.leader_and_isr
            believed = decided and (decided.leader, decided.leader_epoch, decided.isr, decided.partition_epoch)
            written = (state.leader, state.leader_epoch, state.isr, state.partition_epoch)
            if believed != written:
                yield "Z1", name, f"the controller takes {name} to be {believed}, and its node says {written}"

    def log_deleted(self, node: BrokerNode, name: TopicPartition, event: events.LogDeleted) -> None:
        """A broker put a log aside: Z4."""
        state = self._cluster.state(name)
        if cast(ZooKeeperCluster, self._cluster).is_being_deleted(name.topic):
            return
        if state is None or state.topic_id != event.topic_id:
            return
        if node.broker_id in state.isr and node.broker_id in state.replicas:
            sentence = f"broker {node.node_id} removed its log of {name} ({event.reason}), and is in the ISR: {state}"
            self._alarm_log.report("Z4", name, sentence)


class ZooKeeperLeaders(LeaderRules):
    """Rules of leaders: Z3, and no H4, because these clusters have no ELR."""

    def __init__(
        self,
        alarm_log: AlarmLog,
        metadata: ZooKeeperMetadata,
        truths: Mapping[TopicPartition, PartitionTruth],
        *,
        roles: RoleChecks,
        proposals: ProposalChecks,
    ) -> None:
        super().__init__(alarm_log, metadata)
        self._last_isrs = metadata.reference.last_isrs
        self._truths = truths
        self._roles = roles
        self._proposals = proposals

    def became_leader(self, node_id: NodeId, name: TopicPartition, event: events.BecameLeader) -> None:
        """Notes that a term begins, or continues: Z8."""
        super().became_leader(node_id, name, event)
        self._roles.took_role(self._cluster.nodes[BrokerId(node_id)], name, event)

    def became_follower(self, node_id: NodeId, name: TopicPartition, event: events.BecameFollower) -> None:
        """A term is over: Z8."""
        super().became_follower(node_id, name, event)
        self._roles.took_role(self._cluster.nodes[BrokerId(node_id)], name, event)

    def answered(self, node_id: NodeId, name: TopicPartition, event: events.AlterPartitionAnswered) -> None:
        """A leader received the response to its proposal: Z9, second half."""
        super().answered(node_id, name, event)
        self._proposals.answered(name, event)

    def check_superset(self, name: TopicPartition) -> None:
        """Checks nothing: the promise is not made in these clusters."""

    def high_watermark_advanced(
        self, node_id: NodeId, name: TopicPartition, event: events.HighWatermarkAdvanced
    ) -> None:
        """Checks Z3, and the rules for every high watermark, when a leader moves its high watermark."""
        super().high_watermark_advanced(node_id, name, event)
        exempts = PROMISES["Z3"].leaves_out(Exemption.LEAVING_REPLICAS)
        leaving = self._leaving(node_id, name, event) if exempts else frozenset()
        excused = self._truths[name].ledger.unproven() | leaving
        for member in self._last_isrs.get((name, event.leader_epoch), ()):
            log = self._cluster.nodes[member].disk.logs.get(name)
            end = 0 if log is None else log.log_end_offset
            if end < event.new and member not in excused:
                sentence = f"{name}: leader {node_id} of epoch {event.leader_epoch} commits up to {event.new}, and"
                self._alarm_log.report("Z3", name, f"{sentence} member {member} of the ISR ends at {end}")

    def _bounds(
        self, node_id: NodeId, name: TopicPartition, event: events.HighWatermarkAdvanced
    ) -> tuple[BrokerId, ...]:
        """Returns the members that stay: members that a reassignment removes need not hold back the high watermark."""
        leaving = self._leaving(node_id, name, event)
        return tuple(member for member in event.maximal_isr if member not in leaving)

    def _leaving(
        self, node_id: NodeId, name: TopicPartition, event: events.HighWatermarkAdvanced
    ) -> frozenset[BrokerId]:
        """Returns the members that a reassignment removes, by the requests that the leader has received.

        The leader is sent a LeaderAndIsr without them before they leave the ISR (Z28). It may not know yet that they
        have been assigned again.
        """
        state = self._cluster.state(name)
        removed = () if state is None else state.removing_replicas
        known = self._roles.replicas_sent(node_id, name, event.leader_epoch)
        forgotten = () if known is None else set(event.maximal_isr) - set(known)
        return frozenset({*removed, *forgotten})


class ZooKeeperDurability(DurabilityChecks):
    """Checks of candidates' logs, except those of a topic being deleted, whose logs are removed before its nodes."""

    def check_candidates(self, name: TopicPartition) -> None:
        """D3, unless the topic is being deleted."""
        exempts = PROMISES["D3"].leaves_out(Exemption.TOPICS_BEING_DELETED)
        if not (exempts and cast(ZooKeeperCluster, self._cluster).is_being_deleted(name.topic)):
            super().check_candidates(name)

    def _candidates(self, state: PartitionState) -> tuple[BrokerId, ...]:
        """Leaves out members that a reassignment removes: the leader first gets a LeaderAndIsr without them (Z28)."""
        leaving = state.removing_replicas if PROMISES["D3"].leaves_out(Exemption.LEAVING_REPLICAS) else ()
        return tuple(each for each in super()._candidates(state) if each not in leaving)


class ZooKeeperLogs(LogChecks):
    """Checks of logs: a broker learns of a replica by LeaderAndIsr before it learns of the topic.

    The request may arrive after the topic's deletion: the log that the broker then creates is a stray.
    """

    def __init__(
        self,
        alarm_log: AlarmLog,
        truths: dict[TopicPartition, PartitionTruth],
        deletions: Deletions,
        *,
        roles: RoleChecks,
    ) -> None:
        super().__init__(alarm_log, truths, deletions)
        self._roles = roles

    def _known(self, node_id: NodeId, name: TopicPartition) -> PartitionState | None:
        return self._cluster.state(name)

    def _check_topic(self, node_id: NodeId, name: TopicPartition, topic_id: TopicId) -> None:
        if not self._roles.has_sent_topic(node_id, name.topic, topic_id):
            super()._check_topic(node_id, name, topic_id)


class ZooKeeperWrites(ControllerRules):
    """M6, M14, Z6 and Z7 on the writes of state nodes, by controllers and leaders."""

    def __init__(self, alarm_log: AlarmLog, metadata: ZooKeeperMetadata, proposals: ProposalChecks) -> None:
        super().__init__(alarm_log)
        self._metadata = metadata
        self._proposals = proposals
        self._controller_epochs: dict[TopicPartition, ControllerEpoch] = {}

    def committed(self, name: TopicPartition, event: events.PartitionChanged) -> None:
        """A state node was written, or the partition's assignment."""
        before = self._last.get(name)
        self._last[name] = event
        self._metadata.reference.written(name, event)
        self._proposals.written(name, before, event)
        is_first = before is None or before.topic_id != event.topic_id or before.partition_epoch > event.partition_epoch
        is_decision = is_first or before is None or before.leader_epoch != event.leader_epoch
        self._check_controller_epoch(name, is_decision=is_decision)
        if is_first or before is None:
            return
        if event.leader is not None and event.leader not in event.isr:
            self._alarm_log.report("Z6", name, f"{name} is led by {event.leader}, which is not in ISR {event.isr}")
        if event.leader_epoch < before.leader_epoch:
            self._alarm_log.report("Z6", name, f"{name} went back to leader epoch {event.leader_epoch}")
        if event.leader != before.leader and event.leader_epoch == before.leader_epoch:
            sentence = f"{name} changed its leader within epoch {event.leader_epoch}"
            self._alarm_log.report("Z6", name, f"{sentence}: {before.leader}, then {event.leader}")
        self._check_versions(name, before, event)
        self._check_election(name, before, event)

    def _check_versions(
        self, name: TopicPartition, before: events.PartitionChanged, event: events.PartitionChanged
    ) -> None:
        """Z7; a write of the topic's node leaves the state unchanged."""
        if _state(event) == _state(before):
            return
        rise = (event.partition_epoch - before.partition_epoch, event.leader_epoch - before.leader_epoch)
        if rise not in ((1, 0), (1, 1)):
            sentence = f"a write took {name} from version {before.partition_epoch} to {event.partition_epoch}, and from"
            epochs = f"leader epoch {before.leader_epoch} to {event.leader_epoch}"
            self._alarm_log.report("Z7", name, f"{sentence} {epochs}")

    def _check_controller_epoch(self, name: TopicPartition, *, is_decision: bool) -> None:
        """M14: decisions of a deposed controller do not follow those of its successor, nor the successor's election.

        Every write that raises the leader epoch is a controller's decision; a leader's own write repeats the controller
        epoch of its election.
        """
        server = cast(ZooKeeperCluster, self._cluster).zookeeper_node.store.server
        data = server.data(paths.state_node(name))
        found = None if data is None else decode_state(data, NodeVersion(0), state_format=StateFormat.WITHOUT_RECOVERY)
        if found is None:
            return
        if found.controller_epoch < self._controller_epochs.get(name, 0):
            self._alarm_log.report("M14", name, f"{name} has a decision of controller epoch {found.controller_epoch}")
        self._controller_epochs[name] = found.controller_epoch
        stored = server.data(paths.CONTROLLER_EPOCH)
        elected = found.controller_epoch if stored is None else decode_controller_epoch(stored)
        if is_decision and found.controller_epoch < elected:
            sentence = f"{name} was decided by controller epoch {found.controller_epoch}, once {elected} was elected"
            self._alarm_log.report("M14", name, sentence)

    def deleted(self, topic: str) -> None:
        """Notes that a topic was deleted."""
        super().deleted(topic)
        self._controller_epochs = {
            name: epoch for name, epoch in self._controller_epochs.items() if name.topic != topic
        }

    def elected_uncleanly(
        self, name: TopicPartition, event: events.UncleanLeaderElected, *, configured: RecoveryStrategy
    ) -> None:
        """Checks nothing: these controllers do not compare logs."""

    def ended(self, event: events.IncarnationEnded) -> None:
        """Checks nothing: a session outlives its process."""

    def registered(self, event: events.BrokerRegistered) -> None:
        """Notes that a broker has a node: it may lead."""
        self._active.add(event.broker_id)


def _state(event: events.PartitionChanged) -> tuple[object, ...]:
    return event.leader, event.leader_epoch, event.isr, event.partition_epoch


class NoPromptness(Promptness):
    """Checks nothing: no progress is promised within a time, as expired sessions and hanging requests have no bound."""

    def attach(self, cluster: SimulatedCluster, configuration: object) -> None:
        """There is nothing to watch."""

    def time_passed(self) -> None:
        """Checks nothing: nothing is due."""

    def ask(self) -> None:
        """Checks nothing: nothing is asked."""

    def keeps_a_candidate(self, name: TopicPartition) -> bool:
        """Returns false: there is no ELR in these clusters."""
        return False
