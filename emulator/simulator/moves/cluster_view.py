"""The input of moves: the running cluster, with full knowledge of its state, and seeded random streams.

Drawn values become arguments of actions, so a replay draws nothing.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from laststand.emulator.core.coordinator_partitions import partition_of
from laststand.emulator.core.disk import ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.topic_names import INTERNAL_TOPICS
from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.disk.disk import unsynced_batches
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.oracle import Oracle
from laststand.emulator.simulator.profiles.profile import Budget

Actions: TypeAlias = Sequence[actions.Action]


class LedPartition(NamedTuple):
    """A partition that has a leader, and its committed state."""

    name: TopicPartition
    leader: BrokerId
    state: PartitionState


class ClusterView:
    """A cluster as moves read it, with one random stream per concern, so that draws for one do not shift the others.

    Args:
        cluster: the cluster.
        oracle: it knows what the guarantee still covers.
        partitions: all partitions of the plan.
        budget: whether moves may cause more failures than the guarantee covers.
        fates: possible results of a power loss for truncations that were not synced.
        seed: of the random streams.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        oracle: Oracle,
        partitions: tuple[TopicPartition, ...],
        *,
        budget: Budget,
        fates: tuple[TruncationFate, ...],
        seed: str,
    ) -> None:
        self.cluster = cluster
        self.oracle = oracle
        self.partitions = partitions
        self.budget = budget
        self.fates = fates
        self.workload = Random(f"{seed}/workload")
        self.network = Random(f"{seed}/network")
        self.storage = Random(f"{seed}/storage")
        self.schedule = Random(f"{seed}/schedule")

    @property
    def brokers(self) -> list[BrokerNode]:
        """All brokers."""
        return list(self.cluster.nodes.values())

    @property
    def running(self) -> list[BrokerNode]:
        """Brokers that run."""
        return [node for node in self.brokers if node.core is not None]

    @property
    def controller_id(self) -> NodeId:
        """The controller; of several controllers, the last one that became active."""
        return self.cluster.metadata_node.node_id

    def draw_partition(self) -> TopicPartition:
        """Draws a partition."""
        return self.workload.choice(self.partitions)

    def draw_led_partition(self) -> LedPartition | None:
        """Draws a partition; ``None`` if it has no leader."""
        name = self.draw_partition()
        state = self.cluster.state(name)
        return None if state is None or state.leader is None else LedPartition(name, state.leader, state)

    def coordinator(self, key: str, topic: str) -> BrokerId | None:
        """Returns the leader of the partition of an internal topic that a group or a transactional id belongs to."""
        count = self.cluster.image.partition_counts.get(topic, 0)
        state = self.cluster.state(partition_of(key, topic, count)) if count else None
        return None if state is None else state.leader

    @property
    def client_partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that clients write to."""
        return tuple(name for name in self.partitions if name.topic not in INTERNAL_TOPICS)

    @property
    def session_ms(self) -> int:
        """After how long a silent broker is fenced."""
        return self.cluster.properties.broker_session_timeout_ms

    def past_session_ms(self, percent: int = 130) -> int:
        """Draws a time in which a session ends: from 105 to ``percent`` percent of the session timeout."""
        return self.schedule.randint(self.session_ms * 105 // 100, self.session_ms * percent // 100)

    def past_lag_ms(self) -> int:
        """Draws a time after which a follower that does not fetch must leave the ISR, checked twice per lag time."""
        lag_ms = self.cluster.properties.replica_lag_time_max_ms
        return self.schedule.randint(lag_ms * 105 // 100 + 10, lag_ms * 170 // 100 + 10)

    def past_return_ms(self) -> int:
        """Draws a time in which a broker that heartbeats again is unfenced, and fetches from its leaders again."""
        properties = self.cluster.properties
        usual_ms = properties.broker_heartbeat_interval_ms + properties.replica_fetch_wait_max_ms
        return self.schedule.randint(usual_ms // 2, usual_ms * 130 // 100 + 10)

    def may_crash(self, node: BrokerNode) -> bool:
        """Returns whether the guarantee still covers the partitions of a broker that ends uncleanly now."""
        if self.budget is Budget.BEYOND:
            return True
        for name, truth in self.oracle.truths.items():
            state = self.cluster.state(name)
            if state is not None and node.broker_id in state.replicas:
                crashing = (
                    each.node_id for each in self.brokers if each.pending_crash and each.broker_id in state.replicas
                )
                outstanding = {*truth.ledger.outstanding(), *crashing, node.node_id}
                if len(outstanding) > truth.ledger.allowed:
                    return False
        return True

    def draw_victim(self) -> BrokerNode | None:
        """Draws a running broker that may crash."""
        victims = [node for node in self.running if self.may_crash(node)]
        return self.storage.choice(victims) if victims else None

    def draw_power_loss(self, nodes: tuple[NodeId, ...]) -> actions.PowerLoss[NodeId]:
        """Draws a loss of power of these nodes."""
        return actions.PowerLoss(nodes=nodes, loss=self.draw_loss(nodes))

    def draw_loss(self, nodes: tuple[NodeId, ...]) -> DiskLoss:
        """Draws the losses of a power loss on these nodes' disks."""
        most = max(
            (
                unsynced_batches(broker.disk)
                for node in nodes
                if (broker := self.cluster.nodes.get(BrokerId(node))) is not None
            ),
            default=0,
        )
        return DiskLoss(
            keep=self.storage.choice((Keep.NONE, Keep.NONE, Keep.PREFIX, Keep.TORN, Keep.PAGES)),
            exact=ExactLoss(
                kept=self.storage.randint(0, max(0, most - 1)),
                truncation=self.storage.choice(self.fates),
                names=self.storage.choice(tuple(NamesFate)),
            ),
        )


Move: TypeAlias = Callable[[ClusterView], Actions]
"""Draws its choices and returns actions; none if it makes no sense now."""
