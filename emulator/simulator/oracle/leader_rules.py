"""Rules of brokers, restated: a leader's changes of high watermark and ISR, and when it may serve.

H3, H5, M7, M9, D8, D9 on one replica are the core's own named predicates, applied to the partitions of the step. The
others need an observer that sees several events, or controller and brokers at once.
"""

from typing import Final

from laststand.emulator.core import events, messages
from laststand.emulator.core.broker.replicas.invariants import check_hosted_partition, check_progress, partition_mark
from laststand.emulator.core.broker.replicas.isr import Committed, PendingExpand
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.topic_names import INTERNAL_TOPICS
from laststand.emulator.core.types import (
    BrokerId,
    LeaderEpoch,
    LeaderRecoveryState,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.candidates import candidates
from laststand.emulator.simulator.oracle.metadata import MetadataChecks

_SETTLED: Final = ("committed", "reverted")
"""Outcomes after which a leader may propose again."""

_SERVING: Final = (
    messages.DeleteRecordsResponse,
    messages.FetchResponse,
    messages.ListOffsetsResponse,
    messages.OffsetForLeaderEpochResponse,
    messages.ProduceResponse,
)

_ReplicaKey = tuple[NodeId, TopicPartition]


class LeaderRules:
    """Checks of one run."""

    def __init__(self, alarm_log: AlarmLog, metadata: MetadataChecks) -> None:
        self._alarm_log = alarm_log
        self._metadata = metadata
        self._cluster: SimulatedCluster
        self._leaders: dict[tuple[TopicPartition, TopicId, LeaderEpoch], NodeId] = {}
        self._term_start: dict[_ReplicaKey, LeaderEpoch] = {}
        self._last_epoch: dict[_ReplicaKey, LeaderEpoch] = {}
        self._proposed: dict[_ReplicaKey, tuple[LeaderEpoch, PartitionEpoch]] = {}

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster

    def forget(self, topic: str) -> None:
        """A topic without an id is deleted: another topic of its name begins with epoch 0 again."""
        self._leaders = {key: leader for key, leader in self._leaders.items() if key[0].topic != topic}

    # --- Events -----------------------------------------------------------------------------------------------------

    def opened(self, node_id: NodeId, name: TopicPartition) -> None:
        """Notes that a process has opened a log, which it does not lead yet."""
        self._cluster.nodes[BrokerId(node_id)].marks.pop(name, None)
        self._stand_down(node_id, name)

    def _stand_down(self, node_id: NodeId, name: TopicPartition) -> None:
        self._term_start.pop((node_id, name), None)
        self._last_epoch.pop((node_id, name), None)
        self._proposed.pop((node_id, name), None)

    def became_leader(self, node_id: NodeId, name: TopicPartition, event: events.BecameLeader) -> None:
        """A term begins, or goes on if this is the next epoch; after a gap another broker may have led."""
        key, leader_epoch = (node_id, name), event.leader_epoch
        is_next = self._last_epoch.get(key) in (leader_epoch, leader_epoch - 1)
        if key not in self._term_start or (not is_next and self._cluster.rules_of(node_id).progress_of_this_term):
            self._term_start[key] = leader_epoch
        self._last_epoch[key] = leader_epoch
        self._proposed.pop((node_id, name), None)

    def became_follower(self, node_id: NodeId, name: TopicPartition, _: events.BecameFollower) -> None:
        """A term is over."""
        self._stand_down(node_id, name)

    def appended(self, node_id: NodeId, name: TopicPartition, event: events.BatchAppended) -> None:
        """A batch was appended: M8, and M18 where a recovering leader appended a client's batch.

        A recovering leader may itself append transaction markers, and records to internal topics.
        """
        if event.role is not events.AppendRole.LEADER:
            return
        leader = self._leaders.setdefault((name, event.topic_id, event.leader_epoch), node_id)
        if leader != node_id:
            self._alarm_log.report("M8", name, f"{name}: epoch {event.leader_epoch} has leaders {leader} and {node_id}")
        is_own = event.ends_transaction or name.topic in INTERNAL_TOPICS
        if self._is_recovering(node_id, name) and not is_own:
            sentence = f"{name}: leader {node_id} recovers and appended {event.describe()}"
            self._alarm_log.report("M18", name, sentence, by=node_id)

    def high_watermark_advanced(
        self, node_id: NodeId, name: TopicPartition, event: events.HighWatermarkAdvanced
    ) -> None:
        """A leader's high watermark rose: H1, H2."""
        if len(event.committed_isr) < event.effective_min_isr:
            self._alarm_log.report("H2", name, f"{name}: {event.describe()}", by=node_id)
        if not self._metadata.has_committed(name, event.leader_epoch, event.committed_isr):
            sentence = f"{name}: the controller never committed ISR {event.committed_isr} in that epoch"
            self._alarm_log.report("H2", name, f"{sentence}: {event.describe()}", by=node_id)
        # What was learned before this broker last became leader counts no more: another leader may have had it cut.
        term_start = self._term_start.get((node_id, name), event.leader_epoch)
        ends = {
            progress.broker_id: progress.log_end_offset
            for progress in event.replicas
            if progress.log_end_offset is not None
            and progress.leader_epoch is not None
            and term_start <= progress.leader_epoch <= event.leader_epoch
        }
        bounds = self._bounds(node_id, name, event)
        short = [member for member in bounds if (end := ends.get(member)) is None or end < event.new]
        if short or event.new > event.log_end_offset:
            self._alarm_log.report(
                "H1", name, f"{name}: {short} of the maximal ISR are not there yet: {event.describe()}"
            )
        held = [ends[member] for member in (*event.maximal_isr, *event.joiners) if member in ends]
        if held and event.new < min(held):
            self._alarm_log.report("H1", name, f"{name}: it stays behind what all hold: {event.describe()}")

    def _bounds(
        self, node_id: NodeId, name: TopicPartition, event: events.HighWatermarkAdvanced
    ) -> tuple[BrokerId, ...]:
        """Returns the members whose log ends the high watermark may not pass."""
        return event.maximal_isr

    def proposed(self, node_id: NodeId, name: TopicPartition, event: events.AlterPartitionProposed) -> None:
        """Notes that a leader asks for another ISR: H5, one at a time."""
        version = (event.leader_epoch, event.partition_epoch)
        if self._proposed.get((node_id, name)) == version:
            sentence = f"{name}: proposed while the same version's proposal is out: {event.describe()}"
            self._alarm_log.report("H5", name, sentence, by=node_id)
        self._proposed[node_id, name] = version

    def answered(self, node_id: NodeId, name: TopicPartition, event: events.AlterPartitionAnswered) -> None:
        """A leader received the response to its proposal."""
        if event.outcome in _SETTLED:
            self._proposed.pop((node_id, name), None)

    # --- Answers ----------------------------------------------------------------------------------------------------

    def responded(self, node: BrokerNode, response: messages.Response) -> None:
        """A broker answers a request: M18, where the leader recovers."""
        if not isinstance(response, _SERVING):
            return
        for part in response.partitions:
            name = TopicPartition(part.topic, part.partition)
            if part.error is ErrorCode.NONE and self._is_recovering(node.node_id, name):
                sentence = f"{name} recovers, and broker {node.node_id} serves it by a {type(response).__name__}"
                self._alarm_log.report("M18", name, sentence, by=node.node_id)

    def _is_recovering(self, node_id: NodeId, name: TopicPartition) -> bool:
        """Returns whether a partition is RECOVERING by the metadata and the answers that a broker has received."""
        broker = self._cluster.nodes[BrokerId(node_id)].broker
        state = None if broker is None else broker.image.partitions.get(name)
        if broker is None or state is None or state.leader_recovery_state is LeaderRecoveryState.RECOVERED:
            return False
        partition = broker.partition(name)
        return partition is None or partition.partition_epoch <= state.partition_epoch

    # --- States -----------------------------------------------------------------------------------------------------

    def check_hosted(self, node: BrokerNode, partition: Partition) -> None:
        """D8, D9, H3, H5, M7, M9 on one replica."""
        try:
            check_hosted_partition(partition)
            mark = node.marks.get(partition.name)
            if mark is not None:
                check_progress(partition, mark)
        except InvariantError as violation:
            check_id = str(violation).partition(":")[0]
            sentence = f"on broker {node.node_id}, {violation}"
            self._alarm_log.report(check_id, partition.name, sentence, by=node.node_id)
        node.marks[partition.name] = partition_mark(partition)
        state = partition.isr_state
        if not isinstance(state, Committed):
            both = {*state.committed, *((state.joining,) if isinstance(state, PendingExpand) else ())}
            if set(partition.maximal_isr) != both:
                sentence = f"{partition.name}: leader {node.node_id} reckons with {partition.maximal_isr}"
                sentence = f"{sentence} while {state} is under way"
                self._alarm_log.report("H5", partition.name, sentence, by=node.node_id)

    def check_superset(self, name: TopicPartition) -> None:
        """H4: the maximal ISR of a settled leader with enough ISR members contains all the controller's candidates."""
        state = self._cluster.state(name)
        if state is None or state.leader is None:
            return
        node = self._cluster.nodes[state.leader]
        partition = None if node.broker is None else node.broker.partition(name)
        if partition is None or not partition.is_leader or partition.leader_epoch != state.leader_epoch:
            return
        if partition.log.topic_id != state.topic_id:
            return  # it leads the topic that had this name before
        registration = self._cluster.image.brokers[state.leader]
        if registration.incarnation_id != node.incarnation_id:
            return  # it serves no client: its maximal ISR does not matter
        if len(partition.committed_isr) < partition.effective_min_isr:
            return
        missing = set(candidates(self._cluster, state)) - set(partition.maximal_isr)
        if missing:
            self._alarm_log.report(
                "H4",
                name,
                f"{name}: leader {state.leader} reckons with {partition.maximal_isr}; the controller has ISR"
                f" {state.isr} and ELR {state.elr}",
            )
