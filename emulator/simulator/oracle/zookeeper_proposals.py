"""Z9: the leaders' ISRs that may be written, by each release's checks of AlterIsr and AlterPartition.

A write of a state node that keeps the leader epoch is an ISR change that the leader proposed: its own write, or the
controller's at its request. The controller's knowledge of brokers is read from the process that wrote, which has waited
for ZooKeeper since it checked them.
"""

from collections.abc import Iterator

from laststand.emulator.core import events, inputs, messages
from laststand.emulator.core.eras import ZooKeeperSwitches
from laststand.emulator.core.types import (
    BrokerId,
    IsrAnswer,
    LeaderEpoch,
    LeaderRecoveryState,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.core.zookeeper.inter_broker_protocol import IsrChange
from laststand.emulator.core.zookeeper.rules import AlterIsrChecks, ZooKeeperRules
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.zookeeper.cluster import ZooKeeperCluster
from laststand.emulator.simulator.zookeeper.nodes import ZooKeeperBrokerNode

_Wanted = tuple[BrokerNode, messages.AlterPartitionRequest, messages.AlterPartitionData]

_ELIGIBLE_MEMBERS = (AlterIsrChecks.KAFKA_3_3, AlterIsrChecks.KIP)


class ProposalChecks:
    """Checks of one run.

    Attributes:
        writer: the session that made the last change of a node.
    """

    def __init__(self, alarm_log: AlarmLog) -> None:
        self._alarm_log = alarm_log
        self._cluster: ZooKeeperCluster
        self._rules: ZooKeeperRules
        self._wanted: dict[tuple[int, LeaderEpoch, PartitionEpoch], list[_Wanted]] = {}
        self._isrs: dict[tuple[TopicPartition, TopicId, PartitionEpoch], set[tuple[BrokerId, ...]]] = {}
        self.writer: SessionId | None = None

    def attach(self, cluster: ZooKeeperCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster
        switches = cluster.switches
        assert isinstance(switches, ZooKeeperSwitches), "a ZooKeeper cluster has its own rules"
        self._rules = switches.zookeeper

    def asked(self, node: BrokerNode, received: inputs.RequestReceived) -> None:
        """The controller's broker receives a request."""
        request = received.request
        if isinstance(request, messages.AlterPartitionRequest):
            for data in request.partitions:
                key = (data.partition, data.leader_epoch, data.partition_epoch)
                self._wanted.setdefault(key, []).append((node, request, data))

    def written(
        self, name: TopicPartition, before: events.PartitionChanged | None, event: events.PartitionChanged
    ) -> None:
        """Z9: a state node was written, if the leader epoch stayed the same."""
        self._isrs.setdefault((name, event.topic_id, event.partition_epoch), set()).add(event.isr)
        if before is None or event.leader_epoch != before.leader_epoch:
            return
        if event.partition_epoch == before.partition_epoch:
            return  # the topic's node was written
        writer = self._process_of(self.writer)
        if writer is None or event.leader is None:
            return  # it died, or its session ended, while the write was under way
        protocol = self._cluster.protocol_of(event.leader)
        if protocol.isr_change is IsrChange.ZOOKEEPER:
            wrong = [] if writer.broker_id == event.leader else [f"that {writer.broker_id} wrote, not its leader"]
        else:
            wrong = list(self._problems(writer, name, before, event))
        if wrong:
            self._alarm_log.report("Z9", name, f"{name}: an ISR {', '.join(wrong)}: {event.describe()}")

    def answered(self, name: TopicPartition, event: events.AlterPartitionAnswered) -> None:
        """A leader learned that its ISR is committed: the node had this ISR at that version."""
        known = self._isrs.get((name, event.topic_id, event.partition_epoch))
        if event.outcome is IsrAnswer.COMMITTED and known is not None and event.committed_isr not in known:
            self._alarm_log.report("Z9", name, f"{name}: the node had ISR {known}, and its leader {event.describe()}")

    def _process_of(self, session_id: SessionId | None) -> ZooKeeperBrokerNode | None:
        for node in self._cluster.processes_with_controllers():
            if node.process_core is not None and node.process_core.client.session_id == session_id:
                return node
        return None

    def _problems(
        self,
        writer: ZooKeeperBrokerNode,
        name: TopicPartition,
        before: events.PartitionChanged,
        event: events.PartitionChanged,
    ) -> Iterator[str]:
        key = (name.partition, event.leader_epoch, before.partition_epoch)
        asked = [
            request
            for node, request, data in self._wanted.get(key, ())
            if node is writer
            and request.broker_id == event.leader
            and data.topic_id in (None, event.topic_id)
            and data.topic in ("", name.topic)
            and tuple(member.broker_id for member in data.new_isr) == event.isr
        ]
        if not asked:
            yield "that its leader did not ask for at that version"
            return
        is_recovering = event.leader_recovery_state is LeaderRecoveryState.RECOVERING
        was_recovering = before.leader_recovery_state is LeaderRecoveryState.RECOVERING
        if is_recovering and (not was_recovering or len(event.isr) > 1):
            yield "of a partition that recovers again, or not alone"
        if self._rules.alter_isr_checks is AlterIsrChecks.KIP:
            if event.leader != before.leader or event.leader not in event.isr:
                yield "that lacks its leader, or comes from another broker"
            if not set(event.isr) <= set(before.replicas) or len(set(event.isr)) < len(event.isr):
                yield f"with others than the replicas {before.replicas}"
        yield from self._unknown_to_controller(writer, asked, event)

    def _unknown_to_controller(
        self, writer: ZooKeeperBrokerNode, asked: list[messages.AlterPartitionRequest], event: events.PartitionChanged
    ) -> Iterator[str]:
        term = None if writer.process_core is None else writer.process_core.process.controller.term
        if term is None:
            return  # it has resigned since
        brokers, leader = term.context.brokers, event.leader
        known = brokers.get(leader) if leader is not None else None
        epochs = {request.broker_epoch for request in asked}
        if known is None or known.broker_epoch not in epochs:
            yield f"asked for in broker epoch {sorted(epochs)}, and the controller knows {known}"
        gone = (set(event.isr) - brokers.keys()) | (set(event.isr) & term.context.shutting_down)
        if gone and self._rules.alter_isr_checks in _ELIGIBLE_MEMBERS:
            yield f"with {sorted(gone)}, who are not registered, or shutting down"
