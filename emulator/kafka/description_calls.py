"""The state of a cluster as a broker describes it: members, topics, leaders, in-sync and eligible replicas."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import msgspec
from kio.schema.describe_topic_partitions.v0 import request as describe_partitions
from kio.schema.describe_topic_partitions.v0 import response as partitions_described
from kio.schema.list_partition_reassignments.v0 import request as list_reassignments
from kio.schema.list_partition_reassignments.v0 import response as reassignments_listed
from kio.schema.metadata.v12 import request as metadata
from kio.schema.metadata.v12 import response as metadata_response
from kio.static.primitive import i32

from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import BrokerId, LeaderEpoch, NodeId, PartitionEpoch, TopicPartition
from laststand.emulator.kafka.calls import brokers_of, to_milliseconds, to_name, topic_id_of
from laststand.emulator.kafka.connection import KafkaConnection
from laststand.emulator.kafka.numbers import broker_or_none

_DESCRIBE_TOPIC_PARTITIONS: Final = 75
_LIST_REASSIGNMENTS: Final = 46
_PARTITIONS_MAX: Final = 2000
"""``max.request.partition.size.limit``."""
_TIMEOUT: Final = to_milliseconds(2_000)


class BrokersWord(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a cluster as one of its brokers knows it.

    Attributes:
        cluster_id: ``None`` if the broker does not name it.
        addresses: advertised addresses of the brokers that it knows as alive.
        racks: of the same brokers.
        partitions: of the topics that were asked for and exist. No answer has partition epochs: they are 0.
        controller: a broker that carries out what administrators ask, or passes it on.
    """

    cluster_id: str | None
    addresses: Mapping[BrokerId, str]
    racks: Mapping[BrokerId, str]
    partitions: Mapping[TopicPartition, PartitionState]
    controller: BrokerId | None = None


async def describe_cluster(connection: KafkaConnection, topics: Sequence[str]) -> BrokersWord:
    """Asks a broker about its cluster and some topics, without creating them.

    Raises:
        OSError: the connection broke.
    """
    metadata = cast(
        metadata_response.MetadataResponse, await connection.ask(_metadata(topics), metadata_response.MetadataResponse)
    )
    partitions = dict(_partitions(metadata))
    if partitions and _DESCRIBE_TOPIC_PARTITIONS in connection.versions:
        request = describe_partitions.DescribeTopicPartitionsRequest(
            topics=tuple(describe_partitions.TopicRequest(name=to_name(name)) for name in topics),
            response_partition_limit=i32(_PARTITIONS_MAX),
            cursor=None,
        )
        answer = await connection.ask(request, partitions_described.DescribeTopicPartitionsResponse)
        partitions |= _with_elr(partitions, cast(partitions_described.DescribeTopicPartitionsResponse, answer))
    if partitions and _LIST_REASSIGNMENTS in connection.versions:
        listing = list_reassignments.ListPartitionReassignmentsRequest(timeout=_TIMEOUT, topics=None)
        listed = await connection.ask(listing, reassignments_listed.ListPartitionReassignmentsResponse)
        partitions |= _moving(partitions, cast(reassignments_listed.ListPartitionReassignmentsResponse, listed))
    brokers = {BrokerId(NodeId(broker.node_id)): broker for broker in metadata.brokers}
    return BrokersWord(
        cluster_id=metadata.cluster_id,
        addresses={broker_id: f"{broker.host}:{broker.port}" for broker_id, broker in sorted(brokers.items())},
        racks={broker_id: broker.rack or "" for broker_id, broker in brokers.items()},
        partitions=partitions,
        controller=broker_or_none(metadata.controller_id),
    )


def _metadata(topics: Sequence[str]) -> metadata.MetadataRequest:
    return metadata.MetadataRequest(
        topics=tuple(metadata.MetadataRequestTopic(topic_id=None, name=to_name(name)) for name in topics),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )


def _partitions(answer: metadata_response.MetadataResponse) -> Iterator[tuple[TopicPartition, PartitionState]]:
    for topic in answer.topics:
        topic_id = topic_id_of(topic.topic_id or uuid.UUID(int=0))
        for each in topic.partitions:
            assert topic_id is not None
            yield (
                TopicPartition(topic.name or "", each.partition_index),
                PartitionState(
                    topic_id=topic_id,
                    replicas=brokers_of(each.replica_nodes),
                    isr=brokers_of(each.isr_nodes),
                    leader=broker_or_none(each.leader_id),
                    leader_epoch=LeaderEpoch(each.leader_epoch),
                    partition_epoch=PartitionEpoch(0),
                ),
            )


def _with_elr(
    known: Mapping[TopicPartition, PartitionState], answer: partitions_described.DescribeTopicPartitionsResponse
) -> dict[TopicPartition, PartitionState]:
    found = {}
    for topic in answer.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name or "", each.partition_index)
            state = known.get(partition)
            if state is not None and state.leader_epoch == LeaderEpoch(each.leader_epoch):
                found[partition] = msgspec.structs.replace(
                    state,
                    isr=brokers_of(each.isr_nodes),
                    leader=broker_or_none(each.leader_id),
                    elr=tuple(sorted(brokers_of(each.eligible_leader_replicas or ()))),
                    last_known_elr=tuple(sorted(brokers_of(each.last_known_elr or ()))),
                )
    return found


def _moving(
    known: Mapping[TopicPartition, PartitionState], answer: reassignments_listed.ListPartitionReassignmentsResponse
) -> dict[TopicPartition, PartitionState]:
    listed = {
        TopicPartition(topic.name, each.partition_index): each for topic in answer.topics for each in topic.partitions
    }
    return {
        partition: msgspec.structs.replace(
            known[partition],
            adding_replicas=brokers_of(each.adding_replicas),
            removing_replicas=brokers_of(each.removing_replicas),
        )
        for partition, each in listed.items()
        if partition in known
    }
