"""Topics that appear or grow, as whoever writes their nodes has it."""

from laststand.emulator.core.types import TopicId, TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.store import children_of
from laststand.emulator.core.zookeeper.controller.topic_changes import topic_id_from
from laststand.emulator.core.zookeeper.identifiers import Zxid
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import PartitionLeadership, encode_state
from laststand.emulator.core.zookeeper.nodes.topic import decode_topic
from tests.unit.core.zookeeper.controller.controllers import ORDERS, Cluster, broker, roles

SECOND, THIRD = TopicPartition("orders", 1), TopicPartition("orders", 2)
PAYMENTS = TopicPartition("payments", 0)


def grow(cluster: Cluster, *partitions: tuple[int, ...]) -> None:
    """Writes the node of a topic that has these partitions now."""
    cluster.write(
        operations.SetData(path=paths.topic_node("orders"), data=cluster.topic_data(*partitions), version=None)
    )


def test_partitions_that_are_added_start_and_what_was_assigned_stays() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    cluster.create_topic(3, topic="payments")
    grow(cluster, (1, 2), (3, 2))
    assert cluster.shown(SECOND) == "leader=3 isr=3,2 LE=0 PE=0"
    grow(cluster, (1, 2), (3, 2), (1,))
    assert cluster.shown(THIRD) == "leader=1 isr=1 LE=0 PE=0"
    context = cluster[1].term.context
    assert sorted(context.assignments) == [ORDERS, SECOND, THIRD, PAYMENTS]
    assert context.replicas_of(ORDERS) == (broker(2), broker(3))


def test_partitions_that_are_added_to_a_topic_that_is_being_deleted_do_not_start() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    cluster.lose(3)
    cluster.write(operations.Create(path=paths.delete_topic_node("orders")))
    grow(cluster, (2, 3), (2,))
    assert cluster.server.data(paths.state_node(SECOND)) is None


def test_a_topic_that_is_gone_when_it_is_read_keeps_no_other_from_starting() -> None:
    cluster = Cluster(1, 2)
    cluster[1].is_paused = True
    cluster.create_topic(2)
    cluster.create_topic(2, topic="payments")

    def delete_orders(steps: operations.Steps) -> None:
        if any(isinstance(step, operations.GetData) for step in steps):
            cluster.write(operations.Delete(path=paths.topic_node("orders"), version=None))

    cluster.run(1, cluster[1].term.topics.refresh(), meanwhile=delete_orders)
    assert sorted(cluster[1].term.context.assignments) == [PAYMENTS]


def test_a_partition_that_has_a_state_node_already_keeps_no_other_from_starting() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic(2, topic="payments")
    earlier = cluster.state(PAYMENTS)
    decided = earlier.leader_and_isr.next_epoch(leader=broker(1), isr=(broker(1),))
    leadership = PartitionLeadership(leader_and_isr=decided, controller_epoch=earlier.controller_epoch)
    cluster[1].is_paused = True
    cluster.create_topic(2, others=[(2,)])
    cluster.write(
        operations.Create(path=paths.partitions_node("orders")),
        operations.Create(path=paths.partition_node(ORDERS)),
        operations.Create(
            path=paths.state_node(ORDERS), data=encode_state(leadership, state_format=cluster.era.rules.state_format)
        ),
    )
    cluster[1].is_paused = False
    cluster.settle()
    assert cluster.shown() == "leader=1 isr=1 LE=1 PE=0"
    assert cluster.shown(SECOND) == "leader=2 isr=2 LE=0 PE=0"
    assert "orders-1 leader=2 LE=0" in roles(cluster[2])


def test_a_topic_that_was_made_without_an_id_gets_one() -> None:
    # KIP-516.
    cluster = Cluster(1, 2)
    cluster.create_topic(2, topic_id=None)
    data, stat = cluster.server.data(paths.topic_node("orders")), cluster.server.stat(paths.topic_node("orders"))
    assert data is not None
    assert stat is not None
    written = decode_topic(data, topic_format=cluster.era.rules.topic_format).topic_id
    assert written == cluster[1].term.context.topic_ids["orders"] == topic_id_from(stat.czxid)


def test_an_id_is_sixteen_bytes_in_base64_without_padding() -> None:
    assert topic_id_from(Zxid(6)) == TopicId("AAAAAAAAAAAAAAAAAAAABg")


def test_a_node_that_is_not_there_has_no_children() -> None:
    assert children_of((operations.OperationFailed(operations.ZooKeeperFailure.NO_NODE),), paths.TOPICS) == ()
