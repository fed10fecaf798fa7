"""The cluster's members and leaders by this broker's cache: Metadata, DescribeCluster, DescribeTopicPartitions.

No request here waits for the controller. A broker that is cut off continues to answer, from stale metadata.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.acls import CLUSTER, AclOperation, Resource, ResourceType
from laststand.emulator.core.describe import describe_topic_partitions
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.topic_names import INTERNAL_TOPICS, is_legal
from laststand.emulator.core.types import BrokerId
from laststand.emulator.kafka.numbers import number_of
from laststand.emulator.kafka_listener.authorized_operations import authorized_operations
from laststand.emulator.kafka_listener.message_codec import ZERO_UUID
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served
from laststand.emulator.kafka_listener.wire_errors import WireError

_BROKERS, _CONTROLLERS = 1, 2
_LEADER_STAYS_VERSION: Final = 1
_UNUSED_ID_VERSIONS: Final = (10, 11)
"""Versions of Metadata whose requests have a topic's id, which a broker refuses to look up."""


async def _metadata(served: Served, request: ClientRequest) -> Message:
    body, image = request.body, served.broker.image
    asked = body["topics"]
    error = _error_of(asked or (), request.version)
    if error is not ErrorCode.NONE:
        topics = [{"errorCode": error, "name": each["name"] or "", "topicId": each["topicId"]} for each in asked]
        return {"topics": topics, "controllerId": -1, "errorCode": error}
    if asked is None or (not asked and request.version == 0):
        seen = image.topics.keys() - served.unseen(request, image.topics)
        topics = [_topic(served, request, name) for name in sorted(seen)]
    else:
        topics = [*_asked_topics(served, request, asked)]
    return {
        "brokers": [_broker(served, broker_id) for broker_id in served.live_brokers()],
        "clusterId": served.cluster_id,
        "controllerId": served.controller_for_clients(),
        "topics": topics,
        "clusterAuthorizedOperations": authorized_operations(
            served, request, CLUSTER, is_asked=body["includeClusterAuthorizedOperations"]
        ),
    }


def _error_of(asked: Iterable[Message], version: int) -> ErrorCode:
    """Returns the error of a whole request: an id in a version without lookups by id, or neither id nor name."""
    for topic in asked:
        is_given_by_id = topic["topicId"] not in (None, ZERO_UUID)
        if version in _UNUSED_ID_VERSIONS and (is_given_by_id or topic["name"] is None):
            return ErrorCode.INVALID_REQUEST
        if topic["name"] is None and not is_given_by_id:
            return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NONE


def _asked_topics(served: Served, request: ClientRequest, asked: Iterable[Message]) -> Iterable[Message]:
    image = served.broker.image
    names: dict[str, None] = {}
    for topic in asked:
        name = topic["name"]
        if name is None:
            name = image.topic_names.get(topic["topicId"])
            if name is None or not served.may(request, AclOperation.DESCRIBE, Resource(ResourceType.TOPIC, name)):
                error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
                yield {"errorCode": error, "name": None, "topicId": topic["topicId"]}
                continue
        names[name] = None
    for name in names:
        yield _topic(served, request, name)


def _topic(served: Served, request: ClientRequest, name: str) -> Message:
    image, live = served.broker.image, served.live_brokers()
    if not served.may(request, AclOperation.DESCRIBE, Resource(ResourceType.TOPIC, name)):
        return {"errorCode": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "name": name}
    is_asked = request.body["includeTopicAuthorizedOperations"]
    operations = authorized_operations(served, request, Resource(ResourceType.TOPIC, name), is_asked=is_asked)
    if name not in image.topics:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
        return {"errorCode": error, "name": name, "topicAuthorizedOperations": operations}
    return {
        "errorCode": ErrorCode.NONE,
        "name": name,
        "topicId": image.topics[name],
        "isInternal": name in INTERNAL_TOPICS,
        "partitions": [
            _partition(image.partitions[partition], partition.partition, live, request.version)
            for partition in image.partitions_of(name)
        ],
        "topicAuthorizedOperations": operations,
    }


def _partition(state: PartitionState, partition: int, live: Collection[BrokerId], version: int) -> Message:
    leader = state.leader if state.leader in live else None
    offline = [broker_id for broker_id in state.replicas if broker_id not in live]
    error = ErrorCode.NONE if leader is not None else ErrorCode.LEADER_NOT_AVAILABLE
    if version < _LEADER_STAYS_VERSION and error is ErrorCode.NONE and offline:
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return {
        "errorCode": error,
        "partitionIndex": partition,
        "leaderId": number_of(leader),
        "leaderEpoch": state.leader_epoch,
        "replicaNodes": state.replicas,
        "isrNodes": state.isr,
        "offlineReplicas": offline,
    }


def _broker(served: Served, broker_id: BrokerId) -> Message:
    endpoint = served.endpoints[broker_id]
    rack = served.broker.image.brokers[broker_id].rack
    return {"nodeId": broker_id, "host": endpoint.host, "port": endpoint.port, "rack": rack or None}


async def _describe_cluster(served: Served, request: ClientRequest) -> Message:
    body = request.body
    wanted = body["endpointType"]
    if wanted != _BROKERS:
        is_known = wanted == _CONTROLLERS
        return {
            "errorCode": WireError.MISMATCHED_ENDPOINT_TYPE if is_known else WireError.UNSUPPORTED_ENDPOINT_TYPE,
            "errorMessage": "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            + ("CONTROLLER" if is_known else f"{wanted}"),
            "endpointType": _BROKERS,
            "clusterId": "",
        }
    image = served.broker.image
    shown = sorted(image.brokers) if body["includeFencedBrokers"] else served.live_brokers()
    return {
        "errorCode": ErrorCode.NONE,
        "errorMessage": None,
        "endpointType": _BROKERS,
        "clusterId": served.cluster_id,
        "controllerId": served.controller_for_clients(),
        "brokers": [
            {**_broker(served, broker_id), "brokerId": broker_id, "isFenced": image.brokers[broker_id].fenced}
            for broker_id in shown
        ],
        "clusterAuthorizedOperations": authorized_operations(
            served, request, CLUSTER, is_asked=body["includeClusterAuthorizedOperations"]
        ),
    }


async def _describe_topic_partitions(served: Served, request: ClientRequest) -> Message:
    body = request.body
    names = tuple(dict.fromkeys(topic["name"] for topic in body["topics"]))
    cursor = body["cursor"]
    if "" in names:
        return {"topics": [{"errorCode": ErrorCode.UNKNOWN_SERVER_ERROR, "name": name} for name in names]}
    if cursor is not None and cursor["partitionIndex"] < 0:
        failed = {"errorCode": ErrorCode.INVALID_REQUEST, "topicId": ZERO_UUID}
        return {"topics": [{**failed, "name": name} for name in sorted(names)]}
    described = describe_topic_partitions(
        served.broker.image,
        messages.DescribeTopicPartitionsRequest(
            topics=names,
            cursor=None
            if cursor is None
            else messages.TopicCursor(topic=cursor["topicName"], partition=cursor["partitionIndex"]),
            response_partition_limit=body["responsePartitionLimit"],
        ),
        partition_limit=served.properties.max_request_partition_size_limit,
        unauthorized=served.undescribable(request, names)
        if names
        else served.unseen(request, served.broker.image.topics),
    )
    following = described.next_cursor
    return {
        "topics": [
            {
                "errorCode": topic.error if is_legal(topic.name) else ErrorCode.INVALID_TOPIC_EXCEPTION,
                "name": topic.name,
                "topicId": topic.topic_id,
                "isInternal": topic.name in INTERNAL_TOPICS,
                "partitions": [
                    {
                        "errorCode": partition.error,
                        "partitionIndex": partition.partition,
                        "leaderId": number_of(partition.leader),
                        "leaderEpoch": partition.leader_epoch,
                        "replicaNodes": partition.replicas,
                        "isrNodes": partition.isr,
                        "eligibleLeaderReplicas": partition.elr,
                        "lastKnownElr": partition.last_known_elr,
                        "offlineReplicas": partition.offline_replicas,
                    }
                    for partition in topic.partitions
                ],
                "topicAuthorizedOperations": authorized_operations(
                    served,
                    request,
                    Resource(ResourceType.TOPIC, topic.name),
                    is_asked=topic.error is not ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                ),
            }
            for topic in described.topics
        ],
        "nextCursor": None
        if following is None
        else {"topicName": following.topic, "partitionIndex": following.partition},
    }


METADATA: Final[Mapping[int, Handler]] = {
    api_named("Metadata").key: _metadata,
    api_named("DescribeCluster").key: _describe_cluster,
    api_named("DescribeTopicPartitions").key: _describe_topic_partitions,
}
