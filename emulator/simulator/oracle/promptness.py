"""Checks of progress in time although faults are in force: L10-L13.

The harness knows which faults are in force. A node is *in touch* with another if it runs, its clock is right, and the
links between the two are neither cut nor slow nor held. A property is checked after each action and periodically, for
the nodes that stay in touch for longer than a bound. The bound is the time that all preceding steps can take, by the
schedule's configured times, and half as much again. The end of a process, a topic or a leader's epoch restarts the
time.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Set
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.metadata_version import ELR_VERSION
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    LeaderRecoveryState,
    NodeId,
    Offset,
    RecoveryStrategy,
    TopicId,
    TopicPartition,
)
from laststand.emulator.plan.channels import Link
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.candidates import candidates
from laststand.emulator.simulator.oracle.configuration import Configuration
from laststand.emulator.simulator.oracle.durability import DurabilityChecks
from laststand.emulator.simulator.oracle.truth import PartitionTruth

_Key = TypeVar("_Key", bound=Hashable)

_FETCH_GIVEN_UP_MS: Final = 2_000
"""After which a follower gives a fetch up that was lost, beyond the time that the leader may take."""

_LOG_INFO_GIVEN_UP_MS: Final = 5_000
"""After which a controller gives a GetReplicaLogInfo up that was lost."""

_MARGIN_MS: Final = 1_000
"""Further retries, and messages under way."""

_ASKED_WITHIN_BOUND: Final = 8
"""The number of times each property is asked within the bound, besides after each change of the faults in force."""


def bound_ms(properties: NodeProperties) -> int:
    """Returns the virtual time within which the properties L10 to L13 must hold.

    It covers a sequence: a session ends, a lost request is given up (an AlterPartition after a session, a fetch after
    twice its wait and more), a follower catches up or falls out of the ISR, and the ISR is changed.
    """
    in_a_row_ms = (
        3 * properties.broker_session_timeout_ms
        + 2 * properties.replica_lag_time_max_ms
        + 2 * properties.replica_fetch_wait_max_ms
        + 2 * properties.replica_fetch_backoff_ms
        + 2 * properties.alter_partition_retry_backoff_ms
        + _FETCH_GIVEN_UP_MS
        + _MARGIN_MS
    )
    return in_a_row_ms * 3 // 2


def unclean_bound_ms(properties: NodeProperties) -> int:
    """Returns the virtual time after which a topic that risks an unclean leader must have one (L10).

    Beyond ``bound_ms``: a request that was lost before is given up, replicas are asked again, and those that do not
    answer are waited for; without the manager, the next search for partitions that take an unclean leader.
    """
    if properties.unclean_recovery_manager_enabled:
        in_a_row_ms = (
            _LOG_INFO_GIVEN_UP_MS
            + 2 * properties.unclean_recovery_retry_backoff_ms
            + properties.unclean_recovery_timeout_ms
        )
    else:
        in_a_row_ms = properties.unclean_leader_election_interval_ms
    return bound_ms(properties) + in_a_row_ms * 3 // 2


class _Spells(Generic[_Key]):
    """The start of each current state."""

    def __init__(self) -> None:
        self._since: dict[_Key, int] = {}

    def over(self, keys: Collection[_Key], *, now_ms: int, after_ms: int) -> list[_Key]:
        """Returns keys that every call has had for ``after_ms``, and restarts their time; forgets absent keys."""
        self._since = {key: self._since.get(key, now_ms) for key in keys}
        over = [key for key, since in self._since.items() if now_ms - since >= after_ms]
        for key in over:
            self._since[key] = now_ms
        return over


class _Unled(NamedTuple):
    """A leaderless partition, and the reason why it should have a leader."""

    name: TopicPartition
    leader_epoch: LeaderEpoch
    controller_incarnation: int
    reason: str


class _Session(NamedTuple):
    """A broker whose messages all reach the controller, or none of them."""

    broker_id: BrokerId
    incarnation: int
    controller_incarnation: int


class _CutOff(NamedTuple):
    """A replica that cannot fetch its leader's records."""

    name: TopicPartition
    leader_epoch: LeaderEpoch
    leader_incarnation: int
    replica: BrokerId


class _Member(msgspec.Struct, frozen=True):
    """A process in touch with a leader and with the controller."""

    broker_id: BrokerId
    incarnation: int
    broker_epoch: BrokerEpoch


class _Watch(msgspec.Struct):
    """A leader's log, and the replicas in touch with it, since a moment.

    Attributes:
        term: the topic, the leader, its process and its epoch.
        since_ms: virtual time.
        end_offset: end of the log at that moment.
        is_waiting: whether the high watermark was below ``end_offset``.
        members: in touch ever since, the leader included.
    """

    term: tuple[TopicId, BrokerId, int, LeaderEpoch]
    since_ms: int
    end_offset: Offset
    is_waiting: bool
    members: Set[_Member]


class Promptness:
    """Checks of one run.

    Args:
        alarm_log: receives the alarms.
        truths: by partition, for their guarantees.
        durability: knows which leaders are settled.
        mark: called each time that one of L10 to L13 is tested.
    """

    def __init__(
        self,
        alarm_log: AlarmLog,
        truths: dict[TopicPartition, PartitionTruth],
        durability: DurabilityChecks,
        mark: Callable[[str], None],
    ) -> None:
        self._alarm_log = alarm_log
        self._mark = mark
        self._truths = truths
        self._durability = durability
        self._cluster: SimulatedCluster
        self._queue: EventQueue
        self._configuration: Configuration
        self._unled = _Spells[_Unled]()
        self._unled_at_risk = _Spells[_Unled]()
        self._waiting: Set[TopicPartition] = frozenset()
        self._waiting_at_risk: Set[TopicPartition] = frozenset()
        self._unheard = _Spells[_Session]()
        self._heard = _Spells[_Session]()
        self._cut_off = _Spells[_CutOff]()
        self._watches: dict[TopicPartition, _Watch] = {}

    def attach(self, cluster: SimulatedCluster, configuration: Configuration) -> None:
        """Sets the cluster to watch, and its configuration."""
        self._cluster = cluster
        self._queue = cluster.queue
        self._configuration = configuration
        self._bound_ms = bound_ms(cluster.properties)
        self._unclean_bound_ms = unclean_bound_ms(cluster.properties)
        self._next_ms = 0

    def time_passed(self) -> None:
        """Checks every property if it is time to."""
        if self._queue.now_ms >= self._next_ms:
            self.ask()

    def ask(self) -> None:
        """Checks every property, with the faults that are in force now."""
        self._next_ms = self._cluster.now_ms + self._bound_ms // _ASKED_WITHIN_BOUND
        self._check_elected()
        self._check_sessions()
        self._check_isr()
        self._check_acknowledged()

    # --- Who is in touch --------------------------------------------------------------------------------------------

    def _reaches(self, source: NodeId, target: NodeId) -> bool:
        """Returns whether a link delivers everything, at once, in both directions."""
        network, link = self._cluster.network, Link(source, target)
        return not network.is_blocked(link) and link not in network.latencies and not self._is_held(link)

    def _is_held(self, link: Link[NodeId]) -> bool:
        """Returns whether messages of a link are held."""
        return any((channel.source, channel.target) == link for channel in self._cluster.network.held)

    def _in_touch(self, broker_id: BrokerId) -> bool:
        """Returns whether a broker runs soundly and its link to the controller works."""
        return self._cluster.runs_soundly(self._cluster.nodes[broker_id]) and self._reaches(
            broker_id, self._cluster.metadata_node.node_id
        )

    def _is_active(self, broker_id: BrokerId) -> bool:
        registration = self._cluster.image.brokers.get(broker_id)
        return registration is not None and not registration.fenced and not registration.in_controlled_shutdown

    # --- L10 --------------------------------------------------------------------------------------------------------

    def _check_elected(self) -> None:
        unled: list[_Unled] = []
        at_risk: list[_Unled] = []
        if self._cluster.is_metadata_sound:
            incarnation = self._cluster.metadata_node.incarnation
            for name, state in self._cluster.image.partitions.items():
                if state.leader is None or not self._is_active(state.leader):
                    term = (name, state.leader_epoch, incarnation)
                    unled += [_Unled(*term, reason) for reason in self._reasons_to_elect(name, state)]
                    at_risk += [_Unled(*term, reason) for reason in self._reasons_to_risk(name, state)]
        self._report_unled(self._unled, unled, bound_ms=self._bound_ms)
        self._report_unled(self._unled_at_risk, at_risk, bound_ms=self._unclean_bound_ms)
        self._mark_elected({unled.name for unled in at_risk})

    def _report_unled(self, spells: _Spells[_Unled], unled: list[_Unled], *, bound_ms: int) -> None:
        for spell in spells.over(unled, now_ms=self._cluster.now_ms, after_ms=bound_ms):
            sentence = f"{spell.name} is led by nobody for {bound_ms} ms, though {spell.reason}"
            self._alarm_log.report("L10", spell.name, f"{sentence}: {self._cluster.state(spell.name)}")

    def _mark_elected(self, at_risk: Set[TopicPartition]) -> None:
        """Marks partitions that waited for a leader and got one while some broker is still out of touch."""
        partitions = self._cluster.image.partitions
        if not all(self._in_touch(broker_id) for broker_id in self._cluster.nodes):
            for mark, waiting in (("in_time:L10", self._waiting), ("in_time:L10_unclean", self._waiting_at_risk)):
                for name in waiting & partitions.keys():
                    if partitions[name].leader is not None:
                        self._mark(mark)
        self._waiting = {name for name, state in partitions.items() if state.leader is None}
        self._waiting_at_risk = at_risk

    def _reasons_to_elect(self, name: TopicPartition, state: PartitionState) -> Iterator[str]:
        for broker_id in state.isr or candidates(self._cluster, state):
            if self._is_active(broker_id):
                yield f"candidate {broker_id} is active"
        ledger = self._truths[name].ledger
        survivors = [broker_id for broker_id in ledger.holders if broker_id not in ledger.outstanding()]
        if self.keeps_a_candidate(name) and all(self._is_active(b) and self._in_touch(b) for b in survivors):
            yield f"all replicas but {ledger.outstanding()} are active, which the guarantee covers"

    def _reasons_to_risk(self, name: TopicPartition, state: PartitionState) -> Iterator[str]:
        """Yields why a partition should have got an unclean leader, by the strategy that is configured (KIP-966)."""
        strategy = self._configuration.recovery_strategy(name.topic)
        if strategy is RecoveryStrategy.AGGRESSIVE:
            for broker_id in state.replicas:
                if self._answers(broker_id):
                    yield f"strategy Aggressive takes {self._life(broker_id)}, which is in touch"
        elif strategy is RecoveryStrategy.BALANCED and self._cluster.properties.unclean_recovery_manager_enabled:
            remembered = [each for each in state.replicas if each in (*state.last_known_elr, state.last_known_leader)]
            asked = remembered or [broker_id for broker_id in state.replicas if self._answers(broker_id)]
            if not state.isr and not state.elr and asked and all(map(self._answers, asked)):
                yield f"strategy Balanced waits for {', '.join(map(self._life, asked))}, which are in touch"

    def _answers(self, broker_id: BrokerId) -> bool:
        """Returns whether the controller can ask a broker for its log info and receive the response."""
        return (
            self._is_active(broker_id)
            and self._in_touch(broker_id)
            and self._reaches(self._cluster.metadata_node.node_id, broker_id)
        )

    def _life(self, broker_id: BrokerId) -> str:
        return f"broker {broker_id} (process {self._cluster.nodes[broker_id].incarnation})"

    def keeps_a_candidate(self, name: TopicPartition) -> bool:
        """Returns whether so few replicas failed that an eligible one must have all records (KIP-966)."""
        has_elr = (
            all(rules.elr for rules in self._cluster.controllers_rules)
            and self._cluster.image.feature_level(ELR_VERSION) > 0
        )
        return has_elr and self._truths[name].ledger.keeps_a_candidate(self._alarm_log.moment)

    # --- L11 --------------------------------------------------------------------------------------------------------

    def _check_acknowledged(self) -> None:
        watches: dict[TopicPartition, _Watch] = {}
        if self._cluster.is_metadata_sound:
            for name, state in self._cluster.image.partitions.items():
                watch = self._watch(name, state)
                if watch is not None:
                    watches[name] = watch
        self._watches = watches

    def _watch(self, name: TopicPartition, state: PartitionState) -> _Watch | None:
        """Returns a partition's current watch; ``None`` if its leader or too many members are out of touch."""
        leader = self._durability.settled_leader(name)
        if leader is None or leader.broker is None or state.leader_recovery_state is not LeaderRecoveryState.RECOVERED:
            return None
        if not self._in_touch(leader.broker_id):
            return None
        partition = leader.broker.partition(name)
        assert partition is not None
        present = frozenset(self._members(leader, state))
        needed = self._configuration.min_isr(name.topic, (leader.broker_id,))
        if self._cluster.rules_of(leader.broker_id).min_isr_capped:
            needed = min(needed, len(state.replicas))
        watch = self._watches.get(name)
        fresh = _Watch(
            term=(state.topic_id, leader.broker_id, leader.incarnation, state.leader_epoch),
            since_ms=self._cluster.now_ms,
            end_offset=partition.log.log_end_offset,
            is_waiting=partition.log.high_watermark < partition.log.log_end_offset,
            members=present,
        )
        if watch is None or watch.term != fresh.term or len(watch.members & present) < needed:
            return fresh if len(present) >= needed else None
        watch.members = watch.members & present
        if partition.log.high_watermark >= watch.end_offset:
            if watch.is_waiting:
                self._mark("in_time:L11")
            return fresh
        if self._cluster.now_ms - watch.since_ms < self._bound_ms:
            return watch
        members = sorted(member.broker_id for member in watch.members)
        self._alarm_log.report(
            "L11",
            name,
            f"{name}: leader {leader.broker_id} has records up to {watch.end_offset} for {self._bound_ms} ms and is in "
            f"touch with {members}, and its high watermark is {partition.log.high_watermark}: {state}",
        )
        return fresh

    def answered(self, name: TopicPartition, event: events.ProduceAnswered) -> None:
        """L11: a leader does not answer a produce request with a timeout once its records are committed."""
        if event.error == ErrorCode.REQUEST_TIMED_OUT.name and event.base_offset is not None:
            end_offset = event.base_offset + event.record_count
            if event.high_watermark >= end_offset:
                self._alarm_log.report(
                    "L11",
                    name,
                    f"{name}: {event.cause_id} was not acknowledged in time, though its records up to {end_offset} are "
                    f"committed: the high watermark is {event.high_watermark}",
                )
            else:
                self._mark("timed_out:uncommitted")

    def _members(self, leader: BrokerNode, state: PartitionState) -> Iterator[_Member]:
        for broker_id in state.replicas:
            node, registration = self._cluster.nodes[broker_id], self._cluster.image.brokers.get(broker_id)
            is_near = node is leader or self._reaches(broker_id, leader.node_id)
            if is_near and self._in_touch(broker_id) and self._is_active(broker_id) and registration is not None:
                yield _Member(broker_id, node.incarnation, registration.broker_epoch)

    # --- L12 --------------------------------------------------------------------------------------------------------

    def _check_sessions(self) -> None:
        unheard: list[_Session] = []
        heard: list[_Session] = []
        brokers = self._cluster.image.brokers
        if self._cluster.is_metadata_sound:
            for broker_id in brokers:
                node = self._cluster.nodes[broker_id]
                session = _Session(broker_id, node.incarnation, self._cluster.metadata_node.incarnation)
                if self._is_unheard(broker_id):
                    unheard.append(session)
                elif self._in_touch(broker_id) and self._durability.is_registered(node):
                    heard.append(session)
        for session in self._unheard.over(unheard, now_ms=self._cluster.now_ms, after_ms=self._bound_ms):
            if not brokers[session.broker_id].fenced:
                sentence = f"the controller hears nothing of broker {session.broker_id} for {self._bound_ms} ms"
                self._alarm_log.report("L12", None, f"{sentence}, and has not fenced it")
            self._mark("in_time:L12")
        for session in self._heard.over(heard, now_ms=self._cluster.now_ms, after_ms=self._bound_ms):
            if brokers[session.broker_id].fenced:
                sentence = f"broker {session.broker_id} is in touch with the controller for {self._bound_ms} ms"
                self._alarm_log.report("L12", None, f"{sentence}, and is fenced")

    def _is_unheard(self, broker_id: BrokerId) -> bool:
        """Returns whether no message of a broker can reach the controller, not even one that is under way."""
        node, link = self._cluster.nodes[broker_id], Link(broker_id, self._cluster.metadata_node.node_id)
        is_mute = node.core is None or node.is_paused or self._cluster.network.swallows_requests(link)
        return is_mute and not self._is_held(link)

    # --- L13 --------------------------------------------------------------------------------------------------------

    def _check_isr(self) -> None:
        cut_off: list[_CutOff] = []
        if self._cluster.is_metadata_sound:
            for name, state in self._cluster.image.partitions.items():
                leader = self._durability.settled_leader(name)
                if leader is not None and self._in_touch(leader.broker_id):
                    cut_off += [
                        _CutOff(name, state.leader_epoch, leader.incarnation, replica)
                        for replica in state.replicas
                        if replica != leader.broker_id and self._cannot_keep_up(name, replica, leader)
                    ]
        for spell in self._cut_off.over(cut_off, now_ms=self._cluster.now_ms, after_ms=self._bound_ms):
            if spell.replica in self._cluster.image.partitions[spell.name].isr:
                sentence = f"{spell.name}: broker {spell.replica} cannot fetch for {self._bound_ms} ms"
                self._alarm_log.report("L13", spell.name, f"{sentence}, and is in the ISR")
            self._mark("in_time:L13")

    def _cannot_keep_up(self, name: TopicPartition, replica: BrokerId, leader: BrokerNode) -> bool:
        """Returns whether a replica lacks records of the leader and cannot fetch them."""
        node = self._cluster.nodes[replica]
        link = Link(replica, leader.broker_id)
        is_mute = node.core is None or node.is_paused or self._cluster.network.swallows_requests(link)
        if not is_mute or self._is_held(link):
            return False
        log = node.disk.logs.get(name)
        return log is None or log.log_end_offset < leader.disk.logs[name].log_end_offset
