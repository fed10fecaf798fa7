"""The content of each broker's logs, kept by the oracle from events alone, and the rules for changing a log.

D7: batches with the same offset and epoch are the same batch, after the same predecessor. Every batch that was ever
appended is remembered with its predecessor; two logs that share a batch then agree on everything below. D8, D9: an
append continues the log. D15: a truncated batch was not committed. M15: a log belongs to the topic that its broker's
metadata names. L7: a stray log is deleted when its grace period is over.
"""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.types import BrokerId, LeaderEpoch, NodeId, Offset, TopicId, TopicPartition
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.deletions import Deletions
from laststand.emulator.simulator.oracle.truth import PartitionTruth, PromisedBatch

_BatchKey = tuple[Offset, LeaderEpoch]

_ON_PURPOSE = ("recovered",)
"""Reasons for which a log is cut whatever was committed: a recovery step found the rest to be bad."""


class _KnownLog:
    """One log: its batches as (base offset, last offset, leader epoch, CRC), and its end."""

    __slots__ = ("batches", "log_end_offset", "topic_id")

    def __init__(self, topic_id: TopicId) -> None:
        self.topic_id = topic_id
        self.batches: list[tuple[Offset, Offset, LeaderEpoch, int]] = []
        self.log_end_offset = Offset(0)


class LogChecks:
    """Checks of one run's logs."""

    def __init__(self, alarm_log: AlarmLog, truths: dict[TopicPartition, PartitionTruth], deletions: Deletions) -> None:
        self._alarm_log = alarm_log
        self._truths = truths
        self._deletions = deletions
        self._cluster: SimulatedCluster
        self._logs: dict[tuple[NodeId, TopicPartition], _KnownLog] = {}
        self._found: dict[tuple[NodeId, TopicPartition], _KnownLog] = {}
        self._strays: dict[tuple[NodeId, TopicPartition, TopicId], int] = {}
        self._batches: dict[tuple[TopicPartition, TopicId], dict[_BatchKey, tuple[int, _BatchKey | None]]] = {}
        self._cut_off: dict[
            tuple[TopicPartition, TopicId], dict[tuple[Offset, LeaderEpoch, int], events.LogTruncated]
        ] = {}
        self._truths_of_deleted: dict[tuple[TopicPartition, TopicId], tuple[PartitionTruth, int]] = {}

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster

    def forget(self, topic: str) -> None:
        """A topic without an id is deleted: another topic of its name has other batches at the same offsets."""
        for name, topic_id in [key for key in self._batches if key[0].topic == topic]:
            del self._batches[name, topic_id]
        self._cut_off = {key: cut for key, cut in self._cut_off.items() if key[0].topic != topic}
        for name, topic_id in [key for key in self._truths_of_deleted if key[0].topic == topic]:
            del self._truths_of_deleted[name, topic_id]

    def topic_deleted(self, name: TopicPartition, topic_id: TopicId, truth: PartitionTruth) -> None:
        """A topic is deleted; D15 still applies to brokers that have not learned of the deletion."""
        self._truths_of_deleted[name, topic_id] = truth, self._alarm_log.moment

    def has_batch(self, name: TopicPartition, topic_id: TopicId, base_offset: Offset, crc: int) -> bool:
        """Returns whether a log of this topic ever had a batch at an offset."""
        batches = self._batches.get((name, topic_id), {})
        return any(key[0] == base_offset and batch[0] == crc for key, batch in batches.items())

    def opened(self, node_id: NodeId, name: TopicPartition, event: events.LogOpened) -> None:
        """A log was created, or found at start."""
        self._check_topic(node_id, name, event.topic_id)
        known = self._logs.get((node_id, name))
        if known is not None and known.topic_id != event.topic_id and event.log_end_offset:
            sentence = f"{name} on broker {node_id} goes on as topic {event.topic_id} with data of {known.topic_id}"
            self._alarm_log.report("M15", name, sentence, by=node_id)
        # A process may truncate a log in the step that opens it: then the disk no longer holds what was found.
        fresh = self._found.pop((node_id, name), None)
        if fresh is None or fresh.topic_id != event.topic_id:
            fresh = self._on_disk(node_id, name) or _KnownLog(event.topic_id)
        self._logs[node_id, name] = fresh
        fresh.topic_id = event.topic_id
        while fresh.batches and fresh.batches[-1][1] >= event.log_end_offset:
            fresh.batches.pop()
        fresh.log_end_offset = event.log_end_offset

    def _on_disk(self, node_id: NodeId, name: TopicPartition) -> _KnownLog | None:
        stored = self._cluster.nodes[BrokerId(node_id)].disk.logs.get(name)
        if stored is None:
            return None
        log = _KnownLog(stored.topic_id)
        log.batches = [(b.base_offset, b.last_offset, b.leader_epoch, b.crc) for b in stored.batches]
        return log

    def deleted(self, node_id: NodeId, name: TopicPartition, event: events.LogDeleted) -> None:
        """A log is no longer served; its topic id is remembered."""
        self._logs[node_id, name] = _KnownLog(event.topic_id)

    def started(self, node_id: NodeId) -> None:
        """Notes that a process begins, with the logs on its disk; the grace period of its strays begins again."""
        for name in self._cluster.nodes[BrokerId(node_id)].disk.logs:
            found = self._on_disk(node_id, name)
            if found is not None:
                self._found[node_id, name] = found
        for key in self._strays:
            if key[0] == node_id:
                self._strays[key] = self._cluster.now_ms

    def stray_detected(self, node_id: NodeId, name: TopicPartition, event: events.StrayDetected) -> None:
        """A stray log was found; if it is to be deleted, its grace period begins."""
        if event.action == "delete":
            self._strays[node_id, name, event.topic_id] = self._cluster.now_ms

    def stray_deleted(self, node_id: NodeId, name: TopicPartition, event: events.StrayDeleted) -> None:
        """Notes that the files of a stray are gone: L7."""
        since_ms = self._strays.pop((node_id, name, event.topic_id), None)
        delay_ms = self._cluster.properties.stray_delete_delay_ms
        if since_ms is not None and self._cluster.now_ms < since_ms + delay_ms:
            sentence = (
                f"broker {node_id} deleted a stray of {name} {self._cluster.now_ms - since_ms} ms after it found it"
            )
            sentence = f"{sentence}, before stray.delete.delay.ms, which is {delay_ms}"
            self._alarm_log.report("L7", name, sentence, by=node_id)

    def overdue_strays(self) -> Iterator[tuple[str, TopicPartition | None, str]]:
        """Yields strays that exist for longer than their grace period: L7."""
        delay_ms = self._cluster.properties.stray_delete_delay_ms
        for (node_id, name, topic_id), since_ms in self._strays.items():
            node = self._cluster.nodes[BrokerId(node_id)]
            is_there = any(
                stray.partition == name and (stray.topic_id or TopicId("")) == topic_id for stray in node.disk.strays
            )
            if is_there and self._cluster.now_ms > since_ms + delay_ms:
                yield "L7", name, f"broker {node_id} keeps a stray of {name} (topic {topic_id}) since {since_ms} ms"

    def appended(self, node_id: NodeId, name: TopicPartition, event: events.BatchAppended) -> None:
        """A batch was appended: D7, D8, D9, M15."""
        known = log = self._logs.get((node_id, name))
        if log is None or log.topic_id != event.topic_id:
            log = self._logs[node_id, name] = _KnownLog(event.topic_id)
            log.log_end_offset = event.base_offset
        base_offset, leader_epoch, crc = event.base_offset, event.leader_epoch, event.crc
        previous = log.batches[-1] if log.batches else None
        self._check_topic(node_id, name, event.topic_id)
        # The log may be of the former topic of this name (S27).
        last = known.batches[-1] if known is not None and known.batches else None
        is_deleted = last is not None and last[1] < self._log_start_offset(node_id, name)
        # A log that was cut within a batch may end above its last one (S49): what is appended there leaves a gap.
        leaves_gap = last is not None and not is_deleted and base_offset > last[1] + 1
        overlaps = previous is not None and base_offset <= previous[1]
        if base_offset > log.log_end_offset or leaves_gap or overlaps:
            sentence = f"{name}: {base_offset} was appended on broker {node_id} to a log that ends at"
            self._alarm_log.report("D9", name, f"{sentence} {log.log_end_offset}, after {previous}")
        if is_deleted:
            previous = None  # a log that begins again at a lower offset need not follow it
        is_led_otherwise = event.role is events.AppendRole.LEADER and leader_epoch != event.current_leader_epoch
        if is_led_otherwise or (previous is not None and leader_epoch < previous[2]):
            sentence = f"{name}: {base_offset} was appended on broker {node_id} in epoch {leader_epoch}"
            self._alarm_log.report("D8", name, f"{sentence}, led in {event.current_leader_epoch}, after {previous}")
        self._check_lineage(node_id, name, event, None if previous is None else (previous[0], previous[2]))
        log.batches.append((base_offset, event.last_offset, leader_epoch, crc))
        log.log_end_offset = Offset(event.last_offset + 1)

    def _check_lineage(
        self, node_id: NodeId, name: TopicPartition, event: events.BatchAppended, previous: _BatchKey | None
    ) -> None:
        batches = self._batches.get((name, event.topic_id))
        if batches is None:
            batches = self._batches[name, event.topic_id] = {}
        truth = self._truth(name, event.topic_id)
        exempts = PROMISES["D7"].leaves_out(Exemption.DELETED_RECORDS)
        if exempts and truth is not None and previous is not None and previous[0] < truth.log_start_offset:
            previous = None  # a leader that deleted a batch cannot know that a follower's copy differed
        key = (event.base_offset, event.leader_epoch)
        known = batches.get(key)
        if known is None or (known[1] is None and known[0] == event.crc):
            batches[key] = (event.crc, previous)
        elif known[0] != event.crc or (previous is not None and previous != known[1]):
            self._alarm_log.report(
                "D7",
                name,
                f"{name} offset {event.base_offset} of epoch {event.leader_epoch} was batch {known[0]} after {known[1]}"
                f", and is {event.crc} after {previous} on broker {node_id}",
            )

    def truncated(self, node_id: NodeId, name: TopicPartition, event: events.LogTruncated) -> None:
        """D15: a log was truncated."""
        log = self._logs.get((node_id, name))
        if log is None:
            return
        truth = self._truth(name, event.topic_id)
        log.log_end_offset = event.new_end_offset
        keeps_nothing = event.reason == "restarted"
        while log.batches and (keeps_nothing or log.batches[-1][1] >= event.new_end_offset):
            base_offset, last_offset, leader_epoch, crc = log.batches.pop()
            if truth is None or event.reason in _ON_PURPOSE:
                continue
            cut_off = PromisedBatch(
                base_offset=base_offset,
                last_offset=last_offset,
                crc=crc,
                moment=0,
                leader_epoch=leader_epoch,
                appended_epoch=leader_epoch,
            )
            if PROMISES["D15"].leaves_out(Exemption.DELETED_RECORDS) and truth.is_deleted(cut_off, last_offset):
                continue
            self._cut_off.setdefault((name, event.topic_id), {})[last_offset, leader_epoch, crc] = event
            lost = truth.lost_commits.get(last_offset)
            is_lost = lost is not None and (lost.leader_epoch, lost.crc) == (leader_epoch, crc)
            if truth.committed.get(last_offset) == (leader_epoch, crc) or is_lost:
                moment = lost.moment if lost is not None and is_lost else truth.committed_since(last_offset)
                elected = truth.ledger.elected_at.get(event.leader_epoch)
                _, deleted_at = self._truths_of_deleted.get((name, event.topic_id), (truth, None))
                self._alarm_log.report(
                    "D15",
                    name,
                    f"{name}: broker {node_id} cut off {base_offset}..{last_offset} (batch {crc}), which was"
                    f" committed: {event.describe()}",
                    since=min(moment, truth.ledger.deposed_at(leader_epoch)),
                    until=deleted_at if elected is None else elected,
                    ledger=truth.ledger,
                    # Within an epoch no file tells whether a batch was committed before or after a follower cut it off.
                    leaves_evidence=elected is None
                    or moment < elected
                    or truth.was_committed_before(event.leader_epoch, last_offset),
                )

    def committed(self, node_id: NodeId, name: TopicPartition, event: events.HighWatermarkAdvanced) -> None:
        """A leader, perhaps deposed by now, commits a batch that a follower of its successor truncated: D15."""
        log, cut_off = self._logs.get((node_id, name)), self._cut_off.get((name, event.topic_id))
        if log is None or not cut_off:
            return
        for base_offset, last_offset, leader_epoch, crc in reversed(log.batches):
            if last_offset < event.old:
                return
            cut = cut_off.get((last_offset, leader_epoch, crc))
            if cut is not None and last_offset < event.new and event.leader_epoch < cut.leader_epoch:
                ledger = self._truths[name].ledger
                self._alarm_log.report(
                    "D15",
                    name,
                    f"{name}: leader {node_id} of epoch {event.leader_epoch} commits {base_offset}..{last_offset} "
                    f"(batch {crc}), which a follower had cut off: {cut.describe()}",
                    since=ledger.deposed_at(event.leader_epoch),
                    until=ledger.elected_at.get(cut.leader_epoch),
                )

    def _truth(self, name: TopicPartition, topic_id: TopicId) -> PartitionTruth | None:
        of_deleted = self._truths_of_deleted.get((name, topic_id))
        return self._truths.get(name) if of_deleted is None else of_deleted[0]

    def _log_start_offset(self, node_id: NodeId, name: TopicPartition) -> Offset:
        stored = self._cluster.nodes[BrokerId(node_id)].disk.logs.get(name)
        return Offset(0) if stored is None else stored.log_start_offset

    def _known(self, node_id: NodeId, name: TopicPartition) -> PartitionState | None:
        """Returns a partition by the metadata that a broker has."""
        broker = self._cluster.nodes[BrokerId(node_id)].broker
        return None if broker is None else broker.image.partitions.get(name)

    def _check_topic(self, node_id: NodeId, name: TopicPartition, topic_id: TopicId) -> None:
        state = self._known(node_id, name)
        if state is None or state.topic_id != topic_id:
            sentence = f"{name} on broker {node_id} is of topic {topic_id}, its metadata says"
            self._alarm_log.report("M15", name, f"{sentence} {None if state is None else state.topic_id}", by=node_id)

    def check_ends(self, node: BrokerNode, partition: Partition) -> None:
        """D9, M15 on one replica: its core, its disk and the oracle have the same log."""
        name, log = partition.name, partition.log
        known, stored = self._logs.get((node.node_id, name)), node.disk.logs.get(name)
        if stored is None or known is None or not stored.log_end_offset == known.log_end_offset == log.log_end_offset:
            ends = (log.log_end_offset, stored and stored.log_end_offset, known and known.log_end_offset)
            sentence = f"{name} on broker {node.node_id} ends, by core, disk and events, at {ends}"
            self._alarm_log.report("D9", name, sentence)
        elif stored.topic_id != log.topic_id:
            sentence = f"{name} on broker {node.node_id} is of topic {log.topic_id} and lies in that of"
            self._alarm_log.report("M15", name, f"{sentence} {stored.topic_id}", by=node.node_id)

    def check_epochs(self, node: BrokerNode, partition: Partition) -> None:
        """D8 on one replica: its epoch cache has each epoch of its batches, from the first such batch on or earlier.

        After a crash, deleted batches may be back without their epochs, even if no event recorded the deletion: they do
        not matter, unless the log ends with them (S48).
        """
        name, log = partition.name, partition.log
        known = self._logs.get((node.node_id, name))
        if known is None or not known.batches:
            return
        truth = self._truth(name, known.topic_id)
        log_start_offset = log.log_start_offset
        if truth is not None and PROMISES["D8"].leaves_out(Exemption.DELETED_RECORDS):
            asked_below = self._deletions.asked_below(name, committed=truth.committed_end_offset)
            log_start_offset = max(log_start_offset, truth.log_start_offset, asked_below)
        epoch: LeaderEpoch | None = None
        starts = {entry.leader_epoch: entry.start_offset for entry in log.epochs.entries}
        _, last_offset, last_epoch, _ = known.batches[-1]
        if last_offset >= log.log_start_offset and starts.get(last_epoch, log.log_end_offset) > last_offset:
            sentence = f"{name} on broker {node.node_id} ends with a batch of epoch {last_epoch}, its cache"
            self._alarm_log.report("D8", name, f"{sentence} says {starts}")
            return
        for base_offset, _, leader_epoch, _ in known.batches:
            if leader_epoch == epoch or base_offset < log_start_offset:
                continue
            epoch, start = leader_epoch, starts.get(leader_epoch)
            if start is None or start > base_offset:
                sentence = f"{name} on broker {node.node_id} has epoch {leader_epoch} from {base_offset} on, its cache"
                self._alarm_log.report("D8", name, f"{sentence} says {starts}")
