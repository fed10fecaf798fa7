"""One simulated run: a cluster built from a plan, its oracle, and its phases.

*Begin*: all nodes start. *Play*: actions are performed, and the cluster reacts to each. *Heal*: faults end, all nodes
are started, and the cluster must converge; otherwise an alarm is raised. *Read*: a fresh consumer reads everything, and
the last checks are made.
"""

from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.broker.kraft.lifecycle import rack_of
from laststand.emulator.core.broker.replicas.replica_selector import RACK_AWARE
from laststand.emulator.core.client.consumer import Phase
from laststand.emulator.core.client.settings import ConsumerSettings, ProducerSettings
from laststand.emulator.core.client.steps import ClientRecord, Source
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.node_clock import NORMAL_RATE_PPM
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.types import Acks, BrokerId, NodeId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.fields import COMMITTED_READER, GROUPS, PRODUCER_ALL, PRODUCER_LEADER, TRANSACTIONAL
from laststand.emulator.plan.plan import Plan
from laststand.emulator.plan.steps import action_text
from laststand.emulator.simulator.actions.performer import heal_and_record, perform_and_record
from laststand.emulator.simulator.nodes.batch_registry import BatchRegistry
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.finding import Alarm, is_finding
from laststand.emulator.simulator.oracle.liveness import QUIET_MS, excused, pulse
from laststand.emulator.simulator.oracle.losses import LostBatch
from laststand.emulator.simulator.oracle.oracle import Oracle
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.judgement import Judgement, judge
from laststand.emulator.simulator.run.kinds import make_checks, make_cluster

PRODUCER: Final = ProducerSettings(
    request_timeout_ms=300, delivery_timeout_ms=1_500, retry_backoff_ms=20, metadata_max_age_ms=2_000
)
CONSUMER: Final = ConsumerSettings(
    request_timeout_ms=400, retry_backoff_ms=20, metadata_max_age_ms=2_000, fetch_max_wait_ms=200
)
_IN_RACK: Final = msgspec.structs.replace(CONSUMER, request_timeout_ms=30_000)
"""Patience of consumers that read from followers in their rack, so that an answer may come late."""

TRANSACTIONAL_PRODUCER: Final = msgspec.structs.replace(PRODUCER, transaction_timeout_ms=3_000)
_COMMITTED_ONLY: Final = msgspec.structs.replace(CONSUMER, isolation_level="read_committed")
_FINAL_CONSUMER: Final = msgspec.structs.replace(CONSUMER, fetch_max_wait_ms=0)
_BOOT_MS: Final = 10_000
_POLL_MS: Final = 50
_READ_MS: Final = 5_000


class SimulationResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run.

    Attributes:
        alarms: all alarms of the run.
        findings: those that mean that the protocol is wrong.
        steps: steps of all nodes.
        virtual_ms: length of the run in virtual time.
        acks: batches acknowledged with acks=all.
        closing_acks: of these, batches sent after healing, to verify that the cluster serves.
        elections: leaders elected.
        unclean_restarts: registrations without proof of a clean shutdown.
        truncations: logs that were truncated.
        excuses: partitions without an eligible leader at the end.
        marks: how often each rule applied.
    """

    alarms: tuple[Alarm, ...]
    findings: tuple[Alarm, ...]
    steps: int
    virtual_ms: int
    acks: int
    closing_acks: int
    elections: int
    unclean_restarts: int
    truncations: int
    excuses: int
    marks: dict[str, int]


class Halts(Enum):
    """The conditions under which the cluster is halted."""

    NEVER = "never"
    AT_FINDINGS = "at_findings"


class _OracleAndJournal:
    """An observer that passes everything on to a journal and the oracle; a journal ignores ``stepped``."""

    def __init__(self, oracle: Oracle, journal: Journal) -> None:
        self._oracle = oracle
        self._journal = journal
        self.stepped: Callable[[NodeId], None] = oracle.stepped

    def happened(self, node_id: NodeId, incarnation: int, event: events.Event, *, now_ms: int) -> None:
        """Passes the record on to the journal and the oracle."""
        self._journal.happened(node_id, incarnation, event, now_ms=now_ms)
        self._oracle.happened(node_id, incarnation, event, now_ms=now_ms)

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        """Passes the record on to the journal and the oracle."""
        self._journal.recorded(client, record, now_ms=now_ms)
        self._oracle.recorded(client, record, now_ms=now_ms)


class Simulation:
    """A run under way.

    Args:
        plan: cluster and topics; its actions are played by ``play_plan`` only.
        journal: keeps all events, where given.
        batches: makes the producers' batches; running numbers for CRCs by default.

    Attributes:
        skipped: positions of the actions that ``play_plan`` reached at a time when they were impossible.
    """

    def __init__(self, plan: Plan, *, journal: Journal | None = None, batches: BatchRegistry | None = None) -> None:
        self.plan = plan
        self._rules = plan.rules()
        self.oracle = Oracle(make_checks(self._rules, self._alarmed))
        self.has_crashed = False
        self._asked_to_forget: set[BrokerId] = set()
        self.skipped: list[int] = []
        self._steps_played = 0
        self._is_written = journal is not None
        self._excuses = 0
        self._unread: tuple[TopicPartition, ...] = ()
        self._lost_when_read: tuple[LostBatch, ...] = ()
        self._closing_acks = 0
        self._result: SimulationResult | None = None
        self._refused: ConfigError | None = None
        self._halts = Halts.NEVER
        self.cluster = make_cluster(
            brokers=plan.brokers,
            controllers=plan.controllers,
            standby_controllers=plan.standby_controllers,
            combined=plan.combined,
            switches=self._rules,
            properties=plan.node_properties(),
            observer=self.oracle if journal is None else _OracleAndJournal(self.oracle, journal),
            batches=batches,
            attach=self.oracle.attach,
        )

    def begin(self) -> None:
        """Starts everything and waits until the cluster serves.

        Raises:
            ConfigError: the controller refuses a topic.
        """
        self._guarded(self._boot)
        if self._refused is not None:
            raise self._refused

    def _boot(self) -> None:
        cluster = self.cluster
        for node in cluster.nodes.values():
            cluster.processes.start(node)
        if not cluster.run_until(lambda: cluster.is_up, within_ms=_BOOT_MS):
            self.oracle.alarm_log.report("L2", None, "the cluster did not come up")
        for topic in self.plan.topics:
            refusal = cluster.clients.create_topic(topic.name, topic.replicas, dict(topic.properties))
            if refusal is not None:
                self._refused = ConfigError(key="topic", value=topic.name, expected=f"what Kafka takes: {refusal}")
                return
        topics = tuple(dict.fromkeys(name.topic for name in self.plan.client_partitions))
        cluster.clients.add_producer(PRODUCER_ALL, PRODUCER, topics)
        settings = msgspec.structs.replace(PRODUCER, acks=Acks.LEADER, enable_idempotence=False)
        cluster.clients.add_producer(PRODUCER_LEADER, settings, topics)
        for index, settings_of_one in enumerate(self._readers()):
            cluster.clients.add_consumer(f"consumer-{index}", Phase.LIVE, settings_of_one, self.plan.client_partitions)
        if self.plan.has_transactions:
            cluster.clients.add_transactional(TRANSACTIONAL, TRANSACTIONAL_PRODUCER, topics)
            cluster.clients.add_consumer(COMMITTED_READER, Phase.LIVE, _COMMITTED_ONLY, self.plan.client_partitions)
        cluster.run(20)

    def _readers(self) -> list[ConsumerSettings]:
        """Returns the settings of every live consumer: one, or one in each rack if consumers read from followers."""
        properties = self.plan.node_properties()
        if properties.replica_selector_class != RACK_AWARE:
            return [CONSUMER]
        racks = [rack_of(broker_id, properties.broker_rack) for broker_id in self.cluster.nodes]
        return [msgspec.structs.replace(_IN_RACK, client_rack=rack) for rack in dict.fromkeys(racks)]

    def halt(self, halts: Halts) -> None:
        """Sets the conditions that halt the cluster from now on, and ends a present halt."""
        self._halts = halts
        self.cluster.is_halted = False

    def _alarmed(self, alarm: Alarm) -> None:
        if self._halts is Halts.AT_FINDINGS and is_finding(alarm, self.cluster.promised_by_all):
            self.cluster.is_halted = True

    def play(self, action: actions.Action) -> bool:
        """Performs an action; returns whether it was possible. After a crash of the core no action is."""
        if self.has_crashed:
            return False
        return self._guarded(lambda: self._perform(action))

    def _perform(self, action: actions.Action) -> bool:
        self.oracle.asked(action)
        outcome = perform_and_record(self.cluster, action)
        # As in an explored plan: without actions that were impossible, and with consecutive waits merged.
        if outcome.took_effect and not isinstance(action, actions.Wait):
            self.oracle.acted()
            if isinstance(action, actions.UnregisterBroker):
                self._asked_to_forget.add(action.broker_id)
            self._note_step(action, outcome.seen)
        return outcome.took_effect

    def _note_step(self, action: actions.Action, seen: str) -> None:
        self._steps_played += 1
        if not self._is_written:  # The text of an action takes longer than most of what it does.
            return
        step = events.StepReached(
            cause_id=self.cluster.event_log.cause_id,
            step=self._steps_played,
            text=action_text(action),
            seen=seen,
            unclean_elections=tuple(map(str, action.unclean_elections))
            if isinstance(action, actions.ElectLeaders)
            else (),
            deletions=action.deletions if isinstance(action, actions.DeleteRecords) else (),
        )
        self.cluster.event_log.note(step)

    def play_plan(self) -> None:
        """Begins, performs the plan's actions, and finishes."""
        self.begin()
        for position, action in enumerate(self.plan.actions):
            if not self.play(action) and not self.has_crashed:
                self.skipped.append(position)
        self.finish()

    def finish(self) -> None:
        """Heals, waits for convergence, reads everything, checks everything."""
        self.halt(Halts.NEVER)
        self._guarded(self._heal)
        self._guarded(self._read)
        self._result = self._outcome_so_far()

    def _guarded(self, do: Callable[[], bool | None]) -> bool:
        if self.has_crashed:
            return False
        try:
            return bool(do())
        except Exception as error:  # The core is what is tested: whatever it raises is a finding.
            self.has_crashed = True
            self.oracle.crashed(error)
            return False

    def _heal(self) -> None:
        cluster = self.cluster
        heal_and_record(cluster)
        cluster.network.expired.clear()
        self._start_controllers()
        for controller in cluster.metadata_nodes.values():
            cluster.processes.set_clock_rate(controller, NORMAL_RATE_PPM)
            cluster.processes.resume(controller)
        for node in cluster.nodes.values():
            cluster.processes.set_clock_rate(node, NORMAL_RATE_PPM)
            node.pending_crash = None
            node.disk.room = None
            cluster.processes.resume(node)
            self._stop_if_unregistered(node)
            cluster.processes.start(node)
        left = self._converge()
        if left and cluster.is_mended_by_restarts:
            self._restart_in_order()
            left = self._converge()
        self._unread = excused(cluster)
        self._excuses = len(self._unread)
        for check_id, partition, sentence in left:
            guarantee = self.oracle.guarantee_of(check_id, partition)
            is_shown = check_id != "X5"  # ``TransactionChecks`` reports again what a run on disk shows of it
            self.oracle.alarm_log.report(check_id, partition, sentence, guarantee=guarantee, leaves_evidence=is_shown)
        if left:
            return
        committed = cluster.committed_end_offset
        cluster.event_log.note(events.ClusterSettled(cause_id=cluster.event_log.cause_id, metadata_offset=committed))
        before = self._pulse()
        cluster.run(QUIET_MS)
        if self._pulse() != before and self._is_restless():
            self.oracle.alarm_log.report("L9", None, f"it went on from {before} to {self._pulse()}")

    def _pulse(self) -> tuple[object, ...]:
        return pulse(self.cluster, self.oracle.tally)

    def _is_restless(self) -> bool:
        """Returns whether the cluster still changes after the time of its periodic work, which is a livelock.

        Members of groups may yet form a generation and write their positions, which moves ISRs of slow followers.
        """
        cluster = self.cluster
        sessions = [node.process.member.session_timeout_ms for node in cluster.clients.members.values()]
        group_ms = max(sessions) + cluster.properties.group_initial_rebalance_delay_ms if sessions else 0
        cluster.run(cluster.settling_ms + QUIET_MS + group_ms)
        before = self._pulse()
        self.cluster.run(self.cluster.settling_ms + QUIET_MS)
        return self._pulse() != before

    def _converge(self) -> list[tuple[str, TopicPartition | None, str]]:
        cluster = self.cluster
        end_ms = cluster.now_ms + cluster.converge_ms
        if any(True for _ in self.oracle.open_transactions()):
            # A coordinator may wait that long for the response to a lost marker request, and only then retry.
            end_ms += cluster.properties.request_timeout_ms
        while True:
            self._start_controllers()  # a node may have been on its way out when the healing began
            for broker_id, node in cluster.nodes.items():
                if broker_id in self._asked_to_forget and self._stop_if_unregistered(node):
                    self._asked_to_forget.discard(broker_id)
                cluster.processes.start(node)
            cluster.run(_POLL_MS)
            left = list(self.oracle.missing())
            if not left or cluster.now_ms >= end_ms:
                return left

    def _stop_if_unregistered(self, node: BrokerNode) -> bool:
        """Stops a broker that is not registered any more: it cannot register again until it is restarted."""
        broker = node.broker
        if broker is None or broker.broker_epoch is None or node.broker_id in self.cluster.image.brokers:
            return False
        self.cluster.processes.stop(node)
        return True

    def _start_controllers(self) -> None:
        for controller in self.cluster.metadata_nodes.values():
            if not self.cluster.is_awaited(controller.node_id):
                self.cluster.processes.start(controller)

    def _restart_in_order(self) -> None:
        """Restarts the brokers one after the other, as operators do; each gets time to rejoin its ISRs."""
        cluster = self.cluster
        for node in cluster.nodes.values():
            cluster.processes.stop(node)
            if not cluster.run_until(lambda node=node: node.core is None):  # type: ignore[misc]
                cluster.processes.kill(node)
            cluster.processes.start(node)
            cluster.run_until(lambda: not any(True for _ in self.oracle.missing()), within_ms=2_000)

    def _read_for_groups(self) -> None:
        """Has each group read once more, so that its last position is known."""
        cluster = self.cluster
        producer = cluster.clients.transactional.get(TRANSACTIONAL)
        if producer is None or OFFSETS_TOPIC not in {topic.name for topic in self.plan.topics}:
            return
        for name in self.plan.client_partitions:
            if name not in excused(cluster) and cluster.state(name) is not None:
                for group in GROUPS:
                    cluster.clients.consume(producer, Source(group_id=group, partition=name, records=1))
        cluster.run_until(lambda: not producer.producer.unfinished, within_ms=_READ_MS)

    def _read(self) -> None:
        cluster = self.cluster
        self._read_for_groups()
        closing = {
            name: cluster.clients.produce(cluster.clients.producers[PRODUCER_ALL], name, 1)
            for name in self.plan.client_partitions
            if name not in excused(cluster) and cluster.state(name) is not None
        }
        producers = list(cluster.clients.producers.values())
        answered = cluster.run_until(lambda: not any(p.producer.unfinished_records for p in producers))
        if not answered:
            self.oracle.alarm_log.report("L5", None, "a healed cluster does not answer producers")
        accepted = self.oracle.checks.clients.accepted
        self._closing_acks = len(accepted.intersection(closing.values()))
        for name, operation_id in closing.items():
            if answered and operation_id not in accepted:
                self.oracle.alarm_log.report("L5", name, f"a healed cluster does not take {operation_id} for {name}")
        for producer in producers:
            cluster.clients.abandon(producer)
        for transactional in cluster.clients.transactional.values():
            cluster.clients.abandon(transactional)
        for member in cluster.clients.members.values():
            cluster.clients.abandon(member)
        for consumer in cluster.clients.consumers:
            cluster.clients.abandon(consumer)
        final = cluster.clients.add_consumer(
            "final-consumer", Phase.FINAL, _FINAL_CONSUMER, self.plan.client_partitions
        )
        cluster.run_until(lambda: final.consumer.is_finished, within_ms=_READ_MS)
        cluster.clients.abandon(final)
        self.oracle.finish()
        self._lost_when_read = self.oracle.lost(unread=self._unread)

    def stop(self) -> None:
        """Stops every node in order; a node that does not stop in time is killed."""
        self._guarded(self._stop)

    def _stop(self) -> None:
        cluster = self.cluster
        cluster.event_log.note(events.ShutdownBegan(cause_id=cluster.event_log.cause_id))
        for node in cluster.nodes.values():
            cluster.processes.stop(node)
        if cluster.run_until(lambda: all(node.core is None for node in cluster.nodes.values())):
            self.oracle.stopped(unread=self._unread)
        for node in cluster.nodes.values():
            cluster.processes.kill(node)
        for controller in cluster.metadata_nodes.values():
            cluster.processes.stop(controller)
        cluster.run(1)
        cluster.run_until(lambda: all(node.core is None for node in cluster.metadata_nodes.values()), within_ms=1_000)
        for controller in cluster.metadata_nodes.values():
            cluster.processes.kill(controller)

    def judgement(self) -> Judgement:
        """Returns the verdict on a stopped run, equal to the one that verification reaches from its run directory."""
        at_the_end = self.oracle.lost(unread=self._unread)
        # Records that the last leader lacks during the final read may be on the leader at the time of the stop.
        lost = {(each.partition, each.base_offset, each.crc): each for each in (*self._lost_when_read, *at_the_end)}
        return judge(
            tuple(self.oracle.alarms),
            tuple(lost.values()),
            is_promised=self.cluster.promised_by_all,
            unread=self._unread,
            acks=self.oracle.tally.acks_of_any_kind,
        )

    def outcome(self) -> SimulationResult:
        """Returns the result of the run so far; after ``finish`` it is final, whatever ``stop`` adds."""
        return self._outcome_so_far() if self._result is None else self._result

    def _outcome_so_far(self) -> SimulationResult:
        oracle, tally = self.oracle, self.oracle.tally
        return SimulationResult(
            alarms=tuple(oracle.alarms),
            findings=self.findings(),
            steps=self.cluster.steps,
            virtual_ms=self.cluster.now_ms,
            acks=tally.acks,
            closing_acks=self._closing_acks,
            elections=tally.elections,
            unclean_restarts=tally.unclean_restarts,
            truncations=tally.truncations,
            excuses=self._excuses,
            marks=dict(sorted((tally.marks | self._segment_marks()).items())),
        )

    def _segment_marks(self) -> Counter[str]:
        marks: Counter[str] = Counter()
        for node in self.cluster.nodes.values():
            marks.update(node.disk.journal.marks)
        return marks

    def findings(self) -> tuple[Alarm, ...]:
        """Returns the alarms so far that mean that the protocol is wrong."""
        return tuple(alarm for alarm in self.oracle.alarms if is_finding(alarm, self.cluster.promised_by_all))
