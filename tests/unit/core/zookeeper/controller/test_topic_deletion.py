"""Deletions: what a new controller finds, what waits and for whom, and which answers count."""

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.zookeeper import control_messages, operations
from laststand.emulator.core.zookeeper.nodes import paths
from tests.unit.core.zookeeper.controller.controllers import (
    ORDERS,
    Cluster,
    broker,
    deletions,
    isr_change,
    reassign,
)


def delete(cluster: Cluster, *topics: str) -> None:
    cluster.write(*(operations.Create(path=paths.delete_topic_node(topic)) for topic in topics))


def topics(cluster: Cluster) -> tuple[str, ...]:
    return cluster.server.children(paths.TOPICS)


def fail_over_with_a_request(cluster: Cluster, *topics: str) -> None:
    """The controller dies; before another one is elected, somebody wants topics to be deleted."""
    cluster.kill(1)
    delete(cluster, *topics)
    cluster.expire(1)
    cluster.settle()
    assert cluster.active() is cluster[2]


# --- Taken over from a predecessor ----------------------------------------------------------------------------------


def test_a_new_controller_ends_what_is_deleted_already_and_begins_with_the_next() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    fail_over_with_a_request(cluster, "already-gone", "orders")
    assert topics(cluster) == ()
    assert cluster.server.children(paths.DELETE_TOPICS) == ()


def test_a_new_controller_waits_for_a_broker_that_is_down_before_it_begins() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    cluster.lose(3)
    fail_over_with_a_request(cluster, "orders")
    assert deletions(cluster[2]) == []
    cluster.start(3)
    assert topics(cluster) == ()


def test_a_new_controller_waits_for_a_reassignment_before_it_begins() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2)
    reassign(cluster, 3)
    fail_over_with_a_request(cluster, "orders")
    assert deletions(cluster[2]) == []
    cluster.ask(2, isr_change(cluster, 2, 3, sender=2))
    assert topics(cluster) == ()


# --- The queue ------------------------------------------------------------------------------------------------------


def test_topics_wait_in_the_queue_together() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    cluster.create_topic(2, 3, topic="payments")
    cluster.lose(3)
    delete(cluster, "orders")
    delete(cluster, "payments")
    assert topics(cluster) == ("orders", "payments")
    cluster.start(3)
    assert topics(cluster) == ()


def test_each_topic_is_held_for_its_own_reassignment() -> None:
    term = Cluster(1)[1].term
    term.context.topics_to_delete = dict.fromkeys(("orders", "payments"))
    for topic in ("orders", "payments", "not-queued"):
        term.deletion.hold_for_reassignment(topic)
    assert term.context.topics_ineligible_for_deletion == {"orders", "payments"}


def test_a_broker_that_only_stopped_a_replica_has_not_deleted_it() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic(2)
    cluster[2].is_silent = True
    delete(cluster, "orders")
    for is_deleted, left in ((False, ("orders",)), (True, ())):
        stopped = control_messages.StopReplicaPartition(
            name=ORDERS, leader_epoch=control_messages.StopReplicaEpoch.DURING_DELETE, is_deleted=is_deleted
        )
        request = control_messages.StopReplicaRequest(
            controller_id=broker(1), controller_epoch=cluster[1].term.context.controller_epoch, partitions=(stopped,)
        )
        response = control_messages.StopReplicaResponse(
            error=ErrorCode.NONE, partitions=(control_messages.PartitionError(name=ORDERS, error=ErrorCode.NONE),)
        )
        cluster.run(1, cluster[1].term.deletion.handle_answer(broker(2), request, response))
        assert topics(cluster) == left
