"""Rules of the protocol, restated: what the controller may commit, and what a leader may do.

M1-M3, M9, D8, D9, H3, H5 are the core's own named predicates, applied here to what the step touched. The others need an
observer who sees controller and brokers at once.
"""

from collections.abc import Callable

from emulator.core.broker.partition import Partition
from emulator.core.errors import InvariantViolation
from emulator.core.events import (
    AlterPartitionDecided,
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    ControlledShutdownStarted,
    Election,
    HighWatermarkAdvanced,
    PartitionChanged,
)
from emulator.core.invariants import check_hosted_partition, check_partition, check_progress, partition_mark
from emulator.core.types import BrokerEpoch, BrokerId, LeaderEpoch, NodeId, TopicPartition
from emulator.simulator.cluster import SimulatedCluster
from emulator.simulator.nodes import BrokerNode


class RuleChecks:
    """Checks of one run; ``alarm`` takes check, partition and sentence."""

    def __init__(self, alarm: Callable[[str, TopicPartition, str], None]) -> None:
        self._alarm = alarm
        self._cluster: SimulatedCluster
        self._last: dict[TopicPartition, PartitionChanged] = {}
        self._leaders: dict[tuple[TopicPartition, LeaderEpoch], NodeId] = {}
        self._unclean: dict[TopicPartition, set[BrokerId]] = {}
        self._epochs: dict[BrokerId, BrokerEpoch] = {}
        self._active: set[BrokerId] = set()

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster

    def controller_started(self) -> None:
        """The controller runs anew; a killed one may have taken events of committed records with it."""
        self._last.clear()
        self._unclean.clear()
        image = self._cluster.controller.image
        self._epochs = {broker: each.broker_epoch for broker, each in image.brokers.items()}
        self._active = {broker for broker, each in image.brokers.items() if each.is_active}

    # --- Controller -------------------------------------------------------------------------------------------------

    def committed(self, name: TopicPartition, event: PartitionChanged) -> None:
        """A partition's state was committed: M1, M2, M3, M5, M6, M9."""
        before = self._last.get(name)
        self._last[name] = event
        image = self._cluster.controller.image
        state = image.partitions.get(name)
        if state is not None and state.partition_epoch == event.partition_epoch:
            active = frozenset(broker for broker, each in image.brokers.items() if each.is_active)
            try:
                check_partition(
                    name,
                    state,
                    active=active,
                    effective_min_isr=event.effective_min_isr if self._cluster.switches.elr else None,
                )
            except InvariantViolation as violation:
                self._alarm(str(violation).partition(":")[0], name, str(violation))
        if before is None or before.topic_id != event.topic_id:
            return
        self._check_epochs(name, before, event)
        self._check_election(name, before, event)
        excluded = self._unclean.get(name)
        if excluded:
            if event.election in (Election.UNCLEAN, Election.LAST_KNOWN_LEADER) and event.leader is not None:
                excluded.discard(event.leader)
            if event.reason == "alter_partition":
                excluded.difference_update(event.isr)
            back = excluded & {*event.isr, *event.elr}
            if back and event.reason != "broker_registered":
                self._alarm("M5", name, f"{name}: {sorted(back)} registered uncleanly and are in {event.describe()}")
                excluded -= back

    def _check_epochs(self, name: TopicPartition, before: PartitionChanged, event: PartitionChanged) -> None:
        # A clearing of the ELR raises the partition epoch without an event of its own.
        is_led_anew = event.leader != before.leader
        if event.partition_epoch <= before.partition_epoch or event.leader_epoch < before.leader_epoch + is_led_anew:
            self._alarm("M9", name, f"{name} went from {before.describe()} to {event.describe()}")

    def _check_election(self, name: TopicPartition, before: PartitionChanged, event: PartitionChanged) -> None:
        if event.leader is None or event.leader == before.leader:
            return
        match event.election:
            case Election.ISR if event.leader not in before.isr:
                self._alarm("M6", name, f"{name}: {event.leader} was elected from ISR {before.isr}")
            case Election.ELR if event.leader not in before.elr or self._active & set(before.isr) - {event.broker_id}:
                self._alarm("M6", name, f"{name}: {event.leader} was elected from ELR {before.elr}, ISR {before.isr}")
            case _:
                pass

    def fenced(self, event: BrokerFenced | ControlledShutdownStarted) -> None:
        """A broker may lead no longer."""
        self._active.discard(event.broker_id)

    def unfenced(self, event: BrokerUnfenced) -> None:
        """A broker may lead."""
        self._active.add(event.broker_id)

    def registered(self, event: BrokerRegistered) -> None:
        """A broker registered: from now on M5 concerns it, if uncleanly."""
        self._active.discard(event.broker_id)
        self._epochs[event.broker_id] = event.broker_epoch
        for name, last in self._last.items():
            excluded = self._unclean.setdefault(name, set())
            excluded.discard(event.broker_id)
            is_unclean = event.stored_broker_epoch is not None and (
                event.previous_broker_epoch != event.stored_broker_epoch
            )
            if is_unclean and event.broker_id in last.replicas:
                excluded.add(event.broker_id)

    def decided(self, event: AlterPartitionDecided) -> None:
        """The controller judged a proposal: M10."""
        if event.error != "NONE":
            return
        name = TopicPartition(event.topic, event.partition)
        for member, epoch in zip(event.proposed_isr, event.broker_epochs, strict=True):
            registered = self._epochs.get(member)
            if registered is None or (epoch is not None and epoch != registered):
                self._alarm("M10", name, f"{name}: accepted {member} under epoch {epoch}, registered was {registered}")

    # --- Brokers ----------------------------------------------------------------------------------------------------

    def high_watermark_advanced(self, name: TopicPartition, event: HighWatermarkAdvanced) -> None:
        """A leader's high watermark rose: H1, H2."""
        if len(event.committed_isr) < event.effective_min_isr:
            self._alarm("H2", name, f"{name}: {event.describe()}")
        ends = {progress.broker_id: progress.log_end_offset for progress in event.replicas}
        short = [member for member in event.maximal_isr if (end := ends.get(member)) is None or end < event.new]
        if short or event.new > event.log_end_offset:
            self._alarm("H1", name, f"{name}: {short} of the maximal ISR are not there yet: {event.describe()}")

    def led(self, name: TopicPartition, node_id: NodeId, leader_epoch: LeaderEpoch) -> None:
        """A node appended as leader: M8."""
        leader = self._leaders.setdefault((name, leader_epoch), node_id)
        if leader != node_id:
            self._alarm("M8", name, f"{name}: epoch {leader_epoch} has leaders {leader} and {node_id}")

    def check_hosted(self, node: BrokerNode, partition: Partition) -> None:
        """D8, D9, H3, H5, M9 on one replica."""
        try:
            check_hosted_partition(partition)
            mark = node.marks.get(partition.name)
            if mark is not None:
                check_progress(partition, mark)
        except InvariantViolation as violation:
            self._alarm(str(violation).partition(":")[0], partition.name, f"on broker {node.node_id}, {violation}")
        node.marks[partition.name] = partition_mark(partition)

    def check_superset(self, name: TopicPartition) -> None:
        """H4: a settled leader whose ISR is large enough reckons with every candidate of the controller's."""
        state = self._cluster.state(name)
        if state is None or state.leader is None:
            return
        broker = self._cluster.nodes[state.leader].broker
        partition = None if broker is None else broker.partition(name)
        if partition is None or not partition.is_leader or partition.leader_epoch != state.leader_epoch:
            return
        if len(partition.committed_isr) < partition.effective_min_isr:
            return
        missing = {*state.isr, *state.elr} - set(partition.maximal_isr)
        if missing:
            self._alarm(
                "H4",
                name,
                f"{name}: leader {state.leader} reckons with {partition.maximal_isr}; the controller has ISR"
                f" {state.isr} and ELR {state.elr}",
            )
