"""Reassignments: who is told that it is new, who leads afterwards, and what takes one up again."""

import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.core.zookeeper import control_messages
from tests.unit.core.zookeeper.controller.controllers import (
    ORDERS,
    Cluster,
    alter,
    broker,
    isr_change,
    reassign,
)


def test_a_replica_that_is_added_gets_is_new_with_the_epoch_and_when_it_starts() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2)
    reassign(cluster, 1, 3)
    told = [
        request.partitions for request in cluster[3].told if isinstance(request, control_messages.LeaderAndIsrRequest)
    ]
    assert [(role.leader_epoch, role.is_new) for partitions in told for role in partitions] == [(1, True), (1, True)]
    told = [
        request.partitions for request in cluster[2].told if isinstance(request, control_messages.LeaderAndIsrRequest)
    ]
    assert [role.is_new for partitions in told for role in partitions] == [True, False]


def test_a_leader_that_is_a_target_stays_the_leader() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 1)
    reassign(cluster, 3, 2)
    alter(cluster, isr_change(cluster, 2, 1, 3, sender=2))
    assert cluster.assignment().replicas == (broker(3), broker(2))
    assert cluster.state().leader_and_isr.leader == broker(2)


@pytest.mark.parametrize("target", [(0, 1), (1, 0)])
def test_a_partition_without_a_state_node_may_move_to_all_brokers_and_waits_there(target: tuple[int, int]) -> None:
    cluster = Cluster(1, 0)
    cluster.create_topic(4)
    assert reassign(cluster, *target) is ErrorCode.NONE
    assert cluster.assignment().target_replicas == tuple(map(broker, target))
    assert cluster.assignment().is_being_reassigned


def test_an_answer_about_one_partition_ends_the_reassignment_of_another() -> None:
    other = TopicPartition("orders", 1)
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2, others=[(1, 2)])
    reassign(cluster, 1, 3, name=other)
    staying, moving = isr_change(cluster, 1), isr_change(cluster, 1, 2, 3, name=other)
    both = type(moving)(
        broker_id=moving.broker_id,
        broker_epoch=moving.broker_epoch,
        partitions=(*staying.partitions, *moving.partitions),
    )
    response = cluster.ask(1, both)
    assert isinstance(response, messages.AlterPartitionResponse)
    assert [result.error for result in response.partitions] == [ErrorCode.NONE, ErrorCode.NONE]
    assert cluster.assignment(other).replicas == (broker(1), broker(3))
    assert not cluster.assignment(other).is_being_reassigned


def test_a_broker_that_is_no_target_takes_up_no_reassignment() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2)
    reassign(cluster, 1, 3)
    before = cluster.shown()
    cluster.start(4)
    assert cluster.shown() == before
    assert cluster.assignment(ORDERS).is_being_reassigned
