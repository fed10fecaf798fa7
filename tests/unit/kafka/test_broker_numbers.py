"""Ids of brokers in messages of a cluster that has others than the scenario."""

from datetime import timedelta

from kio.schema.alter_partition_reassignments.v0 import request as reassign
from kio.schema.create_topics.v7 import request as create_topics
from kio.schema.metadata.v12 import response as metadata
from kio.schema.types import BrokerId as KafkaBrokerId
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from laststand.emulator.kafka.broker_numbers import renumbered


def ids(*numbers: int) -> tuple[KafkaBrokerId, ...]:
    return tuple(KafkaBrokerId(i32(number)) for number in numbers)


def test_ids_have_other_numbers_wherever_the_schema_says_that_there_are_some() -> None:
    assignment = create_topics.CreatableReplicaAssignment(partition_index=i32(1), broker_ids=ids(1, 0))
    topic = create_topics.CreatableTopic(
        name=TopicName("orders"),
        num_partitions=i32(-1),
        replication_factor=i16(1),
        assignments=(assignment,),
        configs=(),
    )
    request = create_topics.CreateTopicsRequest(topics=(topic,))
    [changed] = renumbered(request, {0: 1, 1: 7}).topics
    assert changed.assignments[0].broker_ids == ids(7, 1)
    assert (changed.assignments[0].partition_index, changed.replication_factor) == (1, 1)


def test_null_and_what_stands_for_no_broker_stay() -> None:
    partition = reassign.ReassignablePartition(partition_index=i32(0), replicas=None)
    topic = reassign.ReassignableTopic(name=TopicName("orders"), partitions=(partition,))
    request = reassign.AlterPartitionReassignmentsRequest(topics=(topic,))
    assert renumbered(request, {0: 1}) == request
    answer = metadata.MetadataResponse(throttle_time=i32Timedelta.parse(timedelta()), brokers=(), topics=())
    assert renumbered(answer, {0: 1}).controller_id == -1
