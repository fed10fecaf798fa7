"""A broker's knowledge from UpdateMetadata in a ZooKeeper cluster (Kafka's ``ZkMetadataCache``)."""

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.metadata_requests import metadata
from laststand.emulator.core.broker.zookeeper.metadata_cache import MetadataCache, id_by_name
from laststand.emulator.core.image import BrokerRegistration, PartitionState
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules

LEADER, FOLLOWER, OTHER = (BrokerId(NodeId(number)) for number in (1, 2, 3))
ALIVE = BrokerRegistration(
    broker_id=LEADER,
    incarnation_id=IncarnationId(""),
    broker_epoch=BrokerEpoch(-1),
    log_dirs=(),
    fenced=False,
    in_controlled_shutdown=False,
    registration_offset=MetadataOffset(0),
)
PARTITION = control_messages.MetadataPartition(
    name=TopicPartition("orders", 0),
    controller_epoch=ControllerEpoch(1),
    leader=LEADER,
    leader_epoch=LeaderEpoch(4),
    isr=(LEADER,),
    partition_epoch=PartitionEpoch(5),
    replicas=(LEADER, FOLLOWER),
    topic_id=TopicId("id"),
)


def update(
    *partitions: control_messages.MetadataPartition, live: tuple[control_messages.LiveBroker, ...] = ()
) -> control_messages.UpdateMetadataRequest:
    return control_messages.UpdateMetadataRequest(
        controller_id=OTHER, controller_epoch=ControllerEpoch(1), live_brokers=live, partitions=partitions
    )


def told(
    cache: MetadataCache, *partitions: int, leader: BrokerId | control_messages.NoLeaderReason = LEADER
) -> tuple[TopicPartition, ...]:
    return cache.update(
        control_messages.UpdateMetadataRequest(
            controller_id=LEADER,
            controller_epoch=ControllerEpoch(1),
            broker_epoch=BrokerEpoch(1),
            live_brokers=(control_messages.LiveBroker(broker_id=LEADER),),
            partitions=tuple(
                control_messages.MetadataPartition(
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
    (topic,) = metadata(cache.image, messages.MetadataRequest(topics=("orders",)), LEADER).topics
    return [partition.partition for partition in topic.partitions]


def test_of_a_topic_it_knows_the_partitions_that_it_received() -> None:
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
    assert told(cache, 0, leader=control_messages.NoLeaderReason.BEING_DELETED) == (TopicPartition("orders", 0),)
    assert answered(cache) == [1]
    assert told(cache, 1, leader=control_messages.NoLeaderReason.BEING_DELETED) == (TopicPartition("orders", 1),)
    assert answered(cache) == []
    assert not cache.image.partitions
    assert not cache.image.partition_counts
    assert not cache.image.topics
    assert not cache.image.topic_names


def test_a_deletion_of_an_unknown_partition_changes_nothing() -> None:
    cache = MetadataCache(ZooKeeperRules())
    assert told(cache, 7, leader=control_messages.NoLeaderReason.BEING_DELETED) == (TopicPartition("orders", 7),)
    assert not cache.image.topics


def test_a_topic_that_was_made_again_has_its_new_id_only() -> None:
    cache = MetadataCache(ZooKeeperRules())
    again = msgspec.structs.replace(PARTITION, topic_id=TopicId("new"))
    cache.update(update(PARTITION))
    cache.update(update(again, again))
    assert cache.image.topics == {"orders": TopicId("new")}
    assert cache.image.topic_names == {TopicId("new"): "orders"}


def test_a_request_without_ids_takes_none_away() -> None:
    cache = MetadataCache(ZooKeeperRules())
    cache.update(update(PARTITION))
    cache.update(update(msgspec.structs.replace(PARTITION, topic_id=None)))
    assert cache.image.topics == {"orders": TopicId("id")}
    assert cache.image.topic_names == {TopicId("id"): "orders"}
    assert cache.image.partitions[PARTITION.name].topic_id == TopicId("id")


def test_the_partitions_of_other_topics_do_not_count() -> None:
    cache = MetadataCache(ZooKeeperRules())
    told(cache, 0, 1)
    cache.update(update(msgspec.structs.replace(PARTITION, name=TopicPartition("refunds", 5))))
    assert cache.image.partition_counts == {"orders": 2, "refunds": 6}


def test_a_partition_is_known_as_it_was_sent() -> None:
    cache = MetadataCache(ZooKeeperRules())
    assert cache.update(update(PARTITION)) == ()
    assert cache.controller == OTHER
    assert cache.image.topics == {"orders": "id"}
    assert cache.image.topic_names == {"id": "orders"}
    assert cache.image.partitions[PARTITION.name] == PartitionState(
        topic_id=TopicId("id"),
        replicas=(LEADER, FOLLOWER),
        isr=(LEADER,),
        leader=LEADER,
        leader_epoch=LeaderEpoch(4),
        partition_epoch=PartitionEpoch(5),
    )


def test_a_partition_may_have_no_leader_and_its_topic_no_id() -> None:
    cache = MetadataCache(ZooKeeperRules())
    cache.update(
        update(msgspec.structs.replace(PARTITION, leader=control_messages.NoLeaderReason.NONE_ELECTED, topic_id=None))
    )
    state = cache.image.partitions[PARTITION.name]
    assert (state.leader, state.topic_id) == (None, id_by_name("orders"))


def test_those_are_alive_that_the_last_request_named() -> None:
    cache = MetadataCache(ZooKeeperRules())
    cache.update(
        update(
            live=(control_messages.LiveBroker(broker_id=LEADER, rack="a"), control_messages.LiveBroker(broker_id=OTHER))
        )
    )
    cache.update(update(live=(control_messages.LiveBroker(broker_id=LEADER, rack="b"),)))
    assert cache.is_alive(LEADER)
    assert not cache.is_alive(OTHER)
    assert not cache.is_alive(None)
    assert cache.image.brokers == {LEADER: msgspec.structs.replace(ALIVE, rack="b")}


def test_only_live_brokers_may_join_an_isr() -> None:
    # KIP-841.
    cache = MetadataCache(ZooKeeperRules(isr_eligibility_check=True))
    cache.update(update(live=(control_messages.LiveBroker(broker_id=LEADER),)))
    assert dict(cache.eligible) == {LEADER: ALIVE}
    assert cache.eligible.get(OTHER) is None


def test_before_kip_841_everybody_may_join_an_isr() -> None:
    cache = MetadataCache(ZooKeeperRules(isr_eligibility_check=False))
    cache.update(update(live=(control_messages.LiveBroker(broker_id=LEADER, rack="a"),)))
    assert cache.eligible[LEADER] == msgspec.structs.replace(ALIVE, rack="a")
    assert cache.eligible[OTHER] == msgspec.structs.replace(ALIVE, broker_id=OTHER)
    assert list(cache.eligible) == [LEADER], "known are those that are alive"
    assert len(cache.eligible) == 1
