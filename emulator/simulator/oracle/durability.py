"""Checks that replicas hold the records promised to clients: D1-D6, and C3 on the log end a settled leader reports.

A *serving* leader is the controller's leader, in the controller's epoch: it must have the promised records, also if it
was restarted and leads again before the controller knows. A *settled* leader is also the process that the controller
knows. Other replicas have no duty to clients.
"""

from laststand.emulator.core import events, messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.replicas.list_offsets import Asker, list_offset
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.types import BrokerId, NodeId, Offset, TopicPartition
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.disk.retention import RETENTION
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.candidates import candidates
from laststand.emulator.simulator.oracle.copies import Copies
from laststand.emulator.simulator.oracle.deletions import Deletions
from laststand.emulator.simulator.oracle.losses import LossLedger
from laststand.emulator.simulator.oracle.truth import PartitionTruth, PromisedBatch


class DurabilityChecks:
    """Checks of one run's promises.

    Attributes:
        deletions: decides which records may be gone.
    """

    def __init__(
        self, alarm_log: AlarmLog, truths: dict[TopicPartition, PartitionTruth], copies: Copies, losses: LossLedger
    ) -> None:
        self._alarm_log = alarm_log
        self._copies = copies
        self._losses = losses
        self._truths = truths
        self.deletions = Deletions()
        self._cluster: SimulatedCluster
        self._weak: set[tuple[TopicPartition, BrokerId]] = set()

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster

    def weak_candidates(self) -> tuple[tuple[TopicPartition, BrokerId], ...]:
        """Returns the present candidates that lack committed records."""
        return tuple(sorted(self._weak))

    def forget(self, name: TopicPartition) -> None:
        """Notes that a partition was deleted."""
        self._weak = {key for key in self._weak if key[0] != name}

    # --- Who leads --------------------------------------------------------------------------------------------------

    def is_registered(self, node: BrokerNode) -> bool:
        """Returns whether a broker is the process that the controller knows."""
        registration = self._cluster.image.brokers.get(node.broker_id)
        return (
            node.broker is not None and registration is not None and registration.incarnation_id == node.incarnation_id
        )

    def settled_leader(self, name: TopicPartition) -> BrokerNode | None:
        """Returns a partition's settled leader."""
        node = self.serving_leader(name)
        return node if node is not None and self.is_registered(node) else None

    def serving_leader(self, name: TopicPartition) -> BrokerNode | None:
        """Returns the leader of a partition in the controller's epoch: the process that was elected, or a later one."""
        state = self._cluster.state(name)
        if state is None or state.leader is None:
            return None
        node = self._cluster.nodes[state.leader]
        partition = None if node.broker is None else node.broker.partition(name)
        if partition is None or not partition.is_leader or partition.leader_epoch != state.leader_epoch:
            return None
        return node if partition.log.topic_id == state.topic_id else None

    # --- Checks -----------------------------------------------------------------------------------------------------

    def log_start_raised(self, node_id: NodeId, name: TopicPartition, event: events.LogStartOffsetRaised) -> None:
        """D9: only committed records are deleted; other deletions than requested ones excuse nothing (D1, D5).

        A follower's deletion excuses nothing by itself: its leader must have deleted the same records.
        """
        truth = self._truths[name]
        committed = truth.committed_end_offset
        if event.new > committed:
            sentence = f"broker {node_id} deleted records of {name} below {event.new}"
            self._alarm_log.report("D9", name, f"{sentence}, and no leader committed more than {committed}")
        allowed = self.deletions.allowed(name, event.new, committed=committed, cause_id=event.cause_id)
        broker = self._cluster.nodes[BrokerId(node_id)].broker
        partition = None if broker is None else broker.partition(name)
        if partition is None:
            return
        if event.cause_id == RETENTION:  # the segments are gone by now
            truth.delete(allowed, None, since=event.old, leader_epoch=partition.leader_epoch)
        elif partition.is_leader:
            stored = self._cluster.nodes[BrokerId(node_id)].disk.logs[name]
            truth.delete(allowed, stored.batches, since=event.old, leader_epoch=partition.leader_epoch)

    def acked(self, name: TopicPartition, promise: PromisedBatch) -> None:
        """D1 on a batch that was just acknowledged."""
        self._truths[name].acknowledge(promise)
        node = self.serving_leader(name)
        if node is None:
            return
        log = node.disk.logs[name]
        held = next((batch for batch in reversed(log.batches) if batch.last_offset <= promise.last_offset), None)
        is_another = held is not None and held.last_offset == promise.last_offset and held.crc != promise.crc
        if is_another or log.log_end_offset <= promise.last_offset:
            self._lost("D1", name, promise, node)
            self._truths[name].forget_from(promise.base_offset)

    def check_leader(self, name: TopicPartition, node: BrokerNode) -> None:
        """D1, D2, D5: a serving leader has everything that was promised."""
        truth = self._truths[name]
        log = node.disk.logs[name]
        held = {batch.last_offset: batch.crc for batch in log.batches}
        lost_from: list[Offset] = []
        for check_id, promises in (("D1", truth.acked), ("D5", truth.exposed)):
            lost = next(
                (
                    promise
                    for promise in promises.values()
                    if (promise.base_offset < log.log_start_offset or held.get(promise.last_offset) != promise.crc)
                    and not self._is_exempt(check_id, truth, promise, promise.base_offset)
                ),
                None,
            )
            if lost is not None:
                self._lost(check_id, name, lost, node)
                lost_from.append(lost.base_offset)
        if log.log_end_offset < truth.high_watermark:
            since = self._since(name, log.log_end_offset, truth.committed_since(log.log_end_offset))
            self._alarm_log.report(
                "D2",
                name,
                f"{name}: leader {node.node_id} ends at {log.log_end_offset}, and {truth.high_watermark} was committed",
                since=since,
                until=self._took_over_at(name, node),
            )
            lost_from.append(log.log_end_offset)
        if lost_from:
            truth.forget_from(min(lost_from))

    def check_last_leader(self, name: TopicPartition, node: BrokerNode | None) -> None:
        """D5 at the end of a run: the last leader, if any, has what consumers received before it was committed."""
        truth, log = self._truths[name], None if node is None else node.disk.logs.get(name)
        if node is None or log is None:
            return
        held = {(batch.last_offset, batch.crc) for batch in log.batches if batch.last_offset >= log.log_start_offset}
        for given in truth.given_too_early:
            is_held = (given.last_offset, given.crc) in held
            if not is_held and not self._is_exempt("D5", truth, given, given.last_offset):
                self._lost("D5", name, given, node)

    def check_late_leader(self, name: TopicPartition, node: BrokerNode, event: events.BecameLeader) -> None:
        """D1, D2, D5 on a leader that learns of its election after the controller has committed a later epoch.

        It must have the records that leaders of earlier epochs acknowledged, and its own previous process in this
        epoch, but not those that its successors acknowledged meanwhile. A log that is long enough may hold other
        batches than those a consumer received, or none if it was truncated within a batch (S49).
        """
        truth = self._truths.get(name)
        until = None if truth is None else truth.ledger.took_over_at(event.leader_epoch, node.incarnation)
        if truth is None or until is None:
            return
        end_offset = event.epoch_start_offset
        what = f"leader {node.node_id} of epoch {event.leader_epoch} ends at {end_offset}"
        held = {batch.last_offset: batch.crc for batch in node.disk.logs[name].batches}
        for check_id, promises in (("D1", truth.acked), ("D5", truth.exposed)):
            for promise in promises.values():
                is_earlier = promise.leader_epoch is not None and promise.leader_epoch <= event.leader_epoch
                is_missing = check_id == "D5" and held.get(promise.last_offset) != promise.crc
                if (
                    is_earlier
                    and (promise.last_offset >= end_offset or is_missing)
                    and not self._is_exempt(check_id, truth, promise, promise.last_offset)
                ):
                    sentence = f"{name}: {what}, without {promise.base_offset}..{promise.last_offset}"
                    since = self._truths[name].counts_since(promise)
                    self._alarm_log.report(
                        check_id, name, f"{sentence} (batch {promise.crc})", since=since, until=until
                    )
                    break
        committed = truth.committed_up_to_epoch(end_offset, event.leader_epoch)
        if end_offset < min(committed, truth.high_watermark):
            since = self._since(name, end_offset, truth.committed_since(end_offset))
            self._alarm_log.report(
                "D2", name, f"{name}: {what}, and {committed} was committed", since=since, until=until
            )

    def check_late_commit(self, name: TopicPartition, node: BrokerNode, event: events.HighWatermarkAdvanced) -> None:
        """D2 on a deposed leader that commits records which a leader elected later did not have."""
        lacking = self._losses.first_lacking(name, event.leader_epoch, node.incarnation, event.new)
        if lacking is None:
            return
        ledger = self._truths[name].ledger
        self._alarm_log.report(
            "D2",
            name,
            f"{name}: leader {lacking.broker_id} of epoch {lacking.leader_epoch} ends at {lacking.log_end_offset}, and "
            f"leader {node.node_id} of epoch {event.leader_epoch} commits up to {event.new}",
            since=ledger.deposed_at(event.leader_epoch),
            until=ledger.took_over_at(lacking.leader_epoch, lacking.incarnation),
        )

    def _is_exempt(self, check_id: str, truth: PartitionTruth, promise: PromisedBatch, offset: Offset) -> bool:
        return PROMISES[check_id].leaves_out(Exemption.DELETED_RECORDS) and truth.is_deleted(promise, offset)

    def _lost(self, check_id: str, name: TopicPartition, promise: PromisedBatch, node: BrokerNode) -> None:
        what = "acknowledged with acks=all" if check_id == "D1" else "given to a consumer"
        self._alarm_log.report(
            check_id,
            name,
            f"{name} {promise.base_offset}..{promise.last_offset} (batch {promise.crc}), {what}, is not on leader "
            f"{node.node_id}, whose log ends at {node.disk.logs[name].log_end_offset}",
            since=self._truths[name].counts_since(promise),
            until=self._took_over_at(name, node),
        )

    def _since(self, name: TopicPartition, offset: Offset, moment: int) -> int:
        """Returns the moment from which the promise of a committed record counts: commit, or leader's deposition."""
        truth = self._truths[name]
        leader_epoch = truth.committed_epoch(offset)
        return moment if leader_epoch is None else min(moment, truth.ledger.deposed_at(leader_epoch))

    def _took_over_at(self, name: TopicPartition, node: BrokerNode) -> int | None:
        state = self._cluster.state(name)
        return None if state is None else self._truths[name].ledger.took_over_at(state.leader_epoch, node.incarnation)

    def check_candidates(self, name: TopicPartition) -> None:
        """D3: a running candidate under its current broker epoch has every committed record."""
        state = self._cluster.state(name)
        truth = self._truths.get(name)
        if state is None or truth is None or not truth.high_watermark:
            return
        for broker_id in self._candidates(state):
            node = self._cluster.nodes[broker_id]
            log = node.disk.logs.get(name)
            end = log.log_end_offset if log is not None and self._losses.has_log(node, name, state) else Offset(0)
            key = (name, broker_id)
            if end >= truth.high_watermark:
                self._weak.discard(key)
                continue
            if key in self._weak or not self.is_registered(node):
                continue
            self._weak.add(key)
            self._alarm_log.report(
                "D3",
                name,
                f"{name}: broker {broker_id} is a candidate (ISR {state.isr}, ELR {state.elr}) and ends at {end}, "
                f"{truth.high_watermark} was committed",
                since=self._since(name, end, truth.committed_since(end)),
            )

    def _candidates(self, state: PartitionState) -> tuple[BrokerId, ...]:
        return candidates(self._cluster, state)

    def check_reported_end(self, name: TopicPartition, node: BrokerNode, partition: Partition) -> None:
        """C3: the log end that a settled leader would report to a client is within its epoch, and does not fall."""
        if partition.is_recovering:
            return
        asked = messages.ListOffsetsPosition(
            topic=name.topic, partition=name.partition, timestamp=messages.LATEST_TIMESTAMP
        )
        answer = list_offset(partition, asked, Asker.CLIENT)
        if answer.error is not ErrorCode.NONE or answer.offset is None:
            return
        truth = self._truths[name]
        if answer.offset < max(truth.reported_end_offset, partition.epoch_start_offset):
            sentence = f"{name}: leader {node.node_id} tells {answer.offset} as the end, its epoch starts at"
            ends = f"{partition.epoch_start_offset} and {truth.reported_end_offset} was told before"
            self._alarm_log.report("C3", name, f"{sentence} {ends}")
        truth.reported_end_offset = max(truth.reported_end_offset, answer.offset)

    def check_agreement(self, name: TopicPartition) -> None:
        """D6: running replicas agree below the smaller of their high watermarks."""
        state = self._cluster.state(name)
        seen: list[tuple[BrokerNode, Partition, dict[Offset, BatchDescriptor]]] = []
        for node in self._cluster.nodes.values():
            partition = None if node.broker is None else node.broker.partition(name)
            if partition is None or state is None or partition.log.topic_id != state.topic_id:
                continue
            batches = {
                batch.base_offset: batch
                for batch in node.disk.logs[name].batches
                if batch.last_offset < partition.log.high_watermark
            }
            for other, other_partition, other_batches in seen:
                bound = min(partition.log.high_watermark, other_partition.log.high_watermark)
                start = max(partition.log.log_start_offset, other_partition.log.log_start_offset)
                # They differ, too, where one has a batch that ends below the bound and the other one that does not.
                shared = [
                    {
                        (offset, batch.leader_epoch, batch.crc)
                        for offset, batch in each.items()
                        if start <= offset and batch.last_offset < bound
                    }
                    for each in (batches, other_batches)
                ]
                if differing := shared[0] ^ shared[1]:
                    self._alarm_log.report(
                        "D6",
                        name,
                        f"{name} offset {min(differing)[0]} differs between brokers {other.node_id} and "
                        f"{node.node_id}, below the high watermarks of both",
                    )
            seen.append((node, partition, batches))

    def check_somewhere(self, name: TopicPartition) -> None:
        """D4: an acknowledged record is on one replica at least, and not below its log start, where reads fail."""
        truth, state = self._truths[name], self._cluster.state(name)
        if state is None:
            return
        held = {
            (batch.last_offset, batch.crc)
            for node in self._cluster.nodes.values()
            if self._losses.has_log(node, name, state) and (log := node.disk.logs.get(name)) is not None
            for batch in log.batches
            if batch.last_offset >= log.log_start_offset
        }
        for promise in truth.ever_acked.values():
            is_there = (promise.last_offset, promise.crc) in held
            if (
                not is_there
                and not self._is_exempt("D4", truth, promise, promise.base_offset)
                and self._copies.outlived_power_losses(name, promise)
            ):
                sentence = f"{name} {promise.base_offset}..{promise.last_offset} (batch {promise.crc})"
                self._alarm_log.report(
                    "D4", name, f"{sentence} is on no replica", since=self._truths[name].counts_since(promise)
                )
                break
