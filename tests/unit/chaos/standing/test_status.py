"""The status of a standing cluster: what a committed state means by the rules of its era."""

import pytest

from laststand.chaos.standing.status import partition_status
from laststand.emulator.core.eras import era_rules
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.types import BrokerId, LeaderEpoch, NodeId, PartitionEpoch, TopicId, TopicPartition

ORDERS = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("era", "expected"), [("kafka-0.11", 3), ("kafka-3.2-zk", 3), ("kafka-3.9", 2), ("kip-966", 2)]
)
def test_min_isr_is_capped_by_the_replicas_since_kafka_3_7(era: str, expected: int) -> None:
    both = (BrokerId(NodeId(0)), BrokerId(NodeId(1)))
    state = PartitionState(
        topic_id=TopicId("t"),
        replicas=both,
        isr=both,
        leader=both[0],
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
    )
    properties = node_properties({"min.insync.replicas": "3"})
    status = partition_status(ORDERS, state, MetadataImage(), properties, era_rules(era))
    assert status.min_insync_replicas == expected
    assert status.is_under_min_isr is (expected > len(both))
