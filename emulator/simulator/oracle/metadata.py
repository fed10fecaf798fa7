"""Checks of the metadata log, its writers, and the images and roles that brokers derive from it.

M13: a broker's image is the fold of the log's prefix that it has, also if many records came at once, and its hosted
partitions have the roles that the image gives them. M14: one controller writes at a time. M16: how reassignments end.
L7, second half: no log is deleted from a broker to which it is assigned.
"""

from collections.abc import Iterator, Sequence

from laststand.emulator.core import events
from laststand.emulator.core.broker.replicas.isr import Committed
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import BrokerEpoch, BrokerId, LeaderEpoch, MetadataOffset, TopicPartition
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.reference import MetadataReference


class MetadataChecks:
    """Checks of one run's metadata."""

    def __init__(self, alarm_log: AlarmLog) -> None:
        self.reference = MetadataReference(self._changed)
        self._alarm_log = alarm_log
        self._cluster: SimulatedCluster
        self._writer = -1
        self._last_offset = MetadataOffset(-1)
        self._last_broker_epoch = BrokerEpoch(-1)

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self._cluster = cluster

    def controller_started(self) -> None:
        """Notes that the controller started: its log may have lost records that were not durable."""
        self.reference.reset()
        self.follow()

    def forgotten(self) -> None:
        """Notes that controllers have lost committed metadata, which another check reports.

        The run directory then has two records for each of these offsets, so it does not show the order of changes.
        """
        self._alarm_log.hide("M6", "M9", "M13")
        self.reference.reset()
        self._writer, self._last_offset = -1, MetadataOffset(-1)
        self._last_broker_epoch = BrokerEpoch(-1)

    def follow(self) -> None:
        """Folds the records that the controller has appended since the last call."""
        if not self.reference.follow(self._cluster.metadata_log):
            self._alarm_log.report("M14", None, f"the metadata log does not go on at {self.reference.end_offset}")

    def has_committed(self, name: TopicPartition, leader_epoch: LeaderEpoch, isr: Sequence[BrokerId]) -> bool:
        """Returns whether an ISR was committed in a leader epoch, or in the next one at its leader's request."""
        self.follow()
        return self.reference.has_committed(name, leader_epoch, isr)

    def written(self, incarnation: int, offset: MetadataOffset) -> None:
        """M14: a controller recorded a record that it committed."""
        if incarnation < self._writer or offset < self._last_offset:
            sentence = f"controller {incarnation} committed {offset} after controller {self._writer} had"
            self._alarm_log.report("M14", None, f"{sentence} committed {self._last_offset}")
        self._writer, self._last_offset = incarnation, offset
        self.follow()

    def registered(self, event: events.BrokerRegistered) -> None:
        """Notes that a broker registered: M12, the part about epochs."""
        if not self._last_broker_epoch < event.broker_epoch <= event.metadata_offset:
            sentence = f"broker {event.broker_id} got epoch {event.broker_epoch} at {event.metadata_offset}, after"
            self._alarm_log.report("M12", None, f"{sentence} epoch {self._last_broker_epoch}")
        self._last_broker_epoch = max(self._last_broker_epoch, event.broker_epoch)

    # --- Brokers ----------------------------------------------------------------------------------------------------

    def applied(self, node: BrokerNode, event: events.MetadataApplied) -> None:
        """A broker applied metadata: M13 on its image."""
        assert node.broker is not None
        image, end_offset = node.broker.image, event.end_offset
        self.follow()
        if image.next_offset != end_offset or end_offset > self.reference.end_offset:
            sentence = f"broker {node.node_id} applied metadata up to {end_offset}, has it up to {image.next_offset}"
            self._alarm_log.report("M13", None, f"{sentence}, and the log ends at {self.reference.end_offset}")
        partitions, brokers = self.reference.partitions_at(end_offset), self.reference.brokers_at(end_offset)
        if image.partitions != partitions or image.brokers != brokers:
            for name in sorted({*image.partitions, *partitions}):
                mine, true = image.partitions.get(name), partitions.get(name)
                if mine != true:
                    sentence = f"broker {node.node_id} at {end_offset} takes {name} to be {mine}; the log says {true}"
                    self._alarm_log.report("M13", name, sentence)
            if image.brokers != brokers:
                sentence = f"broker {node.node_id} at {end_offset} takes brokers to be {image.brokers}"
                self._alarm_log.report("M13", None, f"{sentence}; the log says {brokers}")

    def check_role(self, node: BrokerNode, name: TopicPartition, partition: Partition | None) -> None:
        """M13 on one partition of a broker, by the broker's own image, once it acts on the whole image."""
        assert node.broker is not None
        if node.broker.image.has_changes:
            return
        state = node.broker.image.partitions.get(name)
        if state is None or node.broker_id not in state.replicas:
            if partition is not None:
                self._alarm_log.report("M13", name, f"broker {node.node_id} hosts {name}, which is {state}")
            return
        if partition is None or partition.partition_epoch > state.partition_epoch:
            return  # logs are not open yet, or the answer to a proposal was quicker than metadata
        isr = partition.isr_state.isr if isinstance(partition.isr_state, Committed) else state.isr
        role = (partition.leader, partition.leader_epoch, partition.partition_epoch, frozenset(partition.replicas))
        wanted = (state.leader, state.leader_epoch, state.partition_epoch, frozenset(state.replicas))
        is_leader = state.leader == node.broker_id
        if role != wanted or partition.is_leader != is_leader or (is_leader and set(isr) != set(state.isr)):
            self._alarm_log.report(
                "M13", name, f"broker {node.node_id} has {name} as {role} with ISR {isr}; it is {state}"
            )

    def log_deleted(self, node: BrokerNode, name: TopicPartition, event: events.LogDeleted) -> None:
        """A broker put a log aside: L7, second half."""
        if node.broker is None:
            return
        state = self.reference.partition_at(name, node.broker.image.next_offset)
        if state is not None and state.topic_id == event.topic_id and node.broker_id in state.replicas:
            sentence = f"broker {node.node_id} removed its log of {name} ({event.reason}), and is a replica: {state}"
            self._alarm_log.report("L7", name, sentence, by=node.node_id)

    def znode_written(self, event: events.ZnodeWritten) -> None:
        """ZooKeeper was written: not in a KRaft cluster."""

    def missing(self) -> Iterator[tuple[str, TopicPartition | None, str]]:
        """Yields the properties that a healed cluster has not reached yet; L1 is asked of the cluster itself."""
        yield from ()

    # --- Partitions -------------------------------------------------------------------------------------------------

    def _changed(self, name: TopicPartition, before: PartitionState, after: PartitionState) -> None:
        """M16: a reassignment is complete or called off."""
        was_moving = bool(before.adding_replicas or before.removing_replicas)
        left = set(before.replicas) - set(after.replicas)
        if after.adding_replicas or after.removing_replicas or not (was_moving or left):
            return
        earlier = set(before.replicas) - set(before.adding_replicas)
        target = set(before.replicas) - set(before.removing_replicas)
        added = set(after.replicas) - earlier
        # A replica that is added, then to be removed again, is in both lists: a cancellation then yields the target.
        is_complete = set(after.replicas) == target != earlier
        strangers = set(after.isr) - set(after.replicas)
        rules = self._cluster.controllers_rules
        asks_for_min_isr = all(each.reassignment_requires_min_isr for each in rules)
        # KAFKA-19975: without min ISR, every target is needed where fewer are added than leave.
        is_smaller = len(added) < len(before.removing_replicas)
        needs_all = is_complete and all(
            each.reassignment_needs_all or (is_smaller and not each.reassignment_requires_min_isr) for each in rules
        )
        # Kafka completes a reassignment before the election, by an ISR that an unclean leader then replaces.
        is_from_outside = after.leader is not None and after.leader not in before.isr
        completes_first = is_from_outside and not asks_for_min_isr
        was_in_sync = completes_first and (target if needs_all else added) <= set(before.isr)
        in_sync = set(before.isr if was_in_sync else after.isr)
        wrong = [
            word
            for word, is_wrong in (
                ("without all that were added in sync", not added <= in_sync),
                ("without all targets in sync", needs_all and not target <= in_sync),
                (f"with {sorted(strangers)} still in the ISR", bool(strangers)),
                ("under the same leader epoch", bool(left) and after.leader_epoch == before.leader_epoch),
            )
            if is_wrong
        ]
        if wrong:
            self._alarm_log.report(
                "M16", name, f"the reassignment of {name} ended {', '.join(wrong)}: {before}, then {after}"
            )
