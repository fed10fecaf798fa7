"""Each check of a ZooKeeper cluster fires where somebody breaks its promise, and holds where nobody does."""

from collections.abc import Callable
from typing import Final

import msgspec
import pytest

from emulator.core.broker.zookeeper_broker import ZooKeeperBroker
from emulator.core.events import HighWatermarkAdvanced, LogDeleted
from emulator.core.types import (
    BrokerId,
    CauseId,
    LeaderEpoch,
    LogDeletedReason,
    NodeId,
    Offset,
    TopicId,
    TopicPartition,
)
from emulator.core.zookeeper.identifiers import ControllerEpoch, NodeVersion
from emulator.core.zookeeper.nodes import paths
from emulator.core.zookeeper.nodes.partition_state import PartitionLeadership, StateFormat, decode_state, encode_state
from emulator.core.zookeeper.operations import Create, SetData, Step
from emulator.plan.plan import parse_plan
from emulator.simulator.simulation import Simulation
from emulator.simulator.zookeeper.cluster import ZooKeeperCluster

ORDERS: Final = TopicPartition("orders", 0)
_PLAN: Final = """
cluster brokers=3 era=kafka-3.9-zk
topic orders replicas=(0,1,2) min.insync.replicas=2
"""
_CAUSE: Final = CauseId("test")


class World:
    """A cluster that serves one partition, and somebody who writes into its ZooKeeper."""

    def __init__(self) -> None:
        self.simulation = Simulation(parse_plan(_PLAN))
        self.simulation.begin()
        cluster = self.simulation.cluster
        assert isinstance(cluster, ZooKeeperCluster)
        self.cluster = cluster
        self.cluster.run(500)
        self.store = cluster.zookeeper_node.store
        self._session = self.store.server.open_session(timeout_ms=1 << 40, now_ms=0)

    def write(self, *steps: Step) -> None:
        """Writes past everybody; the events go to the oracle as from the server."""
        self.store.server.execute(self._session, steps)
        for event in self.store.told(cause_id=_CAUSE):
            self.cluster.event_log.write(self.cluster.zookeeper_node, event)

    def decided(self) -> PartitionLeadership:
        """Returns what the state node says."""
        server = self.store.server
        data, stat = server.data(paths.state_node(ORDERS)), server.stat(paths.state_node(ORDERS))
        assert data is not None
        assert stat is not None
        found = decode_state(data, NodeVersion(stat.version), state_format=StateFormat.WITH_RECOVERY)
        assert found is not None
        return found

    def decide(self, leadership: PartitionLeadership) -> None:
        """Writes a decision into the state node."""
        data = encode_state(leadership, state_format=StateFormat.WITH_RECOVERY)
        self.write(SetData(path=paths.state_node(ORDERS), data=data, version=None))

    def fired(self) -> set[str]:
        """Returns the checks that fired, those included that a healed cluster does not come to."""
        oracle = self.simulation.oracle
        oracle.scan()
        return {alarm.check_id for alarm in oracle.alarms} | {check_id for check_id, _, _ in oracle.missing()}


def _stale_cache(world: World) -> None:
    term = world.cluster.term
    assert term is not None
    del term.context.leadership[ORDERS]


def _forgotten_epoch(world: World) -> None:
    world.fired()
    broker = world.cluster.nodes[BrokerId(NodeId(1))].broker
    assert isinstance(broker, ZooKeeperBroker)
    broker.fence.controller_epoch = ControllerEpoch(0)


def _ahead_of_a_member(world: World) -> None:
    state = world.cluster.state(ORDERS)
    assert state is not None
    assert state.leader is not None
    event = HighWatermarkAdvanced(
        cause_id=_CAUSE,
        topic=ORDERS.topic,
        partition=ORDERS.partition,
        topic_id=state.topic_id,
        leader_epoch=state.leader_epoch,
        old=Offset(0),
        new=Offset(1),
        log_end_offset=Offset(1),
        committed_isr=state.isr,
        maximal_isr=state.isr,
        joiners=(),
        effective_min_isr=2,
        replicas=(),
    )
    world.simulation.oracle.checks.leaders.high_watermark_advanced(state.leader, ORDERS, event)


def _deleted_log(world: World) -> None:
    event = LogDeleted(
        cause_id=_CAUSE,
        topic=ORDERS.topic,
        partition=ORDERS.partition,
        topic_id=TopicId("id-of-orders"),
        reason=LogDeletedReason.DELETED,
        log_end_offset=Offset(0),
    )
    world.simulation.oracle.checks.metadata.log_deleted(world.cluster.nodes[BrokerId(NodeId(1))], ORDERS, event)


def _left_notification(world: World) -> None:
    world.write(Create(path=f"{paths.ISR_CHANGE_NOTIFICATIONS}/{paths.ISR_CHANGE_PREFIX}0000000007"))


def _other_leader_in_an_epoch(world: World) -> None:
    found = world.decided()
    decided = msgspec.structs.replace(found.leader_and_isr, leader=BrokerId(NodeId(1)))
    world.decide(msgspec.structs.replace(found, leader_and_isr=decided))


def _late_controller(world: World) -> None:
    world.decide(msgspec.structs.replace(world.decided(), controller_epoch=ControllerEpoch(0)))


def _controller_before(world: World) -> None:
    world.write(SetData(path=paths.CONTROLLER_EPOCH, data=b"7", version=None))
    found = world.decided()
    decided = found.leader_and_isr
    raised = msgspec.structs.replace(decided, leader_epoch=LeaderEpoch(decided.leader_epoch + 1))
    world.decide(msgspec.structs.replace(found, leader_and_isr=raised))


def _two_epochs_at_once(world: World) -> None:
    found = world.decided()
    decided = found.leader_and_isr
    raised = msgspec.structs.replace(decided, leader_epoch=LeaderEpoch(decided.leader_epoch + 2))
    world.decide(msgspec.structs.replace(found, leader_and_isr=raised))


CASES: Final[tuple[tuple[str, Callable[[World], None]], ...]] = (
    ("Z1", _stale_cache),
    ("Z2", _forgotten_epoch),
    ("Z3", _ahead_of_a_member),
    ("Z4", _deleted_log),
    ("Z5", _left_notification),
    ("Z6", _other_leader_in_an_epoch),
    ("Z7", _two_epochs_at_once),
    ("M14", _late_controller),
    ("M14", _controller_before),
)


@pytest.mark.parametrize(("check_id", "break_promise"), CASES)
def test_it_fires(check_id: str, break_promise: Callable[[World], None]) -> None:
    world = World()
    assert check_id not in world.fired()
    break_promise(world)
    assert check_id in world.fired()


def test_nothing_fires_in_a_cluster_that_serves() -> None:
    assert not World().fired()
