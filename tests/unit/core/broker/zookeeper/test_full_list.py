"""LeaderAndIsr requests that are a list of all replicas, and the strays that such a list reveals (KIP-550)."""

import pytest

from laststand.emulator.core.broker.zookeeper.full_list import LocalLog, listed, names_all_replicas, strays_of
from laststand.emulator.core.types import BrokerId, LeaderEpoch, NodeId, PartitionEpoch, TopicId, TopicPartition
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch

ORDERS = [TopicPartition("orders", number) for number in range(5)]
OLD, NEW = TopicId("old"), TopicId("new")


def request(
    *partitions: control_messages.LeaderAndIsrPartition,
    is_complete: bool = False,
    is_kraft_controller: bool = False,
    request_type: control_messages.LeaderAndIsrType = control_messages.LeaderAndIsrType.UNKNOWN,
) -> control_messages.LeaderAndIsrRequest:
    return control_messages.LeaderAndIsrRequest(
        controller_id=BrokerId(NodeId(1)),
        controller_epoch=ControllerEpoch(1),
        partitions=partitions,
        contains_all_replicas=is_complete,
        is_kraft_controller=is_kraft_controller,
        request_type=request_type,
    )


@pytest.mark.parametrize(
    ("believes_kip_550", "is_complete", "is_taken"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_the_field_of_kip_550_is_believed_where_the_rule_is_on(
    *, believes_kip_550: bool, is_complete: bool, is_taken: bool
) -> None:
    sent = request(is_complete=is_complete)
    assert names_all_replicas(sent, believes_kip_550=believes_kip_550, is_migrating=False) is is_taken


@pytest.mark.parametrize(
    ("is_migrating", "is_kraft_controller", "request_type", "is_taken"),
    [
        (True, True, control_messages.LeaderAndIsrType.FULL, True),
        (False, True, control_messages.LeaderAndIsrType.FULL, False),
        (True, False, control_messages.LeaderAndIsrType.FULL, False),
        (True, True, control_messages.LeaderAndIsrType.INCREMENTAL, False),
        (True, True, control_messages.LeaderAndIsrType.UNKNOWN, False),
    ],
)
def test_kafka_believes_a_full_request_of_a_kraft_controller_while_it_migrates(
    *, is_migrating: bool, is_kraft_controller: bool, request_type: control_messages.LeaderAndIsrType, is_taken: bool
) -> None:
    sent = request(is_kraft_controller=is_kraft_controller, request_type=request_type)
    assert names_all_replicas(sent, believes_kip_550=False, is_migrating=is_migrating) is is_taken


def test_a_request_lists_its_partitions_with_the_ids_of_their_topics() -> None:
    leader = BrokerId(NodeId(1))
    first, second = (
        control_messages.LeaderAndIsrPartition(
            name=name,
            controller_epoch=ControllerEpoch(1),
            leader=leader,
            leader_epoch=LeaderEpoch(0),
            isr=(leader,),
            partition_epoch=PartitionEpoch(0),
            replicas=(leader,),
            topic_id=topic_id,
        )
        for name, topic_id in ((ORDERS[0], OLD), (ORDERS[1], None))
    )
    assert listed(request(first, second)) == {ORDERS[0]: OLD, ORDERS[1]: None}


def test_a_stray_is_not_listed_or_is_of_another_topic_of_that_name() -> None:
    logs = [LocalLog(name=name, topic_id=OLD) for name in ORDERS[:4]] + [LocalLog(name=ORDERS[4], topic_id=None)]
    wanted = {ORDERS[1]: NEW, ORDERS[2]: OLD, ORDERS[3]: None, ORDERS[4]: NEW}
    assert strays_of(logs, wanted) == (ORDERS[0], ORDERS[1])


def test_a_stray_that_is_on_its_way_to_another_directory_is_named_once() -> None:
    assert strays_of([LocalLog(name=ORDERS[0], topic_id=OLD)] * 2, {}) == (ORDERS[0],)
