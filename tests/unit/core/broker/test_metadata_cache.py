"""What a broker of a ZooKeeper cluster knows from UpdateMetadata (Kafka's ``ZkMetadataCache``)."""

from emulator.core.broker.metadata_cache import MetadataCache
from emulator.core.broker.metadata_requests import metadata
from emulator.core.control_messages import LiveBroker, MetadataPartition, NoLeaderReason, UpdateMetadataRequest
from emulator.core.messages import MetadataRequest
from emulator.core.types import BrokerEpoch, BrokerId, LeaderEpoch, NodeId, PartitionEpoch, TopicPartition
from emulator.core.zookeeper.identifiers import ControllerEpoch
from emulator.core.zookeeper_rules import ZooKeeperRules

LEADER = BrokerId(NodeId(1))


def told(cache: MetadataCache, *partitions: int, leader: BrokerId | NoLeaderReason = LEADER) -> None:
    cache.update(
        UpdateMetadataRequest(
            controller_id=LEADER,
            controller_epoch=ControllerEpoch(1),
            broker_epoch=BrokerEpoch(1),
            live_brokers=(LiveBroker(broker_id=LEADER),),
            partitions=tuple(
                MetadataPartition(
                    name=TopicPartition("orders", partition),
                    controller_epoch=ControllerEpoch(1),
                    leader=leader,
                    leader_epoch=LeaderEpoch(0),
                    isr=(LEADER,),
                    partition_epoch=PartitionEpoch(0),
                    replicas=(LEADER,),
                )
                for partition in partitions
            ),
        )
    )


def answered(cache: MetadataCache) -> list[int]:
    (topic,) = metadata(cache.image, MetadataRequest(topics=("orders",)), LEADER).topics
    return [partition.partition for partition in topic.partitions]


def test_of_a_topic_it_knows_the_partitions_that_it_was_told_of() -> None:
    cache = MetadataCache(ZooKeeperRules())
    told(cache, 1)
    assert answered(cache) == [1]
    told(cache, 3)
    assert answered(cache) == [1, 3]
    told(cache, 0, 2)
    assert answered(cache) == [0, 1, 2, 3]


def test_a_partition_that_is_being_deleted_is_forgotten_and_then_its_topic() -> None:
    cache = MetadataCache(ZooKeeperRules())
    told(cache, 0, 1)
    told(cache, 0, leader=NoLeaderReason.BEING_DELETED)
    assert answered(cache) == [1]
    told(cache, 1, leader=NoLeaderReason.BEING_DELETED)
    assert answered(cache) == []
    assert "orders" not in cache.image.topics
