"""The oracle: watches a simulated cluster and raises an alarm when it breaks a promise.

It sees what an omniscient observer sees: every event, every disk, the controller's state. Its own knowledge is in
``truth`` and ``guarantee``; no replica's word is believed. What a step touched is checked at its end, everything every
``FULL_SCAN_STEPS`` steps and at the end of the run. A *moment* is the number of an event.
"""

from collections.abc import Callable, Mapping
from typing import Final

from emulator.core.batch import BatchDescriptor
from emulator.core.broker.partition import Partition
from emulator.core.client.steps import FinalReadRecorded, PollRecorded, SendRecorded
from emulator.core.errors import InvariantViolation
from emulator.core.events import (
    AlterPartitionDecided,
    AppendRole,
    BatchAppended,
    BecameLeader,
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    ControlledShutdownStarted,
    Election,
    Event,
    HighWatermarkAdvanced,
    IncarnationEnded,
    LogTruncated,
    NodeStarted,
    OperationType,
    PartitionChanged,
    PartitionEvent,
    PowerLost,
)
from emulator.core.types import Acks, BrokerId, NodeId, Offset, TopicPartition
from emulator.simulator.cluster import SimulatedCluster
from emulator.simulator.nodes import CONTROLLER, BrokerNode, incarnation_name
from emulator.simulator.oracle.clients import ClientChecks
from emulator.simulator.oracle.finding import Alarm, CheckKind, Guarantee
from emulator.simulator.oracle.rules import RuleChecks
from emulator.simulator.oracle.truth import PartitionTruth, Promise
from emulator.simulator.watcher import ClientRecord

FULL_SCAN_STEPS: Final = 256


class Oracle:
    """Watches one run; ``attach`` it to the cluster before anything but the controller runs.

    Attributes:
        alarms: what fired, in order.
        truths: by partition.
        acks: batches acknowledged with acks=all.
        elections: leaders that were elected after creation.
        truncations: logs that were cut.
        marks: rules that were seen at work, with how often.
    """

    def __init__(self, on_alarm: Callable[[Alarm], None] | None = None) -> None:
        self.alarms: list[Alarm] = []
        self.truths: dict[TopicPartition, PartitionTruth] = {}
        self.acks = 0
        self.elections = 0
        self.truncations = 0
        self.unclean_restarts = 0
        self.marks: dict[str, int] = {}
        self._on_alarm = on_alarm
        self._cluster: SimulatedCluster
        self._moment = 0
        self._next_scan = FULL_SCAN_STEPS
        self._dirty: dict[TopicPartition, None] = {}
        self._weak: set[tuple[TopicPartition, BrokerId]] = set()
        self._disagreeing: set[tuple[TopicPartition, BrokerId, BrokerId]] = set()
        self._clients = ClientChecks(self._raise_client_alarm)
        self._rules = RuleChecks(self._raise_rule_alarm)
        self._handlers: Mapping[type[Event], Callable[[NodeId, Event], None]] = {
            PartitionChanged: self._partition_changed,
            BrokerRegistered: self._registered,
            BrokerFenced: self._fenced,
            ControlledShutdownStarted: self._fenced,
            BrokerUnfenced: self._unfenced,
            NodeStarted: self._node_started,
            AlterPartitionDecided: self._decided,
            HighWatermarkAdvanced: self._high_watermark_advanced,
            BecameLeader: self._became_leader,
            BatchAppended: self._appended,
            LogTruncated: self._truncated,
            IncarnationEnded: self._ended,
            PowerLost: self._power_lost,
        }

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster
        self._rules.attach(cluster)

    # --- Watcher ----------------------------------------------------------------------------------------------------

    def happened(self, node_id: NodeId, incarnation: int, event: Event, *, now_ms: int) -> None:
        """Takes note of an event."""
        self._moment += 1
        if isinstance(event, PartitionEvent):
            self._dirty[TopicPartition(event.topic, event.partition)] = None
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(node_id, event)

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        """Takes note of what a client saw."""
        self._moment += 1
        match record:
            case SendRecorded():
                self._clients.sent(client, record)
                if record.type is OperationType.OK and record.base_offset is not None:
                    self._acked(client, record, record.base_offset)
            case PollRecorded(type=OperationType.OK):
                self._clients.polled(client, record)
                truth = self._truth(record.partition)
                for batch in record.batches:
                    truth.expose(batch, moment=self._moment)
            case PollRecorded() | FinalReadRecorded():
                pass

    def stepped(self, node_id: NodeId) -> None:
        """Checks what the step touched."""
        if self._dirty:
            node = self._cluster.nodes.get(BrokerId(node_id))
            for name in self._dirty:
                self._check_candidates(name)
                self._rules.check_superset(name)
                if node is not None and node.broker is not None:
                    partition = node.broker.partition(name)
                    if partition is not None:
                        self._rules.check_hosted(node, partition)
            self._dirty.clear()
        if self._cluster.steps >= self._next_scan:
            self._next_scan = self._cluster.steps + FULL_SCAN_STEPS
            self.scan()

    # --- Alarms -----------------------------------------------------------------------------------------------------

    def alarm(
        self, check_id: str, kind: CheckKind, partition: TopicPartition | None, sentence: str, *, holds: bool = True
    ) -> None:
        """Raises an alarm; ``holds`` says whether the guarantee did."""
        alarm = Alarm(
            check_id=check_id,
            kind=kind,
            partition=partition,
            guarantee=Guarantee.HOLDS if holds else Guarantee.EXCEEDED,
            sentence=sentence,
            step=self._cluster.steps,
        )
        self.alarms.append(alarm)
        if self._on_alarm is not None:
            self._on_alarm(alarm)

    def _raise_rule_alarm(self, check_id: str, partition: TopicPartition, sentence: str) -> None:
        self.alarm(check_id, CheckKind.RULE, partition, sentence)

    def _raise_client_alarm(self, check_id: str, partition: TopicPartition, sentence: str) -> None:
        self.alarm(
            check_id,
            CheckKind.OUTCOME,
            partition,
            sentence,
            holds=self._truth(partition).ledger.held(0, self._moment),
        )

    def weak_candidates(self) -> tuple[tuple[TopicPartition, BrokerId], ...]:
        """Returns who is a candidate now and lacks committed records."""
        return tuple(sorted(self._weak))

    def mark(self, name: str) -> None:
        """Counts that a rule was seen at work."""
        self.marks[name] = self.marks.get(name, 0) + 1

    def _truth(self, name: TopicPartition) -> PartitionTruth:
        truth = self.truths.get(name)
        if truth is None:
            truth = self.truths[name] = PartitionTruth()
        return truth

    # --- Controller -------------------------------------------------------------------------------------------------

    def _partition_changed(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, PartitionChanged)
        name = TopicPartition(event.topic, event.partition)
        truth = self._truth(name)
        truth.ledger.changed(event, moment=self._moment)
        self.mark(f"partition_changed:{event.reason}")
        if event.election not in (Election.NONE, Election.NO_CANDIDATE) and event.reason != "created":
            self.elections += 1
        if event.election is not Election.NONE:
            self.mark(f"election:{event.election.value}")
        self._rules.committed(name, event)

    def _registered(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, BrokerRegistered)
        if event.stored_broker_epoch is not None and event.previous_broker_epoch != event.stored_broker_epoch:
            self.unclean_restarts += 1
            self.mark("registered:unclean")
        for name, truth in self.truths.items():
            truth.ledger.registered(event)
            self._dirty[name] = None
        self._rules.registered(event)

    def _fenced(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, BrokerFenced | ControlledShutdownStarted)
        self.mark(f"fenced:{event.reason}" if isinstance(event, BrokerFenced) else "controlled_shutdown")
        self._rules.fenced(event)

    def _unfenced(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, BrokerUnfenced)
        self._rules.unfenced(event)

    def _node_started(self, node_id: NodeId, _: Event) -> None:
        if node_id == CONTROLLER:
            self._rules.controller_started()

    def _decided(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, AlterPartitionDecided)
        self.mark(f"alter_partition:{event.error}")
        self._rules.decided(event)

    # --- Brokers ----------------------------------------------------------------------------------------------------

    def _is_settled(self, node_id: NodeId, name: TopicPartition, leader_epoch: int) -> bool:
        """Whether a node leads under the controller's epoch, as the process that the controller knows."""
        state = self._cluster.state(name)
        if state is None or state.leader != node_id or state.leader_epoch != leader_epoch:
            return False
        return self._is_registered(self._cluster.nodes[BrokerId(node_id)])

    def _is_registered(self, node: BrokerNode) -> bool:
        registration = self._cluster.controller.image.brokers.get(node.broker_id)
        return (
            node.broker is not None
            and registration is not None
            and registration.incarnation_id == incarnation_name(node.broker_id, node.incarnation)
        )

    def _settled_leader(self, name: TopicPartition) -> BrokerNode | None:
        state = self._cluster.state(name)
        if state is None or state.leader is None:
            return None
        node = self._cluster.nodes[state.leader]
        partition = None if node.broker is None else node.broker.partition(name)
        if partition is None or not partition.is_leader or partition.leader_epoch != state.leader_epoch:
            return None
        return node if self._is_registered(node) else None

    def _high_watermark_advanced(self, node_id: NodeId, event: Event) -> None:
        assert isinstance(event, HighWatermarkAdvanced)
        name = TopicPartition(event.topic, event.partition)
        log = self._cluster.nodes[BrokerId(node_id)].disk.logs[name].batches
        self._truth(name).commit(event.new, log, moment=self._moment)
        self._rules.high_watermark_advanced(name, event)

    def _became_leader(self, node_id: NodeId, event: Event) -> None:
        assert isinstance(event, BecameLeader)
        name = TopicPartition(event.topic, event.partition)
        if self._is_settled(node_id, name, event.leader_epoch):
            self._check_leader(name, self._cluster.nodes[BrokerId(node_id)])

    def _appended(self, node_id: NodeId, event: Event) -> None:
        assert isinstance(event, BatchAppended)
        name = TopicPartition(event.topic, event.partition)
        known = self._truth(name).batches.setdefault((event.base_offset, event.leader_epoch), event.crc)
        if known != event.crc:
            self.alarm(
                "D7",
                CheckKind.OUTCOME,
                name,
                f"{name} offset {event.base_offset} of epoch {event.leader_epoch} was batch {known}, and is "
                f"{event.crc} on broker {node_id}",
                holds=self._truth(name).ledger.held(0, self._moment),
            )
        if event.role is AppendRole.LEADER:
            self._rules.led(name, node_id, event.leader_epoch)

    def _truncated(self, node_id: NodeId, event: Event) -> None:
        assert isinstance(event, LogTruncated)
        name = TopicPartition(event.topic, event.partition)
        self.truncations += 1
        self.mark(f"truncated:{event.reason}")
        truth = self._truth(name)
        if event.new_end_offset < truth.high_watermark:
            self.mark("truncated:below_high_watermark")

    def _ended(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, IncarnationEnded)
        for truth in self.truths.values():
            truth.ledger.ended(event, moment=self._moment)

    def _power_lost(self, _: NodeId, event: Event) -> None:
        assert isinstance(event, PowerLost)
        if event.new_end_offset < event.old_end_offset:
            self.mark("power_loss:bytes")

    # --- Clients ----------------------------------------------------------------------------------------------------

    def _acked(self, client: str, record: SendRecorded, base_offset: Offset) -> None:
        producer = next(node for node in self._cluster.producers.values() if node.name == client)
        if producer.acks is not Acks.ALL:
            return
        self.acks += 1
        promise = Promise(
            base_offset=base_offset,
            last_offset=Offset(base_offset + record.record_count - 1),
            crc=record.attempts[-1].crc,
            moment=self._moment,
        )
        self._truth(record.partition).acked[base_offset] = promise
        node = self._settled_leader(record.partition)
        if node is not None:
            log = {batch.last_offset: batch.crc for batch in node.disk.logs[record.partition].batches[-64:]}
            if log.get(promise.last_offset, promise.crc) != promise.crc or (log and promise.last_offset > max(log)):
                self._lost("D1", record.partition, promise, node)

    # --- Checks -----------------------------------------------------------------------------------------------------

    def _check_leader(self, name: TopicPartition, node: BrokerNode) -> None:
        """D1, D2, D5: a settled leader has everything that was promised."""
        truth = self._truth(name)
        log = node.disk.logs[name]
        held = {batch.last_offset: batch.crc for batch in log.batches}
        for check_id, promises in (("D1", truth.acked), ("D5", truth.exposed)):
            for promise in promises.values():
                if promise.base_offset >= log.log_start_offset and held.get(promise.last_offset) != promise.crc:
                    self._lost(check_id, name, promise, node)
                    return
        if log.log_end_offset < truth.high_watermark:
            since = truth.committed_since(log.log_end_offset)
            self.alarm(
                "D2",
                CheckKind.OUTCOME,
                name,
                f"{name}: leader {node.node_id} ends at {log.log_end_offset}, and {truth.high_watermark} was committed",
                holds=self._held(name, since),
            )
            truth.forget_from(log.log_end_offset)

    def _lost(self, check_id: str, name: TopicPartition, promise: Promise, node: BrokerNode) -> None:
        truth = self._truth(name)
        what = "acknowledged with acks=all" if check_id == "D1" else "given to a consumer"
        self.alarm(
            check_id,
            CheckKind.OUTCOME,
            name,
            f"{name} {promise.base_offset}..{promise.last_offset} (batch {promise.crc}), {what}, is not on leader "
            f"{node.node_id}, whose log ends at {node.disk.logs[name].log_end_offset}",
            holds=self._held(name, promise.moment),
        )
        truth.forget_from(promise.base_offset)

    def _held(self, name: TopicPartition, since: int) -> bool:
        """Whether the guarantee held until the present leader was elected."""
        ledger = self._truth(name).ledger
        state = self._cluster.state(name)
        until = self._moment if state is None else ledger.elected_at.get(state.leader_epoch, self._moment)
        return ledger.held(min(since, until), until)

    def _check_candidates(self, name: TopicPartition) -> None:
        """D3: a running candidate under its current broker epoch holds everything committed."""
        state = self._cluster.state(name)
        truth = self.truths.get(name)
        if state is None or truth is None or not truth.high_watermark:
            return
        for broker_id in (*state.isr, *state.elr):
            node = self._cluster.nodes[broker_id]
            log = node.disk.logs.get(name)
            end = Offset(0) if log is None else log.log_end_offset
            key = (name, broker_id)
            if end >= truth.high_watermark:
                self._weak.discard(key)
                continue
            if key in self._weak or not self._is_registered(node):
                continue
            self._weak.add(key)
            self.alarm(
                "D3",
                CheckKind.CANDIDATE,
                name,
                f"{name}: broker {broker_id} is a candidate (ISR {state.isr}, ELR {state.elr}) and ends at {end}, "
                f"{truth.high_watermark} was committed",
                holds=truth.ledger.held(truth.committed_since(end), self._moment),
            )

    def scan(self) -> None:
        """Checks everything that can be checked at any time."""
        for name in self._cluster.controller.image.partitions:
            self._check_candidates(name)
            self._rules.check_superset(name)
            self._check_agreement(name)
            leader = self._settled_leader(name)
            if leader is not None:
                self._check_leader(name, leader)
        for node in self._cluster.nodes.values():
            if node.broker is not None:
                for partition in node.broker.partitions:
                    self._rules.check_hosted(node, partition)

    def _check_agreement(self, name: TopicPartition) -> None:
        """D6: running replicas agree below the smaller of their high watermarks."""
        seen: list[tuple[BrokerNode, Partition, dict[Offset, BatchDescriptor]]] = []
        for node in self._cluster.nodes.values():
            partition = None if node.broker is None else node.broker.partition(name)
            if partition is None:
                continue
            batches = {
                batch.base_offset: batch
                for batch in node.disk.logs[name].batches
                if batch.last_offset < partition.log.high_watermark
            }
            for other, other_partition, other_batches in seen:
                bound = min(partition.log.high_watermark, other_partition.log.high_watermark)
                for offset, batch in batches.items():
                    twin = other_batches.get(offset)
                    if batch.last_offset < bound and (twin is None or twin.crc != batch.crc):
                        pair = (name, other.broker_id, node.broker_id)
                        if pair in self._disagreeing:
                            return
                        self._disagreeing.add(pair)
                        self.alarm(
                            "D6",
                            CheckKind.OUTCOME,
                            name,
                            f"{name} offset {offset} differs between brokers {other.node_id} and {node.node_id}, "
                            f"below high watermark {bound} of both",
                            holds=self._truth(name).ledger.held(0, self._moment),
                        )
                        return
            seen.append((node, partition, batches))

    def finish(self) -> None:
        """Checks what can only be said at the end: D4, D11, D12, and everything else once more."""
        for name, truth in self.truths.items():
            logs = [
                {batch.last_offset: batch.crc for batch in log.batches}
                for node in self._cluster.nodes.values()
                if (log := node.disk.logs.get(name)) is not None
            ]
            for promise in truth.acked.values():
                if not any(log.get(promise.last_offset) == promise.crc for log in logs):
                    self.alarm(
                        "D4",
                        CheckKind.OUTCOME,
                        name,
                        f"{name} {promise.base_offset}..{promise.last_offset} (batch {promise.crc}) is on no replica",
                        holds=truth.ledger.held(promise.moment, self._moment),
                    )
                    break
            self._clients.check_stored(name, logs)
            leader = self._settled_leader(name)
            if leader is not None:
                self._clients.check_duplicates(name, leader.disk.logs[name].batches, truth.high_watermark)
        self.scan()

    def crashed(self, error: Exception) -> None:
        """A core raised an exception."""
        kind = "InvariantViolation" if isinstance(error, InvariantViolation) else type(error).__name__
        self.alarm(kind, CheckKind.CRASH, None, f"{kind}: {error}")
