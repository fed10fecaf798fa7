"""The oracle: watches a simulated cluster and raises an alarm when it breaks a promise.

It sees everything: every event, every response, every disk, the durable metadata. Its own state is in ``truth``,
``guarantee``, ``reference`` and ``logs``; it does not rely on reports of a replica. This module decides when to check:
a step's partitions at its end, everything every ``FULL_SCAN_STEPS`` steps and at the end.
"""

import traceback
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

import laststand.emulator
from laststand.emulator.core import effects, events, messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.client import steps
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.promises import PROMISES
from laststand.emulator.core.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC
from laststand.emulator.core.types import Acks, BrokerId, NodeId, Offset, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.checks import Checks
from laststand.emulator.simulator.oracle.event_router import EventRouter
from laststand.emulator.simulator.oracle.finding import Alarm, Guarantee
from laststand.emulator.simulator.oracle.liveness import excused, missing
from laststand.emulator.simulator.oracle.losses import LostBatch
from laststand.emulator.simulator.oracle.truth import PromisedBatch

FULL_SCAN_STEPS: Final = 256
_ROOT: Final = Path(laststand.emulator.__file__).parents[1]


class Oracle:
    """Watches one run; ``attach`` it to the cluster before anything but the controller runs.

    Args:
        checks: the checks for this kind of cluster; by default those for a KRaft cluster.

    Attributes:
        checks: all checks, and the state that they share.
        alarm_log: all alarms.
        truths: by partition.
        tally: counts of events.
    """

    def __init__(self, checks: Checks | None = None) -> None:
        self.checks = Checks(None) if checks is None else checks
        self.alarm_log, self.truths, self.tally = self.checks.alarm_log, self.checks.truths, self.checks.tally
        self._router, self._promptness = EventRouter(self.checks), self.checks.promptness
        self._cluster: SimulatedCluster
        self._next_scan = FULL_SCAN_STEPS

    def promised(self) -> frozenset[str]:
        """Returns the checks whose promises the cluster has made so far."""
        return frozenset(filter(self._cluster.promised_by_all, PROMISES))

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster
        self.checks.attach(cluster)
        cluster.on_response = self.answered
        cluster.on_broken_promise = lambda check_id, sentence: self.alarm_log.report(check_id, None, sentence)
        cluster.on_forgotten_metadata = self.checks.metadata.forgotten
        cluster.on_controller_step = self.checks.controller.recovery.answers.stepped
        cluster.wire.on_end = self.checks.conjunctions.request_ended

    @property
    def alarms(self) -> list[Alarm]:
        """The alarms so far, in order."""
        return self.alarm_log.alarms

    def lost(self, *, unread: Collection[TopicPartition]) -> tuple[LostBatch, ...]:
        """Returns the lost batches acknowledged with acks=all; the partitions in ``unread`` could not be read."""
        cluster = self._cluster
        return tuple(self.checks.losses.lost(self.truths, cluster.image.partitions, cluster.nodes, unread=unread))

    def guarantee_of(self, check_id: str, name: TopicPartition | None) -> Guarantee | None:
        """Returns whether a promise that a healed cluster breaks had to hold; ``None`` if the ledger decides."""
        return self.checks.transactions.guarantee(name) if check_id == "X5" and name is not None else None

    def weak_candidates(self) -> tuple[tuple[TopicPartition, BrokerId], ...]:
        """Returns the present candidates that lack committed records."""
        return self.checks.durability.weak_candidates()

    # --- Observer ----------------------------------------------------------------------------------------------------

    def happened(self, node_id: NodeId, incarnation: int, event: events.Event, *, now_ms: int) -> None:
        """Records an event."""
        self.alarm_log.moment += 1
        self._router.route(node_id, incarnation, event)

    def recorded(self, client: str, record: steps.ClientRecord, *, now_ms: int) -> None:
        """Records a line of a client's history."""
        self.alarm_log.moment += 1
        if isinstance(record, steps.PollRecorded) and record.type is OperationType.OK:
            self.checks.resumed_readers.polled(client, record)
        match record:
            case steps.SendRecorded():
                is_known = record.topic_id is not None
                is_of_another = is_known and not self._is_current(record) and not self._is_in_the_present_topic(record)
                if record.type is OperationType.OK and is_of_another:
                    self.checks.clients.attempted(record)
                    return  # the promises of the former topic of this name are gone with it
                self.checks.clients.sent(client, record, acks=self._cluster.clients.producer_acks[client])
                if client in self._cluster.clients.transactional:
                    self.checks.transactions.sent(record)
                if record.type is OperationType.OK and record.base_offset is not None:
                    self._acked(client, record, record.base_offset)
            case steps.PollRecorded(type=OperationType.OK) if self._is_current(record):
                self.checks.clients.polled(client, record)
                truth = self.truths[record.partition]
                for batch in record.batches:
                    truth.expose(batch, moment=self.alarm_log.moment, leader_epoch=record.leader_epoch)
            case steps.GroupMemberRecorded():
                self.checks.memberships.stepped(client, record, now_ms=now_ms)
            case steps.GroupReadRecorded():
                if record.member_id:
                    self.checks.memberships.read(client, record)
                self.checks.transactions.read_for_group(client, record)
            case steps.GroupCommitRecorded():
                if record.member_id:
                    self.checks.memberships.committed(record)
                self.checks.transactions.position_committed(client, record)
            case steps.SessionRecorded():
                self.checks.transactions.session_begun(record)
            case steps.TransactionRecorded():
                self.checks.transactions.transacted(client, record)
            case steps.CommittedReadRecorded():
                self.checks.transactions.read(client, record)
                self.checks.transaction_logs.read(client, record)
            case steps.FinalReadRecorded(type=OperationType.OK):
                self.checks.clients.finished(client, record)
            case steps.FinalReadRecorded(partition=name, error=error):
                if self._cluster.state(name) is not None and name not in excused(self._cluster):
                    self.alarm_log.report("L6", name, f"{client} did not get to the end of {name}: {error}")
            case steps.PollRecorded() if self._is_current(record):
                self.checks.clients.refused(client, record)
            case steps.PollRecorded():
                if record.topic_id is not None:
                    self.checks.clients.went_astray(client, record)

    def asked(self, action: actions.Action) -> None:
        """Records the request that an administrator is about to send."""
        match action:
            case actions.ElectLeaders():
                for name in action.unclean_elections:
                    self.truths[name].ledger.asked()
                    self.checks.controller.recovery.asked(name, action.election)
            case actions.DeleteRecords():
                self.checks.durability.deletions.asked(action)
            case _:
                pass

    def acted(self) -> None:
        """Checks L10 to L13 again, because an action changed something."""
        self._promptness.ask()

    def answered(self, node: BrokerNode, answer: effects.SendResponse) -> None:
        """Records a broker's response to a request."""
        self.checks.answered(node, answer)
        self.responded(node, answer.response)

    def responded(self, node: BrokerNode, response: messages.Response) -> None:
        """Records the content of a broker's response."""
        if isinstance(response, messages.FetchResponse):
            for part in response.partitions:
                if part.error is not ErrorCode.NONE:
                    state = self._cluster.state(part.topic_partition)
                    # A broker that never learnt that nobody leads goes on asking the former leader (ZooKeeper clusters
                    # only).
                    self.tally.fetch_errors += state is not None and state.leader is not None
        self.checks.leaders.responded(node, response)

    def stepped(self, node_id: NodeId) -> None:
        """Checks the partitions that the step touched."""
        router = self._router
        if router.dirty:
            node = self._cluster.nodes.get(BrokerId(node_id))
            for name in router.dirty:
                self.checks.durability.check_candidates(name)
                self.checks.leaders.check_superset(name)
                if node is not None and node.broker is not None:
                    self._check_replica(node, name)
            router.dirty.clear()
        if router.has_applied_metadata:
            router.has_applied_metadata = False
            self._check_roles(self._cluster.nodes[BrokerId(node_id)])
        if self._cluster.steps >= self._next_scan:
            self._next_scan = self._cluster.steps + FULL_SCAN_STEPS
            self.scan()
        self._promptness.time_passed()

    # --- Checks -----------------------------------------------------------------------------------------------------

    def _check_replica(self, node: BrokerNode, name: TopicPartition) -> None:
        assert node.broker is not None
        partition = node.broker.partition(name)
        if partition is None:
            return
        self.checks.leaders.check_hosted(node, partition)
        self.checks.logs.check_ends(node, partition)
        if self.checks.transaction_logs.is_asked:
            self.checks.transaction_logs.check(node, partition)
        if name.topic == OFFSETS_TOPIC and partition.is_leader:
            self.checks.transaction_logs.check_positions(node, partition)
        if partition.is_leader and self.checks.durability.settled_leader(name) is node:
            self.checks.durability.check_reported_end(name, node, partition)

    def _check_roles(self, node: BrokerNode) -> None:
        if node.broker is None:
            return
        for name in {*node.broker.image.partitions, *(partition.name for partition in node.broker.partitions)}:
            self.checks.metadata.check_role(node, name, node.broker.partition(name))

    def scan(self) -> None:
        """Checks everything that can be checked at any time."""
        for name in self._cluster.image.partitions:
            self.checks.durability.check_candidates(name)
            self.checks.leaders.check_superset(name)
            self.checks.durability.check_agreement(name)
            leader = self.checks.durability.serving_leader(name)
            if leader is not None:
                self.checks.durability.check_leader(name, leader)
            if leader is not None and self.checks.durability.is_registered(leader):
                self.checks.clients.check_sequences(
                    name, leader.disk.logs[name].batches, self.truths[name].high_watermark
                )
        for node in self._cluster.nodes.values():
            if node.broker is not None:
                for partition in node.broker.partitions:
                    self._check_replica(node, partition.name)
                    self.checks.logs.check_epochs(node, partition)
                self._check_roles(node)

    def missing(self) -> Iterator[tuple[str, TopicPartition | None, str]]:
        """Yields the properties that a healed cluster has not reached yet, with partition if any, and a sentence."""
        yield from missing(self._cluster)
        yield from self.open_transactions()
        yield from self.checks.logs.overdue_strays()
        yield from self.checks.metadata.missing()
        for name in excused(self._cluster):
            if self._promptness.keeps_a_candidate(name):
                yield "L3", name, f"{name} has no candidate, though the guarantee holds: {self._cluster.state(name)}"

    def open_transactions(self) -> Iterator[tuple[str, TopicPartition, str]]:
        """Yields X5 if the log of a last leader has a transaction without an end, in the form of ``missing``."""
        yield from self.checks.transactions.open_transactions(self._last_logs())

    def finish(self) -> None:
        """Makes the checks that are possible only at the end, and all others once more."""
        for name, state in self._cluster.image.partitions.items():
            self.checks.durability.check_somewhere(name)
            logs = [node.disk.logs.get(name) for node in self._cluster.nodes.values()]
            stored = [log.batches for log in logs if log is not None and log.topic_id == state.topic_id]
            self.checks.clients.check_stored(name, stored)
            self.checks.durability.check_last_leader(name, self.checks.durability.serving_leader(name))
            self.checks.resumed_readers.check(name, state.topic_id, self.truths[name])
        self.checks.transactions.check(self._last_logs())
        self.checks.memberships.check()
        self._cluster.judge_metadata()
        self.scan()

    def _last_logs(self) -> dict[TopicPartition, list[BatchDescriptor]]:
        """Returns the logs of client partitions' serving leaders, or of their last leaders once all have stopped."""
        has_stopped = all(node.broker is None for node in self._cluster.nodes.values())
        logs: dict[TopicPartition, list[BatchDescriptor]] = {}
        for name in self._cluster.image.partitions:
            leader = self.checks.durability.serving_leader(name)
            last = self.checks.losses.last_leader(name) if has_stopped else None
            if last is not None:
                leader = self._cluster.nodes[last]
            if leader is not None and name in leader.disk.logs and name.topic not in INTERNAL_TOPICS:
                logs[name] = leader.disk.logs[name].batches
        return logs

    def stopped(self, *, unread: Collection[TopicPartition]) -> None:
        """Checks the last leaders once more: leadership moves while brokers stop one by one."""
        for name in self._cluster.image.partitions:
            leader = self.checks.losses.last_leader(name)
            if leader is not None and name not in unread:
                self.checks.durability.check_last_leader(name, self._cluster.nodes[leader])

    def crashed(self, error: Exception) -> None:
        """A core raised an exception."""
        check_id = "InvariantError" if isinstance(error, InvariantError) else "Exception"
        self.alarm_log.report(check_id, None, f"{type(error).__name__}: {error}{_where(error)}")

    # --- Clients ----------------------------------------------------------------------------------------------------

    def _acked(self, client: str, record: steps.SendRecorded, base_offset: Offset) -> None:
        name = record.partition
        self.tally.acks_of_any_kind += 1
        if self._cluster.clients.producer_acks[client] is not Acks.ALL:
            return
        self.tally.acks += 1
        self.checks.transactions.acked(record)
        truth = self.truths[name]
        acknowledgement = truth.acknowledgements.get(record.operation_id)
        last_offset = Offset(base_offset + record.record_count - 1)
        moment = self.alarm_log.moment if acknowledgement is None else acknowledgement.moment
        promise = PromisedBatch(
            base_offset=base_offset,
            last_offset=last_offset,
            crc=record.attempts[-1].crc,
            moment=min(moment, truth.committed_since(last_offset)) if last_offset < truth.high_watermark else moment,
            leader_epoch=None if acknowledgement is None else acknowledgement.leader_epoch,
            appended_epoch=None if acknowledgement is None else acknowledgement.appended_epoch,
            incarnation=None if acknowledgement is None else acknowledgement.incarnation,
        )
        self.checks.durability.acked(name, promise)

    def _is_in_the_present_topic(self, record: steps.SendRecorded) -> bool:
        """Returns whether a send by an outdated client named the former topic, but reached the present one."""
        state = self._cluster.state(record.partition)
        if state is None or record.base_offset is None:
            return False
        crc = record.attempts[-1].crc
        return self.checks.logs.has_batch(record.partition, state.topic_id, record.base_offset, crc)

    def _is_current(self, record: steps.SendRecorded | steps.PollRecorded) -> bool:
        """Returns whether a line of the history is about the topic that has this name now."""
        return self._router.is_current(record.partition.topic, record.topic_id)


def _where(error: Exception) -> str:
    """Returns the innermost frame of an exception within this program: file, line and function."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(_ROOT / "emulator"):
            return f" (at {path.relative_to(_ROOT)}:{frame.lineno}, in {frame.name})"
    return ""
