"""Administrators' requests to a controller (KIP-919) or, to delete records, to a leader (KIP-107).

It also has the harness's own request: how far brokers have fetched the controller's metadata log.
"""

from collections.abc import Callable
from typing import Final, cast

from kio.schema.alter_partition_reassignments.v0 import request as reassign
from kio.schema.alter_partition_reassignments.v0 import response as reassigned
from kio.schema.create_partitions.v3 import request as create_partitions
from kio.schema.create_partitions.v3 import response as partitions_created
from kio.schema.create_topics.v7 import request as create_topics
from kio.schema.create_topics.v7 import response as topics_created
from kio.schema.delete_records.v2 import request as delete_records
from kio.schema.delete_records.v2 import response as records_deleted
from kio.schema.delete_topics.v6 import request as delete_topics
from kio.schema.delete_topics.v6 import response as topics_deleted
from kio.schema.describe_quorum.v1 import request as describe_quorum
from kio.schema.describe_quorum.v1 import response as quorum_described
from kio.schema.elect_leaders.v2 import request as elect_leaders
from kio.schema.elect_leaders.v2 import response as leaders_elected
from kio.schema.errors import ErrorCode as KafkaError
from kio.schema.incremental_alter_configs.v1 import request as alter_configs
from kio.schema.incremental_alter_configs.v1 import response as configs_altered
from kio.schema.types import BrokerId as KafkaBrokerId
from kio.schema.unregister_broker.v0 import request as unregister_broker
from kio.schema.unregister_broker.v0 import response as broker_unregistered
from kio.schema.update_features.v1 import request as update_features
from kio.schema.update_features.v1 import response as features_updated
from kio.static.primitive import i8, i16, i32, i64
from kio.static.protocol import Entity

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.types import MetadataOffset, NodeId
from laststand.emulator.kafka.acl_calls import create_acls_call, delete_acls_call
from laststand.emulator.kafka.calls import Call, call_of, error_of, to_kafka, to_milliseconds, to_name
from laststand.emulator.kafka.connection import KafkaConnection
from laststand.emulator.kafka.numbers import (
    OPERATION_NUMBERS,
    RESOURCE_NUMBERS,
    RESOURCES,
    UPGRADE_NUMBERS,
    number_of,
    offset_or_none,
)

_TIMEOUT: Final = to_milliseconds(10_000)
_METADATA_TOPIC: Final = to_name("__cluster_metadata")
_UP_TO_HIGH_WATERMARK: Final = -1


def _create_topics(request: admin_messages.CreateTopicsRequest) -> Call:
    topics = tuple(
        create_topics.CreatableTopic(
            name=to_name(topic.name),
            num_partitions=i32(number_of(topic.num_partitions)),
            replication_factor=i16(number_of(topic.replication_factor)),
            assignments=tuple(
                create_topics.CreatableReplicaAssignment(partition_index=i32(index), broker_ids=to_kafka(replicas))
                for index, replicas in enumerate(topic.assignments)
            ),
            configs=tuple(create_topics.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs),
        )
        for topic in request.topics
    )
    return call_of(
        create_topics.CreateTopicsRequest(topics=topics, timeout=_TIMEOUT),
        topics_created.CreateTopicsResponse,
        _topics_created,
    )


def _topics_created(response: topics_created.CreateTopicsResponse) -> admin_messages.CreateTopicsResponse:
    return admin_messages.CreateTopicsResponse(
        topics=tuple(_topic(each.name, each.error_code, each.error_message) for each in response.topics)
    )


def _topic(name: str | None, error: KafkaError, message: str | None) -> admin_messages.TopicResult:
    return admin_messages.TopicResult(name=name or "", error=error_of(error), error_message=message or "")


def _delete_topics(request: admin_messages.DeleteTopicsRequest) -> Call:
    topics = tuple(delete_topics.DeleteTopicState(name=to_name(name), topic_id=None) for name in request.topics)
    return call_of(
        delete_topics.DeleteTopicsRequest(topics=topics, timeout=_TIMEOUT),
        topics_deleted.DeleteTopicsResponse,
        _topics_deleted,
    )


def _topics_deleted(response: topics_deleted.DeleteTopicsResponse) -> admin_messages.DeleteTopicsResponse:
    return admin_messages.DeleteTopicsResponse(
        topics=tuple(_topic(each.name, each.error_code, each.error_message) for each in response.responses)
    )


def _create_partitions(request: admin_messages.CreatePartitionsRequest) -> Call:
    topics = tuple(
        create_partitions.CreatePartitionsTopic(
            name=to_name(topic.name),
            count=i32(topic.count),
            assignments=tuple(
                create_partitions.CreatePartitionsAssignment(broker_ids=to_kafka(replicas))
                for replicas in topic.assignments
            )
            or None,
        )
        for topic in request.topics
    )
    return call_of(
        create_partitions.CreatePartitionsRequest(topics=topics, timeout=_TIMEOUT, validate_only=request.validate_only),
        partitions_created.CreatePartitionsResponse,
        _partitions_created,
    )


def _partitions_created(
    response: partitions_created.CreatePartitionsResponse,
) -> admin_messages.CreatePartitionsResponse:
    return admin_messages.CreatePartitionsResponse(
        topics=tuple(_topic(each.name, each.error_code, each.error_message) for each in response.results)
    )


def _alter_configs(request: admin_messages.IncrementalAlterConfigsRequest) -> Call:
    resources = tuple(
        alter_configs.AlterConfigsResource(
            resource_type=i8(RESOURCE_NUMBERS[each.resource]),
            resource_name=each.resource_name,
            configs=tuple(
                alter_configs.AlterableConfig(
                    name=config.name, config_operation=i8(OPERATION_NUMBERS[config.operation]), value=config.value
                )
                for config in each.configs
            ),
        )
        for each in request.resources
    )
    return call_of(
        alter_configs.IncrementalAlterConfigsRequest(resources=resources, validate_only=request.validate_only),
        configs_altered.IncrementalAlterConfigsResponse,
        _configs_altered,
    )


def _configs_altered(
    response: configs_altered.IncrementalAlterConfigsResponse,
) -> admin_messages.IncrementalAlterConfigsResponse:
    return admin_messages.IncrementalAlterConfigsResponse(
        resources=tuple(
            admin_messages.ConfigResourceResult(
                resource=RESOURCES[each.resource_type],
                resource_name=each.resource_name,
                error=error_of(each.error_code),
                error_message=each.error_message or "",
            )
            for each in response.responses
        )
    )


def _elect_leaders(request: admin_messages.ElectLeadersRequest) -> Call:
    partitions = None
    if request.partitions is not None:
        partitions = tuple(
            elect_leaders.TopicPartitions(topic=to_name(each.topic), partitions=(i32(each.partition),))
            for each in request.partitions
        )
    return call_of(
        elect_leaders.ElectLeadersRequest(
            election_type=i8(request.election_type), topic_partitions=partitions, timeout=_TIMEOUT
        ),
        leaders_elected.ElectLeadersResponse,
        _leaders_elected,
    )


def _leaders_elected(response: leaders_elected.ElectLeadersResponse) -> admin_messages.ElectLeadersResponse:
    partitions = tuple(
        admin_messages.PartitionResult(
            topic=topic.topic,
            partition=each.partition_id,
            error=error_of(each.error_code),
            error_message=each.error_message or "",
        )
        for topic in response.replica_election_results
        for each in topic.partition_result
    )
    return admin_messages.ElectLeadersResponse(error=error_of(response.error_code), partitions=partitions)


def _reassign(request: admin_messages.AlterPartitionReassignmentsRequest) -> Call:
    topics = tuple(
        reassign.ReassignableTopic(
            name=to_name(each.topic),
            partitions=(
                reassign.ReassignablePartition(
                    partition_index=i32(each.partition),
                    replicas=None if each.replicas is None else to_kafka(each.replicas),
                ),
            ),
        )
        for each in request.partitions
    )
    return call_of(
        reassign.AlterPartitionReassignmentsRequest(timeout=_TIMEOUT, topics=topics),
        reassigned.AlterPartitionReassignmentsResponse,
        _reassigned,
    )


def _reassigned(
    response: reassigned.AlterPartitionReassignmentsResponse,
) -> admin_messages.AlterPartitionReassignmentsResponse:
    partitions = tuple(
        admin_messages.PartitionResult(
            topic=topic.name,
            partition=each.partition_index,
            error=error_of(each.error_code),
            error_message=each.error_message or "",
        )
        for topic in response.responses
        for each in topic.partitions
    )
    return admin_messages.AlterPartitionReassignmentsResponse(
        error=error_of(response.error_code), error_message=response.error_message or "", partitions=partitions
    )


def _update_features(request: admin_messages.UpdateFeaturesRequest) -> Call:
    updates = tuple(
        update_features.FeatureUpdateKey(
            feature=each.feature,
            max_version_level=i16(each.max_version_level),
            upgrade_type=i8(UPGRADE_NUMBERS[each.upgrade_type]),
        )
        for each in request.feature_updates
    )
    return call_of(
        update_features.UpdateFeaturesRequest(
            timeout=_TIMEOUT, feature_updates=updates, validate_only=request.validate_only
        ),
        features_updated.UpdateFeaturesResponse,
        _features_updated,
    )


def _features_updated(response: features_updated.UpdateFeaturesResponse) -> admin_messages.UpdateFeaturesResponse:
    errors = [
        (response.error_code, response.error_message),
        *((each.error_code, each.error_message) for each in response.results),
    ]
    error, message = next((each for each in errors if each[0] is not KafkaError.none), errors[0])
    return admin_messages.UpdateFeaturesResponse(error=error_of(error), error_message=message or "")


def _unregister_broker(request: admin_messages.UnregisterBrokerRequest) -> Call:
    return call_of(
        unregister_broker.UnregisterBrokerRequest(broker_id=KafkaBrokerId(request.broker_id)),
        broker_unregistered.UnregisterBrokerResponse,
        _broker_unregistered,
    )


def _broker_unregistered(
    response: broker_unregistered.UnregisterBrokerResponse,
) -> admin_messages.UnregisterBrokerResponse:
    return admin_messages.UnregisterBrokerResponse(
        error=error_of(response.error_code), error_message=response.error_message or ""
    )


def _delete_records(request: messages.DeleteRecordsRequest) -> Call:
    topics = tuple(
        delete_records.DeleteRecordsTopic(
            name=to_name(each.topic),
            partitions=(
                delete_records.DeleteRecordsPartition(
                    partition_index=i32(each.partition),
                    offset=i64(_UP_TO_HIGH_WATERMARK if each.offset is None else each.offset),
                ),
            ),
        )
        for each in request.partitions
    )
    return call_of(
        delete_records.DeleteRecordsRequest(topics=topics, timeout=to_milliseconds(request.timeout_ms)),
        records_deleted.DeleteRecordsResponse,
        _records_deleted,
    )


def _records_deleted(response: records_deleted.DeleteRecordsResponse) -> messages.DeleteRecordsResponse:
    return messages.DeleteRecordsResponse(
        partitions=tuple(
            messages.DeleteRecordsResult(
                topic=topic.name,
                partition=each.partition_index,
                error=error_of(each.error_code),
                low_watermark=offset_or_none(each.low_watermark),
            )
            for topic in response.topics
            for each in topic.partitions
        )
    )


_CALLS: Final[dict[type, Callable[..., Call]]] = {
    admin_messages.CreateTopicsRequest: _create_topics,
    admin_messages.DeleteTopicsRequest: _delete_topics,
    admin_messages.CreatePartitionsRequest: _create_partitions,
    admin_messages.IncrementalAlterConfigsRequest: _alter_configs,
    admin_messages.ElectLeadersRequest: _elect_leaders,
    admin_messages.AlterPartitionReassignmentsRequest: _reassign,
    admin_messages.UpdateFeaturesRequest: _update_features,
    admin_messages.UnregisterBrokerRequest: _unregister_broker,
    admin_messages.CreateAclsRequest: create_acls_call,
    admin_messages.DeleteAclsRequest: delete_acls_call,
    messages.DeleteRecordsRequest: _delete_records,
}


async def ask_admin(connection: KafkaConnection, request: messages.Request) -> messages.Response:
    """Sends an administrator's request, and returns the response.

    Raises:
        OSError: the connection broke first.
    """
    call = admin_call(request)
    response, _ = call.decode(await connection.ask(call.request, call.response))
    return response


def admin_call(request: messages.Request) -> Call:
    """Returns the call of an administrator's request.

    Raises:
        KeyError: Kafka has no such API.
    """
    return _CALLS[type(request)](request)


def quorum_request() -> describe_quorum.DescribeQuorumRequest:
    """Returns the request that asks how far the quorum's observers, the brokers, have fetched: see ``fetched_ends``."""
    partition = describe_quorum.PartitionData(partition_index=i32(0))
    topic = describe_quorum.TopicData(topic_name=_METADATA_TOPIC, partitions=(partition,))
    return describe_quorum.DescribeQuorumRequest(topics=(topic,))


QUORUM_RESPONSE: Final = quorum_described.DescribeQuorumResponse
"""Type of the answer to ``quorum_request``."""


def fetched_ends(entity: Entity) -> dict[NodeId, MetadataOffset]:
    """Returns where each node's copy of the metadata log ends, also of brokers whose process is a voter."""
    response = cast(quorum_described.DescribeQuorumResponse, entity)
    ends: dict[NodeId, MetadataOffset] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            for observer in (*partition.observers, *partition.current_voters):
                node_id = NodeId(observer.replica_id)
                ends[node_id] = max(ends.get(node_id, MetadataOffset(0)), MetadataOffset(observer.log_end_offset))
    return ends
