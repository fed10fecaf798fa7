"""The controller's copy of the cluster: who can serve, and what is left of a topic that is gone."""

import pytest

from laststand.emulator.core.types import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from laststand.emulator.core.zookeeper.controller.context import (
    ControllerContext,
    PartitionPhase,
    RegisteredBroker,
    Replica,
    ReplicaPhase,
)
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.nodes.partition_state import LeaderAndIsr, PartitionLeadership
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment
from tests.unit.core.zookeeper.controller.controllers import ORDERS, TOPIC_ID, broker

PAYMENTS = TopicPartition("payments", 0)
ONE = broker(1)


@pytest.mark.parametrize(
    ("broker_id", "partition", "is_online", "is_online_or_shutting_down"),
    [
        (broker(1), ORDERS, True, True),
        (broker(1), PAYMENTS, False, False),  # in a directory that failed
        (broker(2), ORDERS, False, True),  # shutting down
        (broker(3), ORDERS, False, False),  # not registered
    ],
)
def test_a_replica_can_serve_where_its_broker_is_live_and_its_directory_works(
    broker_id: BrokerId, partition: TopicPartition, *, is_online: bool, is_online_or_shutting_down: bool
) -> None:
    context = ControllerContext()
    context.brokers = {broker(number): RegisteredBroker(broker_epoch=BrokerEpoch(number)) for number in (1, 2)}
    context.shutting_down = {broker(2)}
    context.offline_replicas = {broker(1): frozenset({PAYMENTS})}
    assert context.is_online(broker_id, partition) is is_online
    assert context.is_online_or_shutting_down(broker_id, partition) is is_online_or_shutting_down


def _add(context: ControllerContext, name: TopicPartition) -> None:
    leader_and_isr = LeaderAndIsr(leader=ONE, leader_epoch=LeaderEpoch(0), isr=(ONE,))
    context.topic_ids[name.topic] = TOPIC_ID
    context.assignments[name] = ReplicaAssignment(replicas=(ONE,))
    context.leadership[name] = PartitionLeadership(leader_and_isr=leader_and_isr, controller_epoch=ControllerEpoch(1))
    context.reassigning[name] = None
    context.partition_phases[name] = PartitionPhase.ONLINE
    context.replica_phases[Replica(name, ONE)] = ReplicaPhase.ONLINE
    context.topics_to_delete[name.topic] = None
    context.topics_with_deletion_started.add(name.topic)
    context.topics_ineligible_for_deletion.add(name.topic)


def test_nothing_is_left_of_a_topic_that_is_forgotten_and_of_the_others_everything() -> None:
    context, expected = ControllerContext(), ControllerContext()
    for name in (ORDERS, PAYMENTS):
        _add(context, name)
    _add(expected, PAYMENTS)
    context.forget_topic("orders")
    assert vars(context) == vars(expected)


def test_a_topic_of_which_little_is_known_is_forgotten_just_so() -> None:
    context = ControllerContext()
    context.assignments[ORDERS] = ReplicaAssignment(replicas=(ONE,))
    context.forget_topic("orders")
    context.forget_topic("payments")
    assert vars(context) == vars(ControllerContext())
