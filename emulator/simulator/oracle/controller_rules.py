"""Rules of the controller, restated: the changes that it may commit, judged by the events of its commits.

M1-M3 and M17 are the core's own named predicates, applied to the partitions of the step. Events are in the order of the
log, so the state before an event follows from the events before it, whichever controller process reports them.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.controller.invariants import (
    check_m2_active_isr,
    check_m3_elr_only_under_min_isr,
    check_m17_elr_replicas,
    check_partition,
)
from laststand.emulator.core.controller.sessions import SessionKey
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.metadata_version import ELR_VERSION, LEADER_RECOVERY, METADATA_VERSION
from laststand.emulator.core.types import BrokerEpoch, BrokerId, PartitionEpoch, RecoveryStrategy, TopicPartition
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.change_rules import PROPOSED, REASSIGNED, UNCLEAN, change_problems
from laststand.emulator.simulator.oracle.recovery_rule import Electorate, Patience, RecoveryRule

_REGISTERED: Final = "broker_registered"
_REQUESTED: Final = "elect_leaders"
"""An administrator may designate a leader beside candidates (KIP-966)."""

_TAKEN_FOR_OLD: Final = ("FENCED_LEADER_EPOCH", "INVALID_UPDATE_VERSION")


class ControllerRules:
    """Checks of one run.

    Attributes:
        recovery: the rule about which replica an unclean recovery elects.
    """

    def __init__(self, alarm_log: AlarmLog) -> None:
        self.recovery = RecoveryRule()
        self._alarm_log = alarm_log
        self._cluster: SimulatedCluster
        self._last: dict[TopicPartition, events.PartitionChanged] = {}
        self._states: dict[tuple[TopicPartition, PartitionEpoch], events.PartitionChanged] = {}
        self._unclean: dict[TopicPartition, set[BrokerId]] = {}
        self._has_floor: set[TopicPartition] = set()
        self._epochs: dict[BrokerId, BrokerEpoch] = {}
        self._active: set[BrokerId] = set()
        self._unfenced: set[BrokerId] = set()
        self._last_contact_ms: dict[BrokerId, int] = {}
        self._has_elr = True
        self._has_recovery_state = True
        self._kept: dict[TopicPartition, set[BrokerId]] = {}

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster
        self._has_elr = self._has_elr_rule = cluster.switches.elr

    def feature_changed(self, event: events.FeatureChanged) -> None:
        """Rules about eligible leader replicas end with their feature; RECOVERING needs a metadata version."""
        if event.name == METADATA_VERSION:
            self._has_recovery_state = event.feature_level >= LEADER_RECOVERY
        if event.name == ELR_VERSION:
            self._has_elr = self._has_elr_rule and event.feature_level > 0
            self._has_floor.clear()
            self._unclean.clear()

    def controller_started(self) -> None:
        """Another controller process takes over: it has no contact times, and begins recoveries again."""
        self._last_contact_ms.clear()
        self.recovery.restarted()

    # --- Partitions -------------------------------------------------------------------------------------------------

    def committed(self, name: TopicPartition, event: events.PartitionChanged) -> None:
        """A partition's state was committed: M1-M7, M9, M11, M16, M17, M19."""
        before = self._last.get(name)
        self._last[name] = self._states[name, event.partition_epoch] = event
        self._check_state(name, event)
        if before is None or before.topic_id != event.topic_id:
            before = None
        self._check_floor(name, before, event)
        if before is not None:
            for check_id, problem in change_problems(
                before,
                event,
                has_recovery_state=self._has_recovery_state,
                completes_at_min_isr=all(
                    rules.reassignment_requires_min_isr for rules in self._cluster.controllers_rules
                ),
            ):
                self._alarm_log.report(check_id, name, f"{name} {problem}")
            self._check_election(name, before, event)
            self._check_unclean(name, event)

    def check_min_isr(self, name: TopicPartition, event: events.PartitionChanged, *, configured: int) -> None:
        """M21: a partition's effective min ISR is the configured one, or the number of its replicas."""
        if event.effective_min_isr != min(configured, len(event.replicas)):
            sentence = f"{name}: the controller goes by min ISR {event.effective_min_isr}, with {configured} configured"
            self._alarm_log.report("M21", name, f"{sentence}: {event.describe()}")

    def elected_uncleanly(
        self, name: TopicPartition, event: events.UncleanLeaderElected, *, configured: RecoveryStrategy
    ) -> None:
        """The partition's last change elected a leader that may lack records: M20."""
        after = self._last.get(name)
        before = None if after is None else self._states.get((name, PartitionEpoch(after.partition_epoch - 1)))
        electorate = Electorate(self._epochs, self._active)
        patience = Patience(
            timeout_ms=self._cluster.properties.unclean_recovery_timeout_ms,
            waits=all(rules.recovery_waits for rules in self._cluster.controllers_rules),
        )
        problems = self.recovery.problems(
            event, before, electorate, configured=configured, patience=patience, now_ms=self._controller_ms
        )
        for problem in problems:
            sentence = f"{name}: {problem.sentence}: {event.describe()}"
            self._alarm_log.report("M20", name, sentence, leaves_evidence=problem.leaves_evidence)

    def recovery_started(self, event: events.UncleanRecoveryStarted) -> None:
        """Notes that the controller began to ask replicas for their logs."""
        self.recovery.started(event, now_ms=self._controller_ms)

    @property
    def _controller_ms(self) -> int:
        """The time by the controller's clock."""
        return self._cluster.metadata_node.clock.local_ms(self._cluster.now_ms)

    def deleted(self, topic: str) -> None:
        """Notes that a topic was deleted."""
        for name in [name for name in self._last if name.topic == topic]:
            del self._last[name]
            self._unclean.pop(name, None)
            self._has_floor.discard(name)
            self._kept.pop(name, None)
        for key in [key for key in self._states if key[0].topic == topic]:
            del self._states[key]

    def _check_state(self, name: TopicPartition, event: events.PartitionChanged) -> None:
        image = self._cluster.image
        state = image.partitions.get(name)
        if state is None or state.partition_epoch != event.partition_epoch:
            return
        active = frozenset(broker for broker, each in image.brokers.items() if each.is_active)
        predicates: list[Callable[[TopicPartition, PartitionState], None]] = [
            partial(check_partition, active=active, effective_min_isr=None),
            check_m17_elr_replicas,
        ]
        if self._has_elr:
            kept = self._kept.get(name, set())
            predicates.append(partial(check_m2_active_isr, active=active | kept))
            predicates.append(partial(check_m3_elr_only_under_min_isr, effective_min_isr=event.effective_min_isr))
        else:  # the last member stays, though it is fenced, and is still there when the feature comes back
            self._kept.setdefault(name, set()).update(event.isr)
        for predicate in predicates:
            try:
                predicate(name, state)
            except InvariantError as violation:
                self._alarm_log.report(str(violation).partition(":")[0], name, str(violation))

    def _check_floor(
        self, name: TopicPartition, before: events.PartitionChanged | None, event: events.PartitionChanged
    ) -> None:
        """M4: a partition that had enough candidates keeps enough, except for changes that may remove some."""
        if not self._has_elr:
            return
        if len(event.isr) + len(event.elr) >= event.effective_min_isr:
            self._has_floor.add(name)
            return
        is_excused = (
            event.reason == _REGISTERED
            or event.election in UNCLEAN
            or before is None
            or event.effective_min_isr != before.effective_min_isr
            or not set(before.replicas) <= set(event.replicas)
        )
        if name in self._has_floor and not is_excused:
            sentence = f"{name} has fewer candidates than {event.effective_min_isr}: {event.describe()}"
            self._alarm_log.report("M4", name, sentence)
        self._has_floor.discard(name)

    def _check_election(
        self, name: TopicPartition, before: events.PartitionChanged, event: events.PartitionChanged
    ) -> None:
        leader = event.leader
        if leader is None or leader == before.leader:
            return
        members = (self._active & set(before.isr)) - {event.broker_id}
        is_elr_asked = self._has_elr and not before.isr
        candidates = members or ((self._active & set(before.elr)) - {event.broker_id} if is_elr_asked else set())
        # A proposal may complete a reassignment; members that a cancellation puts into the ISR are judged by M11.
        joined = event.isr if event.reason in (PROPOSED, REASSIGNED) else ()
        match event.election:
            case events.Election.ISR if leader not in (*before.isr, *joined):
                self._alarm_log.report("M6", name, f"{name}: {leader} was elected from ISR {before.isr}")
            case events.Election.ELR if leader not in before.elr or members:
                self._alarm_log.report(
                    "M6", name, f"{name}: {leader} was elected from ELR {before.elr}, ISR {before.isr}"
                )
            case events.Election.UNCLEAN | events.Election.LAST_KNOWN_LEADER if (
                candidates and event.reason != _REQUESTED
            ):
                sentence = f"{name}: {leader} was elected uncleanly beside {sorted(candidates)}"
                self._alarm_log.report("M6", name, f"{sentence}: {event.describe()}")
            case events.Election.UNCLEAN | events.Election.LAST_KNOWN_LEADER if event.isr != (leader,):
                self._alarm_log.report("M6", name, f"{name}: {leader} was elected uncleanly as {event.describe()}")
            case events.Election.NONE | events.Election.NO_CANDIDATE:
                self._alarm_log.report("M6", name, f"{name}: {leader} leads and was not elected: {event.describe()}")
            case _:
                pass

    def _check_unclean(self, name: TopicPartition, event: events.PartitionChanged) -> None:
        excluded = self._unclean.get(name)
        if not excluded:
            return
        if event.election in UNCLEAN and event.leader is not None:
            excluded.discard(event.leader)
        if event.reason in (PROPOSED, REASSIGNED):  # proposed by the leader, or put there by a cancellation: see M11
            excluded.difference_update(event.isr)
        back = excluded & {*event.isr, *event.elr}
        if back and event.reason != _REGISTERED:
            self._alarm_log.report(
                "M5", name, f"{name}: {sorted(back)} registered uncleanly and are in {event.describe()}"
            )
            excluded -= back

    # --- Brokers ----------------------------------------------------------------------------------------------------

    def fenced(self, event: events.BrokerFenced | events.ControlledShutdownStarted) -> None:
        """A broker may lead no longer."""
        self._active.discard(event.broker_id)
        if isinstance(event, events.BrokerFenced):
            self._unfenced.discard(event.broker_id)

    def unfenced(self, event: events.BrokerUnfenced) -> None:
        """A broker may lead."""
        self._active.add(event.broker_id)
        self._unfenced.add(event.broker_id)

    def ended(self, event: events.IncarnationEnded) -> None:
        """Notes that a process ended, and when the controller last heard from it."""
        if event.ended_node == self._cluster.metadata_node.node_id:
            self.recovery.ended()
        broker_id = BrokerId(event.ended_node)
        epoch = self._epochs.get(broker_id)
        if epoch is None:
            return
        contact_ms = self._cluster.controller.sessions.last_contact_ms(SessionKey(broker_id, epoch))
        if contact_ms is not None:
            self._last_contact_ms[broker_id] = contact_ms

    def registered(self, event: events.BrokerRegistered) -> None:
        """Notes that a broker registered: M12 on the earlier session; after an unclean registration M5 applies."""
        broker_id = event.broker_id
        contact_ms = self._last_contact_ms.pop(broker_id, None)
        if contact_ms is not None and broker_id in self._unfenced:
            passed_ms = self._cluster.metadata_node.clock.local_ms(self._cluster.now_ms) - contact_ms
            if passed_ms <= self._cluster.properties.broker_session_timeout_ms:
                sentence = f"broker {broker_id} registered again {passed_ms} ms after its earlier session was heard of"
                self._alarm_log.report("M12", None, sentence)
        self._active.discard(broker_id)
        self._unfenced.discard(broker_id)
        self._epochs[broker_id] = event.broker_epoch
        for name, last in self._last.items():
            excluded = self._unclean.setdefault(name, set())
            excluded.discard(broker_id)
            is_unclean = event.stored_broker_epoch is not None and (
                event.previous_broker_epoch != event.stored_broker_epoch
            )
            if is_unclean and self._has_elr and broker_id in last.replicas:
                excluded.add(broker_id)

    # --- Proposals --------------------------------------------------------------------------------------------------

    def decided(self, name: TopicPartition, event: events.AlterPartitionDecided) -> None:
        """The controller judged a proposal: M10."""
        last = self._last.get(name)
        if last is not None and event.error in _TAKEN_FOR_OLD and _is_ahead(event, last):
            sentence = f"{name}: a proposal from the future was taken for old: {event.describe()}"
            self._alarm_log.report("M10", name, sentence)
        if event.error != "NONE":
            return
        wrong: list[str] = []
        before = self._states.get((name, event.partition_epoch))
        if last is not None and before is not None:
            members = set(event.proposed_isr)
            after = self._states.get((name, PartitionEpoch(event.partition_epoch + 1)))
            if event.broker_id != before.leader or event.leader_epoch != before.leader_epoch:
                wrong.append("is not from the leader of the time")
            if event.broker_id not in members or not members <= set(before.replicas):
                wrong.append("names other than replicas, or not the leader")
            if after is not None and (after.reason, after.broker_id) != (PROPOSED, event.broker_id):
                wrong.append("came after another change")
        for member, epoch in zip(event.proposed_isr, event.broker_epochs, strict=True):
            registered = self._epochs.get(member)
            is_known = epoch is not None or before is None or member in before.isr
            if registered is None or not is_known or (epoch is not None and epoch != registered):
                wrong.append(f"has member {member} under epoch {epoch}, registered was {registered}")
            elif member not in self._active:
                wrong.append(f"has member {member}, which is not active")
        if event.broker_epoch != self._epochs.get(event.broker_id):
            wrong.append(f"is from epoch {event.broker_epoch} of its sender")
        if wrong:
            sentence = f"{name}: an accepted proposal {', '.join(wrong)}: {event.describe()}"
            self._alarm_log.report("M10", name, f"{sentence}; it was {before and before.describe()}")


def _is_ahead(event: events.AlterPartitionDecided, last: events.PartitionChanged) -> bool:
    return event.leader_epoch > last.leader_epoch or event.partition_epoch > last.partition_epoch
