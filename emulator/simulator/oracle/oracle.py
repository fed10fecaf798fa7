"""The oracle: watches a simulated cluster and raises an alarm when it breaks a promise.

It sees what an omniscient observer sees: every event, every answer, every disk, the controller's state. What it knows
itself is in ``truth``, ``guarantee``, ``reference`` and ``logs``; no replica's word is believed. This file hands
everything to whom it concerns: what a step touched is checked at its end, everything every ``FULL_SCAN_STEPS`` steps
and at the end of the run.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from emulator.core.client.steps import FinalReadRecorded, PollRecorded, SendRecorded
from emulator.core.errors import ErrorCode, InvariantViolation
from emulator.core.events import (
    AlterPartitionAnswered,
    AlterPartitionDecided,
    AlterPartitionProposed,
    BatchAppended,
    BecameFollower,
    BecameLeader,
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    ControlledShutdownStarted,
    Event,
    HighWatermarkAdvanced,
    IncarnationEnded,
    LogDeleted,
    LogOpened,
    LogStartOffsetRaised,
    LogTruncated,
    MetadataApplied,
    NodeStarted,
    OperationType,
    PartitionChanged,
    PartitionEvent,
    PowerLost,
    StrayDeleted,
    StrayDetected,
    TopicCreated,
    TopicDeleted,
)
from emulator.core.messages import FetchResponse, Response
from emulator.core.types import Acks, BrokerId, NodeId, Offset, TopicId, TopicPartition
from emulator.simulator.cluster import SimulatedCluster
from emulator.simulator.nodes import CONTROLLER, BrokerNode
from emulator.simulator.oracle.bell import Bell
from emulator.simulator.oracle.clients import ClientChecks
from emulator.simulator.oracle.controller_rules import ControllerRules
from emulator.simulator.oracle.finding import Alarm
from emulator.simulator.oracle.guarantee import GuaranteeLedger
from emulator.simulator.oracle.leader_rules import LeaderRules
from emulator.simulator.oracle.liveness import excused, missing
from emulator.simulator.oracle.logs import LogChecks
from emulator.simulator.oracle.metadata import MetadataChecks
from emulator.simulator.oracle.promises import PromiseChecks
from emulator.simulator.oracle.tally import Tally
from emulator.simulator.oracle.truth import PartitionTruth, Promise
from emulator.simulator.watcher import ClientRecord

FULL_SCAN_STEPS: Final = 256


class Oracle:
    """Watches one run; ``attach`` it to the cluster before anything but the controller runs.

    Attributes:
        truths: by partition.
        tally: what the run was like.
    """

    def __init__(self, on_alarm: Callable[[Alarm], None] | None = None) -> None:
        self._outstanding = GuaranteeLedger()
        self.truths: defaultdict[TopicPartition, PartitionTruth] = defaultdict(
            lambda: PartitionTruth(self._outstanding.successor())
        )
        self.tally = Tally()
        self.bell = Bell(self.truths, lambda: self._cluster.steps, on_alarm)
        self._cluster: SimulatedCluster
        self._next_scan = FULL_SCAN_STEPS
        self._topic_ids: dict[str, TopicId] = {}
        self._dirty: dict[TopicPartition, None] = {}
        self._has_applied_metadata = False
        self._promises = PromiseChecks(self.bell, self.truths)
        self._clients = ClientChecks(self.bell, self.truths)
        self._controller = ControllerRules(self.bell)
        self._metadata = MetadataChecks(self.bell)
        self._leaders = LeaderRules(self.bell, self._metadata.reference)
        self._logs = LogChecks(self.bell, self.truths)
        self._anywhere: Mapping[type[Event], Callable[[NodeId, Event], None]] = {
            BrokerFenced: self._fenced,
            BrokerRegistered: self._registered,
            BrokerUnfenced: self._unfenced,
            ControlledShutdownStarted: self._fenced,
            IncarnationEnded: self._ended,
            MetadataApplied: self._applied,
            NodeStarted: self._node_started,
            TopicCreated: self._topic_created,
            TopicDeleted: self._topic_deleted,
        }
        self._on_partition: Mapping[type[Event], Callable[[NodeId, TopicPartition, Event], None]] = {
            AlterPartitionAnswered: self._answered,
            AlterPartitionDecided: self._decided,
            AlterPartitionProposed: self._proposed,
            BatchAppended: self._appended,
            BecameFollower: self._became_follower,
            BecameLeader: self._became_leader,
            HighWatermarkAdvanced: self._high_watermark_advanced,
            LogDeleted: self._log_deleted,
            LogOpened: self._log_opened,
            LogStartOffsetRaised: self._log_start_raised,
            LogTruncated: self._truncated,
            PartitionChanged: self._partition_changed,
            PowerLost: self._power_lost,
            StrayDeleted: self._stray_deleted,
            StrayDetected: self._stray_detected,
        }

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster
        for checks in (self._promises, self._controller, self._metadata, self._leaders, self._logs):
            checks.attach(cluster)
        cluster.on_response = self.responded

    @property
    def alarms(self) -> list[Alarm]:
        """What fired, in order."""
        return self.bell.alarms

    def weak_candidates(self) -> tuple[tuple[TopicPartition, BrokerId], ...]:
        """Returns who is a candidate now and lacks committed records."""
        return self._promises.weak_candidates()

    # --- Watcher ----------------------------------------------------------------------------------------------------

    def happened(self, node_id: NodeId, incarnation: int, event: Event, *, now_ms: int) -> None:
        """Takes note of an event."""
        self.bell.moment += 1
        if node_id == CONTROLLER and (offset := getattr(event, "metadata_offset", None)) is not None:
            self._metadata.written(incarnation, offset)
        if not isinstance(event, PartitionEvent):
            handler = self._anywhere.get(type(event))
            if handler is not None:
                handler(node_id, event)
            return
        name = TopicPartition(event.topic, event.partition)
        self._dirty[name] = None
        on_partition = self._on_partition.get(type(event))
        if on_partition is not None:
            on_partition(node_id, name, event)

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        """Takes note of what a client saw."""
        self.bell.moment += 1
        match record:
            case SendRecorded():
                topic_id = self._topic_ids.get(record.partition.topic)
                if record.type is OperationType.OK and record.topic_id not in (None, topic_id):
                    return  # the topic that had this name before has taken its promises along
                self._clients.sent(client, record)
                if record.type is OperationType.OK and record.base_offset is not None:
                    self._acked(client, record, record.base_offset)
            case PollRecorded(type=OperationType.OK) if self._topic_ids.get(record.partition.topic) == record.topic_id:
                self._clients.polled(client, record)
                truth = self.truths[record.partition]
                for batch in record.batches:
                    truth.expose(batch, moment=self.bell.moment)
            case FinalReadRecorded(type=OperationType.OK):
                self._clients.finished(client, record)
            case FinalReadRecorded(partition=name, error=error):
                if self._cluster.state(name) is not None and name not in excused(self._cluster):
                    self.bell.ring("L6", name, f"{client} did not get to the end of {name}: {error}")
            case PollRecorded():
                pass

    def responded(self, node: BrokerNode, response: Response) -> None:
        """Takes note of a broker's answer to a request."""
        if isinstance(response, FetchResponse):
            for part in response.partitions:
                if part.error is not ErrorCode.NONE and self._cluster.state(part.topic_partition) is not None:
                    self.tally.fetch_errors += 1
        self._leaders.responded(node, response)

    def stepped(self, node_id: NodeId) -> None:
        """Checks what the step touched."""
        if self._dirty:
            node = self._cluster.nodes.get(BrokerId(node_id))
            for name in self._dirty:
                self._promises.check_candidates(name)
                self._leaders.check_superset(name)
                if node is not None and node.broker is not None:
                    self._check_replica(node, name)
            self._dirty.clear()
        if self._has_applied_metadata:
            self._has_applied_metadata = False
            self._check_roles(self._cluster.nodes[BrokerId(node_id)])
        if self._cluster.steps >= self._next_scan:
            self._next_scan = self._cluster.steps + FULL_SCAN_STEPS
            self.scan()

    # --- Checks -----------------------------------------------------------------------------------------------------

    def _check_replica(self, node: BrokerNode, name: TopicPartition) -> None:
        assert node.broker is not None
        partition = node.broker.partition(name)
        if partition is None:
            return
        self._leaders.check_hosted(node, partition)
        self._logs.check_ends(node, partition)
        if partition.is_leader and self._promises.settled_leader(name) is node:
            self._promises.check_told_end(name, node, partition)

    def _check_roles(self, node: BrokerNode) -> None:
        if node.broker is None:
            return
        for name in {*node.broker.image.partitions, *(partition.name for partition in node.broker.partitions)}:
            self._metadata.check_role(node, name, node.broker.partition(name))

    def scan(self) -> None:
        """Checks everything that can be checked at any time."""
        for name in self._cluster.image.partitions:
            self._promises.check_candidates(name)
            self._leaders.check_superset(name)
            self._promises.check_agreement(name)
            leader = self._promises.settled_leader(name)
            if leader is not None:
                self._promises.check_leader(name, leader)
                self._clients.check_sequences(name, leader.disk.logs[name].batches, self.truths[name].high_watermark)
        for node in self._cluster.nodes.values():
            if node.broker is not None:
                for partition in node.broker.partitions:
                    self._check_replica(node, partition.name)
                    self._logs.check_epochs(node, partition)
                self._check_roles(node)

    def missing(self) -> Iterator[tuple[str, TopicPartition | None, str]]:
        """Yields what a healed cluster has not come to yet: property, partition if it is about one, and a sentence."""
        yield from missing(self._cluster)
        yield from self._logs.overdue_strays()

    def finish(self) -> None:
        """Checks what can only be said at the end, and everything else once more."""
        for name, state in self._cluster.image.partitions.items():
            self._promises.check_somewhere(name)
            logs = [node.disk.logs.get(name) for node in self._cluster.nodes.values()]
            stored = [log.batches for log in logs if log is not None and log.topic_id == state.topic_id]
            self._clients.check_stored(name, stored)
        self.scan()

    def crashed(self, error: Exception) -> None:
        """A core raised an exception."""
        if isinstance(error, InvariantViolation):
            self.bell.ring("InvariantViolation", None, f"InvariantViolation: {error}")
        else:
            self.bell.ring("Exception", None, f"{type(error).__name__}: {error}")

    # --- The whole cluster ------------------------------------------------------------------------------------------

    def _node_started(self, node_id: NodeId, _: Event) -> None:
        if node_id == CONTROLLER:
            self._topic_ids = dict(self._cluster.image.topics)
            self._controller.controller_started()
            self._metadata.controller_started()
        else:
            self._logs.started(node_id)

    def _ended(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, IncarnationEnded)
        for ledger in (self._outstanding, *(truth.ledger for truth in self.truths.values())):
            ledger.ended(event, moment=self.bell.moment)
        self._controller.ended(event)

    def _registered(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, BrokerRegistered)
        self.tally.registered(event)
        self._outstanding.registered(event)
        for name, truth in self.truths.items():
            truth.ledger.registered(event)
            self._dirty[name] = None
        self._controller.registered(event)
        self._metadata.registered(event)

    def _fenced(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, BrokerFenced | ControlledShutdownStarted)
        self.tally.fenced(event)
        self._controller.fenced(event)

    def _unfenced(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, BrokerUnfenced)
        self._controller.unfenced(event)

    def _topic_created(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, TopicCreated)
        self._topic_ids[event.topic] = event.topic_id

    def _topic_deleted(self, _: NodeId, event: Event) -> None:
        """A topic that is gone promises nothing any more; one of the same name promises its own."""
        assert isinstance(event, TopicDeleted)
        self._topic_ids.pop(event.topic, None)
        for name in [name for name in self.truths if name.topic == event.topic]:
            del self.truths[name]
            self._promises.forget(name)
            self._clients.forget(name)
        self._controller.deleted(event.topic)

    def _is_current(self, event: PartitionEvent) -> bool:
        """Whether an event is about the topic that has this name now."""
        return self._topic_ids.get(event.topic) == event.topic_id

    def _applied(self, node_id: NodeId, event: Event) -> None:
        assert isinstance(event, MetadataApplied)
        self._has_applied_metadata = True
        self._metadata.applied(self._cluster.nodes[BrokerId(node_id)], event)

    # --- Partitions, by the controller ------------------------------------------------------------------------------

    def _partition_changed(self, _: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, PartitionChanged)
        self.truths[name].ledger.changed(event, moment=self.bell.moment)
        self.tally.partition_changed(event)
        self._controller.committed(name, event)

    def _decided(self, _: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, AlterPartitionDecided)
        self.tally.decided(event)
        self._controller.decided(name, event)

    # --- Partitions, by brokers -------------------------------------------------------------------------------------

    def _log_opened(self, node_id: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, LogOpened)
        self._logs.opened(node_id, name, event)
        self._leaders.opened(node_id, name)

    def _log_deleted(self, node_id: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, LogDeleted)
        self._logs.deleted(node_id, name, event)
        self._metadata.log_deleted(self._cluster.nodes[BrokerId(node_id)], name, event)

    def _stray_detected(self, node_id: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, StrayDetected)
        self._logs.stray_detected(node_id, name, event)

    def _stray_deleted(self, node_id: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, StrayDeleted)
        self._logs.stray_deleted(node_id, name, event)

    def _log_start_raised(self, _: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, LogStartOffsetRaised)
        if self._is_current(event):
            truth = self.truths[name]
            truth.log_start_offset = max(truth.log_start_offset, event.new)

    def _appended(self, node_id: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, BatchAppended)
        self._logs.appended(node_id, name, event)
        if self._is_current(event):
            self._leaders.appended(node_id, name, event)

    def _truncated(self, node_id: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, LogTruncated)
        self._logs.truncated(node_id, name, event)
        self.tally.truncated(event, high_watermark=self.truths[name].high_watermark)

    def _power_lost(self, _: NodeId, __: TopicPartition, event: Event) -> None:
        assert isinstance(event, PowerLost)
        self.tally.power_lost(event)

    def _became_leader(self, node_id: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, BecameLeader)
        self._leaders.became_leader(node_id, name, event)
        node = self._cluster.nodes[BrokerId(node_id)]
        if self._promises.settled_leader(name) is node:
            self._promises.check_leader(name, node)

    def _became_follower(self, node_id: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, BecameFollower)
        self._leaders.became_follower(node_id, name, event)

    def _high_watermark_advanced(self, node_id: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, HighWatermarkAdvanced)
        if not self._is_current(event):
            return
        log = self._cluster.nodes[BrokerId(node_id)].disk.logs[name].batches
        self.truths[name].commit(event.new, log, moment=self.bell.moment)
        self._leaders.high_watermark_advanced(node_id, name, event)

    def _proposed(self, node_id: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, AlterPartitionProposed)
        self.tally.proposals += 1
        self._leaders.proposed(node_id, name, event)

    def _answered(self, node_id: NodeId, name: TopicPartition, event: Event) -> None:
        assert isinstance(event, AlterPartitionAnswered)
        self._leaders.answered(node_id, name, event)

    # --- Clients ----------------------------------------------------------------------------------------------------

    def _acked(self, client: str, record: SendRecorded, base_offset: Offset) -> None:
        name = record.partition
        if self._cluster.producer_acks[client] is not Acks.ALL:
            return
        self.tally.acks += 1
        promise = Promise(
            base_offset=base_offset,
            last_offset=Offset(base_offset + record.record_count - 1),
            crc=record.attempts[-1].crc,
            moment=self.bell.moment,
        )
        self._promises.acked(name, promise)
