"""Answers of a broker to a client's metadata request (Kafka's ``KRaftMetadataCache.getTopicMetadata``)."""

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.metadata_requests import metadata
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import BrokerId, LeaderEpoch, NodeId, PartitionEpoch, TopicId, TopicPartition
from tests.unit.core.broker.hosting import FIRST, OWN, SECOND, Hosting

CONTROLLER = NodeId(100)


def state(topic_id: TopicId, leader: BrokerId | None) -> PartitionState:
    return PartitionState(
        topic_id=topic_id,
        replicas=(FIRST, OWN),
        isr=(OWN,),
        leader=leader,
        leader_epoch=LeaderEpoch(4),
        partition_epoch=PartitionEpoch(9),
    )


def cluster() -> Hosting:
    """Brokers 0 and 1 live, 2 is fenced; orders-0 is led by 0, orders-1 by nobody, payments-0 by the fenced one."""
    hosting = Hosting()
    hosting.register(SECOND, fenced=True)
    orders, payments = TopicId("id-1"), TopicId("id-2")
    hosting.image.topics.update({"payments": payments, "orders": orders})
    hosting.image.partition_counts.update({"orders": 2, "payments": 1})
    for name, topic_id, leader in (("orders", orders, OWN), ("orders", orders, None), ("payments", payments, SECOND)):
        index = 1 if leader is None else 0
        hosting.image.partitions[TopicPartition(name, index)] = state(topic_id, leader)
    return hosting


def answered(index: int, error: ErrorCode, leader: BrokerId | None) -> messages.MetadataPartition:
    return messages.MetadataPartition(
        partition=index, error=error, leader=leader, leader_epoch=LeaderEpoch(4), replicas=(FIRST, OWN), isr=(OWN,)
    )


ORDERS = messages.MetadataTopic(
    name="orders",
    error=ErrorCode.NONE,
    topic_id=TopicId("id-1"),
    partitions=(answered(0, ErrorCode.NONE, OWN), answered(1, ErrorCode.LEADER_NOT_AVAILABLE, None)),
)
PAYMENTS = messages.MetadataTopic(
    name="payments",
    error=ErrorCode.NONE,
    topic_id=TopicId("id-2"),
    partitions=(answered(0, ErrorCode.LEADER_NOT_AVAILABLE, None),),
)


def test_all_topics_are_reported_by_name_with_the_brokers_that_live() -> None:
    answer = metadata(cluster().image, messages.MetadataRequest(topics=()), CONTROLLER)
    assert answer.brokers == (OWN, FIRST)
    assert answer.controller_id == CONTROLLER
    assert answer.topics == (ORDERS, PAYMENTS)


def test_a_topic_that_does_not_exist_is_answered_in_its_place() -> None:
    answer = metadata(cluster().image, messages.MetadataRequest(topics=("orders", "missing")), CONTROLLER)
    missing = messages.MetadataTopic(
        name="missing", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic_id=None, partitions=()
    )
    assert answer.topics == (ORDERS, missing)
