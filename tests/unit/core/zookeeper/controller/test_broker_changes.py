"""Brokers that come, go, ask to be let go, or came back before anybody looked, and log directories that fail."""

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, TopicPartition
from laststand.emulator.core.zookeeper import control_messages, operations
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import encode_log_dir_event
from tests.unit.core.zookeeper.controller.controllers import ORDERS, Cluster, Process, broker, deletions, roles


def metadata(process: Process) -> list[control_messages.UpdateMetadataRequest]:
    return [request for request in process.told if isinstance(request, control_messages.UpdateMetadataRequest)]


def live(process: Process) -> list[int]:
    """Returns which brokers are alive by the latest that a broker has heard."""
    return [each.broker_id for each in metadata(process)[-1].live_brokers]


# --- Come and go ----------------------------------------------------------------------------------------------------


def test_all_brokers_learn_of_a_new_broker_and_its_rack() -> None:
    cluster = Cluster(1, 2)
    cluster.start(3, rack="b")
    assert metadata(cluster[2])[-1].live_brokers[-1] == control_messages.LiveBroker(broker_id=broker(3), rack="b")


def test_all_brokers_learn_of_a_dead_broker_even_if_it_held_nothing() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.lose(3)
    assert live(cluster[2]) == [1, 2]


def test_a_broker_that_only_followed_is_gone_with_the_same_request_that_has_its_isrs() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    cluster[2].told.clear()
    cluster.lose(3)
    (request,) = metadata(cluster[2])
    assert [(partition.name, partition.isr) for partition in request.partitions] == [(ORDERS, (broker(2),))]
    assert live(cluster[2]) == [1, 2]


def test_a_broker_that_came_back_before_anybody_looked_fails_and_starts_and_the_others_stay() -> None:
    # KAFKA-7235.
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    cluster[1].is_paused = True
    cluster.expire(3)
    cluster.settle()
    cluster[2].told.clear()
    cluster[1].is_paused = False
    cluster.settle()
    assert cluster.shown() == "leader=2 isr=2 LE=1 PE=1"
    assert roles(cluster[3])[-1] == "orders-0 leader=2 LE=1"
    assert roles(cluster[2]) == ["orders-0 leader=2 LE=1"]
    assert live(cluster[2]) == [1, 2, 3]


# --- Controlled shutdown (KafkaController.doControlledShutdown) -----------------------------------------------------


def let_go(
    cluster: Cluster, number: int, *, broker_epoch: int | None = None
) -> control_messages.ControlledShutdownResponse:
    """Asks the controller, which broker 1 is, to let a broker go; it names its latest epoch unless another is given."""
    epoch = BrokerEpoch(cluster[number].broker_epochs[-1] if broker_epoch is None else broker_epoch)
    response = cluster.ask(1, control_messages.ControlledShutdownRequest(broker_id=broker(number), broker_epoch=epoch))
    assert isinstance(response, control_messages.ControlledShutdownResponse)
    return response


def test_a_broker_that_is_let_go_stops_to_fetch_and_deletes_nothing() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    assert let_go(cluster, 3).error is ErrorCode.NONE
    stopped = [
        request.partitions for request in cluster[3].told if isinstance(request, control_messages.StopReplicaRequest)
    ]
    assert [partition.name for partitions in stopped for partition in partitions] == [ORDERS, ORDERS]
    assert deletions(cluster[3]) == []


def test_a_former_incarnation_cannot_ask_for_its_successor() -> None:
    cluster = Cluster(1, 2)
    cluster.expire(2)
    cluster.settle()
    assert let_go(cluster, 2, broker_epoch=cluster[2].broker_epochs[0]).error is ErrorCode.STALE_BROKER_EPOCH


def test_the_only_replica_of_a_partition_is_left_alone() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic(2)
    fail_directory(cluster, 2, ORDERS)
    before = cluster.shown()
    assert cluster.state().leader_and_isr.leader is None
    cluster[2].told.clear()
    assert let_go(cluster, 2).error is ErrorCode.NONE
    assert cluster.shown() == before
    assert not any(isinstance(request, control_messages.StopReplicaRequest) for request in cluster[2].told)


def test_a_replica_of_a_topic_that_is_being_deleted_is_left_alone() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    cluster[1].term.context.topics_to_delete["orders"] = None
    assert let_go(cluster, 3).error is ErrorCode.NONE
    assert cluster.shown() == "leader=2 isr=2,3 LE=0 PE=0"


def test_a_partition_without_a_state_node_is_left_alone() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic(3, 4)
    cluster[1].term.context.assignments[ORDERS] = cluster.assignment().reassign_to((broker(2), broker(3)))
    assert let_go(cluster, 2).error is ErrorCode.NONE
    assert not any(isinstance(request, control_messages.StopReplicaRequest) for request in cluster[2].told)


# --- Log directories (KafkaController.processLogDirEventNotification) -----------------------------------------------


def fail_directory(cluster: Cluster, number: int, *names: TopicPartition) -> None:
    """Makes a directory of a broker fail, with everything that it holds."""
    cluster[number].failed_replicas = set(names)
    notification = operations.Create(
        path=f"{paths.LOG_DIR_EVENT_NOTIFICATIONS}/{paths.LOG_DIR_EVENT_PREFIX}",
        data=encode_log_dir_event(broker(number)),
        kind=operations.NodeKind.SEQUENTIAL,
    )
    cluster.write(notification)


def test_replicas_in_a_directory_that_fails_lead_no_more_and_leave_their_isrs_until_it_works_again() -> None:
    second = TopicPartition("orders", 1)
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3, others=[(2, 3)])
    fail_directory(cluster, 2, ORDERS)
    assert [cluster.shown(name) for name in (ORDERS, second)] == [
        "leader=3 isr=3 LE=1 PE=1",
        "leader=2 isr=2,3 LE=0 PE=0",
    ]
    assert not cluster[1].term.context.is_online(broker(2), ORDERS)
    fail_directory(cluster, 2, ORDERS, second)
    assert [cluster.shown(name) for name in (ORDERS, second)] == [
        "leader=3 isr=3 LE=1 PE=1",
        "leader=3 isr=3 LE=1 PE=1",
    ]
    fail_directory(cluster, 2)
    assert cluster[1].term.context.is_online(broker(2), ORDERS)
    assert cluster[1].term.context.is_online(broker(2), second)
