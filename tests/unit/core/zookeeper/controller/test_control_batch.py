"""Control requests of one decision: what they say by protocol version, and what sticks until the batch is closed."""

from typing import Final

import pytest

from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    LeaderRecoveryState,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.context import ControllerContext, RegisteredBroker
from laststand.emulator.core.zookeeper.controller.control_batch import ControlBatch
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol, ibp_level
from laststand.emulator.core.zookeeper.nodes.partition_state import LeaderAndIsr, PartitionLeadership
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS
from tests.unit.core.zookeeper.controller.controllers import ORDERS, TOPIC_ID, broker

TERM: Final = ControllerEpoch(3)
ONE, TWO, THREE = (broker(number) for number in (1, 2, 3))
PAYMENTS: Final = TopicPartition("payments", 0)
MOVING: Final = ReplicaAssignment(replicas=(TWO, THREE, ONE), adding=(TWO,), removing=(ONE,))
RECOVERING: Final = PartitionLeadership(
    leader_and_isr=LeaderAndIsr(
        leader=THREE,
        leader_epoch=LeaderEpoch(5),
        isr=(THREE,),
        leader_recovery_state=LeaderRecoveryState.RECOVERING,
        partition_epoch=PartitionEpoch(7),
    ),
    controller_epoch=TERM,
)


class Batch:
    """The batch of a controller, broker 1, that knows brokers 1 and 2, and a partition on its way to 2."""

    def __init__(self, *, ibp: str = "3.9", era: str = "kafka-3.9-zk") -> None:
        self.context = ControllerContext()
        self.context.controller_epoch = TERM
        self.context.brokers = {
            ONE: RegisteredBroker(broker_epoch=BrokerEpoch(11), rack="a"),
            TWO: RegisteredBroker(broker_epoch=BrokerEpoch(12), rack="b"),
        }
        self.context.topic_ids = {"orders": TOPIC_ID}
        self.context.assignments = {ORDERS: MOVING}
        self.context.leadership = {ORDERS: RECOVERING}
        config = ControllerConfig(
            broker_id=ONE, rules=ZOOKEEPER_ERAS[era].rules, ibp=InterBrokerProtocol(ibp_level(ibp))
        )
        self.batch = ControlBatch(config, self.context)

    def tell_roles(self, *broker_ids: BrokerId, is_new: bool | None = None) -> None:
        leadership, assignment = self.context.leadership[ORDERS], self.context.assignments[ORDERS]
        if is_new is None:
            self.batch.add_leader_and_isr(broker_ids, ORDERS, leadership, assignment)
        else:
            self.batch.add_leader_and_isr(broker_ids, ORDERS, leadership, assignment, is_new=is_new)

    def close(self) -> list[tuple[BrokerId, control_messages.ControlMessage]]:
        self.batch.close()
        sent = [(addressed.broker_id, addressed.request) for addressed in self.batch.outbox]
        self.batch.outbox.clear()
        return sent

    def roles(self) -> tuple[control_messages.LeaderAndIsrPartition, ...]:
        return next(
            request.partitions
            for _, request in self.close()
            if isinstance(request, control_messages.LeaderAndIsrRequest)
        )

    def metadata(self) -> tuple[control_messages.MetadataPartition, ...]:
        self.batch.add_update_metadata((TWO,), self.context.assignments)
        return next(
            request.partitions
            for _, request in self.close()
            if isinstance(request, control_messages.UpdateMetadataRequest)
        )

    def stopped(self) -> list[tuple[control_messages.StopReplicaPartition, ...]]:
        return [
            request.partitions
            for _, request in self.close()
            if isinstance(request, control_messages.StopReplicaRequest)
        ]


@pytest.mark.parametrize(
    ("ibp", "recovery_state", "topic_id"),
    [
        ("3.9", LeaderRecoveryState.RECOVERING, TOPIC_ID),
        ("3.1", LeaderRecoveryState.RECOVERED, TOPIC_ID),
        ("2.8-IV0", LeaderRecoveryState.RECOVERED, None),
    ],
)
def test_a_role_is_the_state_node_and_the_assignment_as_far_as_the_protocol_goes(
    ibp: str, recovery_state: LeaderRecoveryState, topic_id: TopicId | None
) -> None:
    batch = Batch(ibp=ibp)
    batch.tell_roles(TWO)
    assert batch.roles() == (
        control_messages.LeaderAndIsrPartition(
            name=ORDERS,
            controller_epoch=TERM,
            leader=THREE,
            leader_epoch=LeaderEpoch(5),
            isr=(THREE,),
            partition_epoch=PartitionEpoch(7),
            replicas=(TWO, THREE, ONE),
            adding_replicas=(TWO,),
            removing_replicas=(ONE,),
            leader_recovery_state=recovery_state,
            topic_id=topic_id,
        ),
    )


@pytest.mark.parametrize(("ibp", "broker_epoch"), [("2.1", None), ("2.2", BrokerEpoch(12))])
def test_requests_name_the_incarnation_that_they_are_for_since_kip_380(
    ibp: str, broker_epoch: BrokerEpoch | None
) -> None:
    batch = Batch(ibp=ibp)
    batch.tell_roles(TWO)
    batch.batch.add_stop_replica((TWO,), ORDERS, is_deleted=False)
    requests = [request for broker_id, request in batch.close() if broker_id == TWO]
    assert [type(request) for request in requests] == [
        control_messages.LeaderAndIsrRequest,
        control_messages.UpdateMetadataRequest,
        control_messages.StopReplicaRequest,
    ]
    for request in requests:
        assert isinstance(request, control_messages.ControlRequest)
        assert (request.controller_id, request.controller_epoch) == (ONE, TERM)
        assert request.broker_epoch == broker_epoch


def test_a_replica_that_is_new_stays_new_until_the_batch_is_closed() -> None:
    batch = Batch()
    batch.tell_roles(TWO, is_new=True)
    batch.tell_roles(TWO)
    assert [role.is_new for role in batch.roles()] == [True]
    batch.tell_roles(TWO)
    assert [role.is_new for role in batch.roles()] == [False]


# --- UpdateMetadata -------------------------------------------------------------------------------------------------


def test_every_receiver_of_a_batch_learns_the_registered_brokers() -> None:
    batch = Batch()
    batch.batch.add_update_metadata((TWO,), ())
    batch.batch.add_update_metadata((ONE,), ())
    sent = batch.close()
    assert [broker_id for broker_id, _ in sent] == [ONE, TWO]
    for _, request in sent:
        assert isinstance(request, control_messages.UpdateMetadataRequest)
        assert request.live_brokers == (
            control_messages.LiveBroker(broker_id=ONE, rack="a"),
            control_messages.LiveBroker(broker_id=TWO, rack="b"),
        )


def test_clients_learn_the_leader() -> None:
    (partition,) = Batch().metadata()
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (THREE, 5, 7)
    assert partition.offline_replicas == (THREE,)


def test_clients_learn_that_a_partition_has_no_leader() -> None:
    batch = Batch()
    decided = RECOVERING.leader_and_isr.next_epoch(leader=None, isr=(THREE,))
    batch.context.leadership[ORDERS] = PartitionLeadership(leader_and_isr=decided, controller_epoch=TERM)
    (partition,) = batch.metadata()
    assert (partition.leader, partition.leader_epoch) == (control_messages.NoLeaderReason.NONE_ELECTED, 6)


def test_clients_learn_of_the_deletion_of_a_topic_under_meaningless_epochs() -> None:
    batch = Batch()
    batch.context.topics_to_delete["orders"] = None
    (partition,) = batch.metadata()
    assert partition.leader is control_messages.NoLeaderReason.BEING_DELETED
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


# --- StopReplica ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ibp", "groups"),
    [("2.5", [[(PAYMENTS, False)], [(ORDERS, True)]]), ("2.6", [[(ORDERS, True), (PAYMENTS, False)]])],
)
def test_before_kip_570_a_request_deletes_all_that_it_names_or_nothing(
    ibp: str, groups: list[list[tuple[TopicPartition, bool]]]
) -> None:
    batch = Batch(ibp=ibp)
    batch.batch.add_stop_replica((TWO,), ORDERS, is_deleted=True)
    batch.batch.add_stop_replica((TWO,), PAYMENTS, is_deleted=False)
    assert [[(replica.name, replica.is_deleted) for replica in stopped] for stopped in batch.stopped()] == groups


@pytest.mark.parametrize(
    ("ibp", "leader_epoch"),
    [("2.5", control_messages.StopReplicaEpoch.UNKNOWN), ("2.6", LeaderEpoch(5)), ("3.9", LeaderEpoch(5))],
)
def test_a_replica_is_stopped_in_an_epoch_since_kip_570_and_its_deletion_sticks(
    ibp: str, leader_epoch: LeaderEpoch | control_messages.StopReplicaEpoch
) -> None:
    batch = Batch(ibp=ibp)
    batch.batch.add_stop_replica((TWO,), ORDERS, is_deleted=True)
    batch.batch.add_stop_replica((TWO,), ORDERS, is_deleted=False)
    stopped = control_messages.StopReplicaPartition(name=ORDERS, leader_epoch=leader_epoch, is_deleted=True)
    assert batch.stopped() == [(stopped,)]


# --- All replicas of a broker (KIP-550) -----------------------------------------------------------------------------


def full_lists(
    batch: Batch, *broker_ids: BrokerId
) -> dict[BrokerId, tuple[control_messages.LeaderAndIsrPartition, ...]]:
    for broker_id in broker_ids:
        batch.batch.name_all_replicas_to((broker_id,))
    return {
        broker_id: request.partitions
        for broker_id, request in batch.close()
        if isinstance(request, control_messages.LeaderAndIsrRequest) and request.contains_all_replicas
    }


def test_a_full_list_names_what_the_batch_says_nothing_of() -> None:
    batch = Batch(era="kip-550-zk")
    lists = full_lists(batch, ONE, TWO)
    assert [[(role.name, role.leader) for role in lists[broker_id]] for broker_id in (ONE, TWO)] == [
        [(ORDERS, THREE)],
        [(ORDERS, THREE)],
    ]


def test_a_full_list_leaves_alone_what_the_batch_says() -> None:
    batch = Batch(era="kip-550-zk")
    batch.tell_roles(TWO, is_new=True)
    assert [role.is_new for role in full_lists(batch, TWO)[TWO]] == [True]


def test_a_full_list_names_partitions_without_a_state_node_so_that_their_logs_are_no_strays() -> None:
    batch = Batch(era="kip-550-zk")
    batch.context.leadership.clear()
    without_state = control_messages.LeaderAndIsrPartition(
        name=ORDERS,
        controller_epoch=TERM,
        leader=None,
        leader_epoch=LeaderEpoch(-1),
        isr=(),
        partition_epoch=PartitionEpoch(-1),
        replicas=MOVING.replicas,
        topic_id=TOPIC_ID,
    )
    assert full_lists(batch, TWO) == {TWO: (without_state,)}
