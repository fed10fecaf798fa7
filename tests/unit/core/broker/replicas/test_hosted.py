"""Partitions that a broker serves, and its answers about the others."""

from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import TopicPartition
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, TOPIC_ID, Hosting

ELSEWHERE = TopicPartition("orders", 1)


def test_before_it_was_unfenced_once_a_broker_leads_nothing_to_the_outside() -> None:
    hosting = Hosting()
    hosting.lead(OWN)
    hosted = HostedPartitions(hosting.image)
    hosted.add(hosting.partition)
    assert hosted.find(NAME) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    hosted.is_serving = True
    assert hosted.find(NAME) is hosting.partition


def test_a_partition_of_other_brokers_is_distinguished_from_one_that_lies_in_a_failed_directory() -> None:
    hosting = Hosting()
    hosting.image.partitions[ELSEWHERE] = hosting.state(leader=FIRST, isr=(FIRST,), leader_epoch=0, partition_epoch=0)
    assert hosting.hosted.find(ELSEWHERE) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    hosting.hosted.out_of_reach.add((ELSEWHERE, TOPIC_ID))
    assert hosting.hosted.find(ELSEWHERE) is ErrorCode.KAFKA_STORAGE_ERROR
