"""Each check of a ZooKeeper cluster fires where somebody breaks its promise, and holds where nobody does."""

from collections.abc import Callable
from typing import Final, cast

import msgspec
import pytest

from laststand.emulator.core import events, messages
from laststand.emulator.core.broker.zookeeper.broker import ZooKeeperBroker
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    IsrAnswer,
    LeaderEpoch,
    LeaderRecoveryState,
    LogDeletedReason,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages, operations
from laststand.emulator.core.zookeeper.controller.term import Term
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch, NodeVersion
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import (
    LeaderAndIsr,
    PartitionLeadership,
    StateFormat,
    decode_state,
    encode_state,
)
from laststand.emulator.core.zookeeper.nodes.small_nodes import encode_controller
from laststand.emulator.core.zookeeper.rules import AlterIsrChecks, ZooKeeperRules
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.zookeeper.cluster import ZooKeeperCluster
from laststand.emulator.simulator.zookeeper.nodes import ZooKeeperBrokerNode

ORDERS: Final = TopicPartition("orders", 0)
ZERO, ONE, TWO = (BrokerId(NodeId(number)) for number in range(3))
_PLAN: Final = """
cluster brokers=3 era={era}
topic orders replicas=(0,1,2) min.insync.replicas=2
"""
_CAUSE: Final = CauseId("test")


class World:
    """A cluster that serves one partition, and somebody who writes into its ZooKeeper."""

    def __init__(self, era: str = "kafka-3.9-zk") -> None:
        self.simulation = Simulation(parse_plan(_PLAN.format(era=era)))
        self.simulation.begin()
        cluster = self.simulation.cluster
        assert isinstance(cluster, ZooKeeperCluster)
        self.cluster = cluster
        self.cluster.run(500)
        self.store = cluster.zookeeper_node.store
        self._session = self.store.server.open_session(timeout_ms=1 << 40, now_ms=0)

    def write(self, *steps: operations.Step) -> None:
        """Writes past everybody; the events go to the oracle as from the server."""
        self.store.server.execute(self._session, steps)
        for event in self.store.new_events(cause_id=_CAUSE):
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
        self.write(operations.SetData(path=paths.state_node(ORDERS), data=data, version=None))

    def write_in_session_of(self, broker_id: BrokerId, leader_and_isr: LeaderAndIsr) -> None:
        """Writes a decision as if a broker's process did."""
        found = msgspec.structs.replace(self.decided(), leader_and_isr=leader_and_isr)
        core = cast(ZooKeeperBrokerNode, self.cluster.nodes[broker_id]).process_core
        assert core is not None
        assert core.client.session_id is not None
        own, self._session = self._session, core.client.session_id
        self.decide(found)
        self._session = own

    def ask(self, broker_id: BrokerId, request: object) -> None:
        """Has a broker take a request, and waits until it has acted on it."""
        self.cluster.wire.ask_past_links(broker_id, cast(messages.Request, request), cause_id=_CAUSE)
        self.cluster.run(50)

    def broker(self, broker_id: BrokerId) -> ZooKeeperBroker:
        """Returns a broker's core."""
        broker = self.cluster.nodes[broker_id].broker
        assert isinstance(broker, ZooKeeperBroker)
        return broker

    def term(self) -> Term:
        """Returns what the controller knows."""
        term = self.cluster.term
        assert term is not None
        return term

    def fired(self) -> set[str]:
        """Returns the checks that fired, those included that a healed cluster does not come to."""
        oracle = self.simulation.oracle
        oracle.scan()
        return {alarm.check_id for alarm in oracle.alarms} | {check_id for check_id, _, _ in oracle.missing()}


def _stale_cache(world: World) -> None:
    del world.term().context.leadership[ORDERS]


def _forgotten_epoch(world: World) -> None:
    world.fired()
    world.broker(ONE).fence.controller_epoch = ControllerEpoch(0)


def _ahead_of_a_member(world: World) -> None:
    state = world.cluster.state(ORDERS)
    assert state is not None
    assert state.leader is not None
    event = events.HighWatermarkAdvanced(
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
    event = events.LogDeleted(
        cause_id=_CAUSE,
        topic=ORDERS.topic,
        partition=ORDERS.partition,
        topic_id=TopicId("id-of-orders"),
        reason=LogDeletedReason.DELETED,
        log_end_offset=Offset(0),
    )
    world.simulation.oracle.checks.metadata.log_deleted(world.cluster.nodes[ONE], ORDERS, event)


def _left_notification(world: World) -> None:
    world.write(operations.Create(path=f"{paths.ISR_CHANGE_NOTIFICATIONS}/{paths.ISR_CHANGE_PREFIX}0000000007"))


def _other_leader_in_an_epoch(world: World) -> None:
    found = world.decided()
    decided = msgspec.structs.replace(found.leader_and_isr, leader=ONE)
    world.decide(msgspec.structs.replace(found, leader_and_isr=decided))


def _late_controller(world: World) -> None:
    world.decide(msgspec.structs.replace(world.decided(), controller_epoch=ControllerEpoch(0)))


def _controller_before(world: World) -> None:
    world.write(operations.SetData(path=paths.CONTROLLER_EPOCH, data=b"7", version=None))
    found = world.decided()
    decided = found.leader_and_isr
    raised = msgspec.structs.replace(decided, leader_epoch=LeaderEpoch(decided.leader_epoch + 1))
    world.decide(msgspec.structs.replace(found, leader_and_isr=raised))


def _two_epochs_at_once(world: World) -> None:
    found = world.decided()
    decided = found.leader_and_isr
    raised = msgspec.structs.replace(decided, leader_epoch=LeaderEpoch(decided.leader_epoch + 2))
    world.decide(msgspec.structs.replace(found, leader_and_isr=raised))


def _second_election_in_an_epoch(world: World) -> None:
    world.write(operations.Delete(path=paths.CONTROLLER, version=None))
    world.write(operations.Create(path=paths.CONTROLLER, data=encode_controller(ONE, now_ms=0)))


def _role(world: World, **fields: object) -> control_messages.LeaderAndIsrRequest:
    """Returns what a controller says that has broker 1 follow broker 2 in the next leader epoch."""
    replicas = world.decided().leader_and_isr.isr
    wanted = control_messages.LeaderAndIsrPartition(
        name=ORDERS,
        controller_epoch=ControllerEpoch(1),
        leader=TWO,
        leader_epoch=LeaderEpoch(1),
        isr=replicas,
        partition_epoch=PartitionEpoch(1),
        replicas=replicas,
    )
    request = control_messages.LeaderAndIsrRequest(
        controller_id=ZERO, controller_epoch=ControllerEpoch(1), partitions=(wanted,)
    )
    return msgspec.structs.replace(request, **fields)


def _role_for_a_former_life(world: World) -> None:
    fence = world.broker(ONE).fence
    fence._rules = ZooKeeperRules(control_broker_epoch_check=False)
    world.ask(ONE, _role(world, broker_epoch=BrokerEpoch(1)))


def _role_by_a_controller_that_was_replaced(world: World) -> None:
    world.ask(ONE, _role(world, controller_epoch=ControllerEpoch(7), partitions=()))
    world.broker(ONE).fence.controller_epoch = ControllerEpoch(0)
    world.ask(ONE, _role(world))


def _role_by_nobody(world: World) -> None:
    event = events.BecameFollower(
        cause_id=_CAUSE,
        topic=ORDERS.topic,
        partition=ORDERS.partition,
        topic_id=TopicId("id-of-orders"),
        leader=TWO,
        leader_epoch=LeaderEpoch(1),
        partition_epoch=PartitionEpoch(1),
        log_end_offset=Offset(0),
        high_watermark=Offset(0),
    )
    world.cluster.event_log.write(world.cluster.nodes[ONE], event)


def _wanted(world: World, *isr: BrokerId, **fields: object) -> messages.AlterPartitionRequest:
    """Returns what the leader, broker 0, asks for that wants this ISR."""
    found = world.decided().leader_and_isr
    data = messages.AlterPartitionData(
        topic=ORDERS.topic,
        topic_id=None,
        partition=ORDERS.partition,
        leader_epoch=found.leader_epoch,
        partition_epoch=found.partition_epoch,
        new_isr=tuple(messages.IsrMember(broker_id=each, broker_epoch=None) for each in isr),
    )
    epoch = world.cluster.image.brokers[ZERO].broker_epoch
    request = messages.AlterPartitionRequest(broker_id=ZERO, broker_epoch=epoch, partitions=(data,), api_version=1)
    return msgspec.structs.replace(request, **fields)


def _member_that_shuts_down(world: World) -> None:
    world.term().alter_partition._checks = AlterIsrChecks.KAFKA_3_2
    world.term().context.shutting_down.add(TWO)
    world.ask(ZERO, _wanted(world, ZERO, TWO))


def _sender_of_a_former_life(world: World) -> None:
    alter_partition = world.term().alter_partition
    vars(alter_partition)["handle"] = alter_partition._handle
    world.ask(ZERO, _wanted(world, ZERO, ONE, broker_epoch=BrokerEpoch(1)))


def _recovery_beside_others(world: World) -> None:
    world.term().alter_partition._checks = AlterIsrChecks.KAFKA_2_7
    request = _wanted(world, ZERO, ONE)
    recovering = msgspec.structs.replace(request.partitions[0], leader_recovery_state=LeaderRecoveryState.RECOVERING)
    world.ask(ZERO, msgspec.structs.replace(request, partitions=(recovering,)))


def _isr_that_nobody_asked_for(world: World) -> None:
    found = world.decided()
    world.write_in_session_of(ZERO, msgspec.structs.replace(found.leader_and_isr, isr=(ZERO, ONE)))


def _stranger_in_the_isr(world: World) -> None:
    world.term().alter_partition._checks = AlterIsrChecks.KAFKA_3_3
    world.ask(ZERO, _wanted(world, ONE, TWO))


def _leader_that_misheard(world: World) -> None:
    found = world.decided().leader_and_isr
    event = events.AlterPartitionAnswered(
        cause_id=_CAUSE,
        topic=ORDERS.topic,
        partition=ORDERS.partition,
        topic_id=world.cluster.image.topics[ORDERS.topic],
        error="NONE",
        outcome=IsrAnswer.COMMITTED,
        committed_isr=(ZERO,),
        partition_epoch=found.partition_epoch,
    )
    world.cluster.event_log.write(world.cluster.nodes[ZERO], event)


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
    ("M14", _second_election_in_an_epoch),
    ("Z8", _role_for_a_former_life),
    ("Z8", _role_by_a_controller_that_was_replaced),
    ("Z8", _role_by_nobody),
    ("Z9", _isr_that_nobody_asked_for),
    ("Z9", _sender_of_a_former_life),
    ("Z9", _member_that_shuts_down),
    ("Z9", _recovery_beside_others),
    ("Z9", _leader_that_misheard),
)


@pytest.mark.parametrize(("check_id", "break_promise"), CASES)
def test_it_fires(check_id: str, break_promise: Callable[[World], None]) -> None:
    world = World()
    assert check_id not in world.fired()
    break_promise(world)
    assert check_id in world.fired()


def test_a_leader_of_the_kip_asks_for_replicas_itself_among_them() -> None:
    world = World("kip-550-zk")
    _stranger_in_the_isr(world)
    assert "Z9" in world.fired()


def test_a_leader_writes_its_isr_itself_where_its_protocol_has_it_so() -> None:
    for writer, fired in ((ZERO, set()), (ONE, {"Z9"})):
        world = World("kafka-2.6-zk")
        decided = world.decided().leader_and_isr
        world.write_in_session_of(writer, msgspec.structs.replace(decided, isr=(ZERO, ONE)))
        assert {check_id for check_id in world.fired() if check_id == "Z9"} == fired


def test_nothing_fires_in_a_cluster_that_serves() -> None:
    assert not World().fired()
