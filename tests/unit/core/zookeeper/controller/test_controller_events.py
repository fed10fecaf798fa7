"""An elected controller at work: broker changes, ISR changes, reassignments, deletions, and what it tells brokers."""

import pytest

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, LeaderRecoveryState
from laststand.emulator.core.zookeeper import control_messages, operations
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import encode_isr_notification
from tests.unit.core.zookeeper.controller.controllers import (
    ORDERS,
    Cluster,
    alter,
    broker,
    deletions,
    isr_change,
    reassign,
    roles,
)

# --- Brokers ------------------------------------------------------------------------------------------------------


def test_a_leader_that_dies_costs_one_write_at_a_running_controller() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3, 1)
    cluster.kill(2)
    cluster.expire(2)
    cluster.settle()
    assert cluster.shown() == "leader=3 isr=3,1 LE=1 PE=1"


def test_a_lost_answer_to_an_isr_write_is_read_again_and_found_written() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2, 3)
    cluster.kill(3)
    cluster[1].loses_next_answer = True
    cluster.expire(3)
    cluster.settle()
    # The second try is refused, the node read, and 3 is no member any more.
    assert cluster.shown() == "leader=1 isr=1,2 LE=1 PE=1"
    assert cluster[1].term.context.leadership[ORDERS].leader_and_isr == cluster.state().leader_and_isr


def test_a_lost_answer_to_an_election_costs_one_more_epoch() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3, 1)
    cluster.kill(2)
    cluster[1].loses_next_answer = True
    cluster.expire(2)
    cluster.settle()
    assert cluster.shown() == "leader=3 isr=3,1 LE=2 PE=2"


def test_a_request_is_repeated_until_it_is_answered_and_forgotten_with_its_broker() -> None:
    cluster = Cluster(1, 2, 3)
    cluster[3].is_silent = True
    cluster.create_topic(1, 3)
    assert roles(cluster[3]) == []
    assert cluster[1].controller.channels.queued(broker(3)) != ()
    cluster[3].is_silent = False
    cluster.advance(100)
    assert roles(cluster[3])[0] == "orders-0 leader=1 LE=0"
    cluster[3].is_silent = True
    cluster.ask(1, admin_messages.ElectLeadersRequest(election_type=1, partitions=None))
    cluster.kill(3)
    cluster.expire(3)
    cluster.settle()
    assert cluster[1].controller.channels.queued(broker(3)) == ()


def test_controlled_shutdown_moves_what_it_can_and_names_the_rest() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    asked = control_messages.ControlledShutdownRequest(
        broker_id=broker(2), broker_epoch=BrokerEpoch(cluster[2].broker_epochs[-1])
    )
    assert cluster.ask(1, asked) == control_messages.ControlledShutdownResponse(error=ErrorCode.NONE)
    assert cluster.shown() == "leader=3 isr=3 LE=1 PE=1"
    asked = control_messages.ControlledShutdownRequest(broker_id=broker(3))
    assert cluster.ask(1, asked) == control_messages.ControlledShutdownResponse(
        error=ErrorCode.NONE, remaining=(ORDERS,)
    )
    assert cluster.ask(2, asked) == control_messages.ControlledShutdownResponse(error=ErrorCode.STALE_CONTROLLER_EPOCH)


# --- ISR changes --------------------------------------------------------------------------------------------------


def test_an_isr_change_is_written_at_the_version_named_and_published_to_clients_only() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2, 3)
    told = len(roles(cluster[2]))
    assert alter(cluster, isr_change(cluster, 1, 2)) is ErrorCode.NONE
    assert cluster.shown() == "leader=1 isr=1,2 LE=0 PE=1"
    assert len(roles(cluster[2])) == told


def test_a_lost_answer_leaves_the_copy_old_until_the_next_election() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2, 3)
    change = isr_change(cluster, 1, 2)
    cluster[1].loses_next_answer = True
    # The first try was written, the second is refused: and what is refused is not read again.
    assert alter(cluster, change) is ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.shown() == "leader=1 isr=1,2 LE=0 PE=1"
    assert cluster[1].term.context.leadership[ORDERS].leader_and_isr.partition_epoch == 0
    assert alter(cluster, change) is ErrorCode.INVALID_UPDATE_VERSION
    assert alter(cluster, isr_change(cluster, 1, 2, 3)) is ErrorCode.NOT_CONTROLLER
    cluster.kill(3)
    cluster.expire(3)
    cluster.settle()
    assert cluster[1].term.context.leadership[ORDERS].leader_and_isr == cluster.state().leader_and_isr


def test_with_the_kip_the_roles_that_follow_settle_the_isr_and_the_answer_does_not() -> None:
    cluster = Cluster(1, 2, 3, era="kip-550-zk")
    cluster.create_topic(1, 2, 3)
    cluster[1].told.clear()
    response = cluster.ask(1, isr_change(cluster, 1, 2))
    assert isinstance(response, messages.AlterPartitionResponse)
    assert response.partitions[0].error is ErrorCode.NONE
    assert response.partitions[0].isr == ()
    (request,) = [request for request in cluster[1].told if isinstance(request, control_messages.LeaderAndIsrRequest)]
    assert [role.isr for role in request.partitions] == [(broker(1), broker(2))]
    assert request.partitions[0].partition_epoch == 1


def test_with_the_kip_a_change_that_could_not_be_written_is_followed_by_roles_with_the_new_version() -> None:
    cluster = Cluster(1, 2, 3, era="kip-550-zk")
    cluster.create_topic(1, 2, 3)
    change = isr_change(cluster, 1, 2)
    cluster.raise_version(paths.state_node(ORDERS))
    cluster[1].told.clear()
    assert alter(cluster, change) is ErrorCode.NONE, "it was acknowledged before"
    (request,) = [request for request in cluster[1].told if isinstance(request, control_messages.LeaderAndIsrRequest)]
    assert request.partitions[0].partition_epoch == 1


def test_with_the_kip_only_the_leader_may_ask_and_only_for_replicas() -> None:
    cluster = Cluster(1, 2, 3, era="kip-550-zk")
    cluster.create_topic(1, 2)
    assert alter(cluster, isr_change(cluster, 2, 1, sender=2)) is ErrorCode.INVALID_REQUEST
    assert alter(cluster, isr_change(cluster, 1, 3)) is ErrorCode.INVALID_REQUEST
    assert alter(cluster, isr_change(cluster, 2)) is ErrorCode.INVALID_REQUEST
    assert alter(cluster, isr_change(cluster, 1)) is ErrorCode.NONE


def notify(cluster: Cluster) -> None:
    """Leaves the notification of a leader that wrote its ISR itself."""
    notification = operations.Create(
        path=f"{paths.ISR_CHANGE_NOTIFICATIONS}/{paths.ISR_CHANGE_PREFIX}",
        data=encode_isr_notification([ORDERS]),
        kind=operations.NodeKind.SEQUENTIAL,
    )
    cluster.write(notification)


@pytest.mark.parametrize("era", ["kafka-2.6-zk", "kafka-3.9-zk"])
def test_a_leaders_own_write_is_believed_once_it_is_notified(era: str) -> None:
    """Also by a controller that alters ISRs: other brokers may be older."""
    cluster = Cluster(1, 2, 3, era=era)
    cluster.create_topic(1, 2, 3)
    for version in (1, 2):
        cluster.raise_version(paths.state_node(ORDERS))
        assert cluster[1].term.context.leadership[ORDERS].leader_and_isr.partition_epoch == version - 1
        notify(cluster)
        assert cluster[1].term.context.leadership[ORDERS].leader_and_isr.partition_epoch == version
        assert cluster.server.children(paths.ISR_CHANGE_NOTIFICATIONS) == ()


def test_with_the_kip_a_controller_that_alters_isrs_gets_no_notifications() -> None:
    cluster = Cluster(1, 2, era="kip-550-zk")
    notify(cluster)
    assert len(cluster.server.children(paths.ISR_CHANGE_NOTIFICATIONS)) == 1


# --- Reassignment and deletion ------------------------------------------------------------------------------------


def test_a_reassignment_ends_when_its_targets_are_in_sync() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2)
    assert reassign(cluster, 1, 3) is ErrorCode.NONE
    assert cluster.assignment().replicas == (broker(1), broker(3), broker(2))
    assert alter(cluster, isr_change(cluster, 1, 2, 3)) is ErrorCode.NONE
    assert cluster.assignment().replicas == (broker(1), broker(3))
    assert not cluster.assignment().is_being_reassigned
    assert cluster.state().leader_and_isr.isr == (broker(1), broker(3))
    assert deletions(cluster[2]) == ["orders-0"]
    assert cluster[1].term.context.reassigning == {}


def test_a_reassignment_ends_by_a_watch_where_leaders_write_themselves() -> None:
    cluster = Cluster(1, 2, 3, era="kafka-2.6-zk")
    cluster.create_topic(1, 2)
    assert reassign(cluster, 1, 3) is ErrorCode.NONE
    data = cluster.server.data(paths.state_node(ORDERS))
    assert data is not None
    cluster.raise_version(paths.state_node(ORDERS))
    cluster.settle()
    assert cluster.assignment().is_being_reassigned  # watched on
    cluster.write_state(data.replace(b"[1,2]", b"[1,2,3]"))
    assert cluster.assignment().replicas == (broker(1), broker(3))


def test_a_replica_that_is_removed_while_its_broker_is_down_gets_no_request() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2, 3)
    cluster.kill(3)
    cluster.expire(3)
    cluster.settle()
    assert reassign(cluster, 1, 2) is ErrorCode.NONE
    assert cluster.assignment().replicas == (broker(1), broker(2))
    again = cluster.start(3)
    assert roles(again) == []
    assert deletions(again) == []


def test_with_the_kip_a_broker_receives_that_it_holds_nothing() -> None:
    cluster = Cluster(1, 2, 3, era="kip-550-zk")
    cluster.create_topic(1, 2, 3)
    cluster.kill(3)
    cluster.expire(3)
    cluster.settle()
    reassign(cluster, 1, 2)
    again = cluster.start(3)
    (request,) = [request for request in again.told if isinstance(request, control_messages.LeaderAndIsrRequest)]
    assert request.contains_all_replicas
    assert request.partitions == ()


def test_with_the_kip_every_broker_gets_its_list_from_a_new_controller() -> None:
    cluster = Cluster(1, 2, 3, era="kip-550-zk")
    cluster.create_topic(2, 3)
    cluster[3].told.clear()
    cluster.kill(1)
    cluster.expire(1)
    cluster.settle()
    complete = [
        request
        for request in cluster[3].told
        if isinstance(request, control_messages.LeaderAndIsrRequest) and request.contains_all_replicas
    ]
    assert [[str(role.name) for role in request.partitions] for request in complete] == [["orders-0"]]


def test_a_topic_is_deleted_with_its_nodes_once_all_replicas_are() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2)
    cluster.write(operations.Create(path=paths.delete_topic_node("orders")))
    assert deletions(cluster[1]) == deletions(cluster[2]) == ["orders-0"]
    assert cluster.server.children(paths.TOPICS) == ()
    assert cluster.server.children(paths.DELETE_TOPICS) == ()
    assert cluster.server.children(paths.TOPIC_CONFIGS) == ()
    assert cluster[1].term.context.assignments == {}


def test_a_deletion_waits_for_a_broker_that_is_down() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2)
    cluster.kill(2)
    cluster.expire(2)
    cluster.settle()
    cluster.write(operations.Create(path=paths.delete_topic_node("orders")))
    assert cluster.server.children(paths.TOPICS) == ("orders",)
    again = cluster.start(2)
    assert deletions(again) == ["orders-0"]
    assert cluster.server.children(paths.TOPICS) == ()


def test_a_request_to_delete_what_is_not_there_is_removed() -> None:
    cluster = Cluster(1)
    cluster.write(operations.Create(path=paths.delete_topic_node("nothing")))
    assert cluster.server.children(paths.DELETE_TOPICS) == ()


# --- Elections on request -----------------------------------------------------------------------------------------


def test_an_unclean_election_is_stored_and_sent_to_the_leader() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    alter(cluster, isr_change(cluster, 2, sender=2))
    cluster.kill(2)
    cluster.expire(2)
    cluster.settle()
    assert cluster.state().leader_and_isr.leader is None
    response = cluster.ask(1, admin_messages.ElectLeadersRequest(election_type=1, partitions=None))
    assert isinstance(response, admin_messages.ElectLeadersResponse)
    assert [result.error for result in response.partitions] == [ErrorCode.NONE]
    decided = cluster.state().leader_and_isr
    assert (decided.leader, decided.isr) == (broker(3), (broker(3),))
    assert decided.leader_recovery_state is LeaderRecoveryState.RECOVERING
    (request,) = [request for request in cluster[3].told if isinstance(request, control_messages.LeaderAndIsrRequest)][
        -1:
    ]
    assert request.partitions[0].leader_recovery_state is LeaderRecoveryState.RECOVERING


def test_the_mark_of_an_unclean_election_is_lost_with_a_controller_of_an_old_release() -> None:
    cluster = Cluster(1, 2, 3, era="kafka-3.1-zk")
    cluster.create_topic(2, 3, unclean=True)
    alter(cluster, isr_change(cluster, 2, sender=2))
    cluster.kill(2)
    cluster.expire(2)
    cluster.settle()
    decided = cluster.state().leader_and_isr
    assert decided.leader == broker(3)
    assert decided.leader_recovery_state is LeaderRecoveryState.RECOVERED
