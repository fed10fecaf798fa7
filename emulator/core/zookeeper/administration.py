"""What administrators write into ZooKeeper: topics, configurations, deletions (``kafka-topics --zookeeper``).

The nodes are those that Kafka's tools write, past every broker; the controller sees them by its watches. Elections and
reassignments are asked of the controller instead. A topic is refused without replicas: nobody here places them.
"""

from typing import Final, TypeAlias

from laststand.emulator.core.admin_messages import (
    AlterConfigsResource,
    ConfigOperation,
    ConfigResourceResult,
    CreatablePartitions,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterResponse,
    DescribedBroker,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    TopicResult,
)
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, ConfigResource, MetadataOffset, NodeId
from laststand.emulator.core.zookeeper.identifiers import Zxid
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_config, encode_config
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment, TopicAssignment, decode_topic, encode_topic
from laststand.emulator.core.zookeeper.operations import (
    Create,
    DataRead,
    Delete,
    Exists,
    GetData,
    Program,
    SetData,
    Step,
    failure,
)
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules

AdministratorRequest: TypeAlias = CreateTopicsRequest | DeleteTopicsRequest | IncrementalAlterConfigsRequest
AdministratorResponse: TypeAlias = CreateTopicsResponse | DeleteTopicsResponse | IncrementalAlterConfigsResponse

_DEFAULT_BROKER: Final = "<default>"


def administrate(
    request: AdministratorRequest, rules: ZooKeeperRules, ibp: InterBrokerProtocol
) -> Program[AdministratorResponse]:
    """Writes what is asked for; returns what came of each subject, in order.

    Args:
        request: what to do.
        rules: of the cluster, which decide how nodes are written.
        ibp: of the brokers.
    """
    match request:
        case CreateTopicsRequest(topics=topics):
            created = []
            for topic in topics:
                created.append((yield from write_topic(topic, rules, ibp)))  # noqa: PERF401 - one waits for the other
            return CreateTopicsResponse(topics=tuple(created))
        case DeleteTopicsRequest(topics=names):
            deleted = []
            for name in names:
                deleted.append((yield from _delete(name)))  # noqa: PERF401
            return DeleteTopicsResponse(topics=tuple(deleted))
        case IncrementalAlterConfigsRequest(resources=resources):
            configured = []
            for resource in resources:
                configured.append((yield from write_config(resource)))  # noqa: PERF401
            return IncrementalAlterConfigsResponse(resources=tuple(configured))


def described_cluster(
    image: MetadataImage, *, cluster_id: str, controller: BrokerId | None, server: NodeId, last_zxid: Zxid
) -> DescribeClusterResponse:
    """Returns who is registered; nobody knows what each of them has heard.

    Args:
        image: what is committed.
        cluster_id: of the cluster.
        controller: whom ``/controller`` names; where it names nobody, the server stands for it.
        server: its id.
        last_zxid: of the last write.
    """
    return DescribeClusterResponse(
        error=ErrorCode.NONE,
        cluster_id=cluster_id,
        controller_id=server if controller is None else controller,
        metadata_end_offset=MetadataOffset(last_zxid + 1),
        brokers=tuple(
            DescribedBroker(
                broker_id=broker_id,
                broker_epoch=registered.broker_epoch,
                incarnation_id=registered.incarnation_id,
                is_fenced=False,
                in_controlled_shutdown=False,
                applied_offset=MetadataOffset(last_zxid),
            )
            for broker_id, registered in sorted(image.brokers.items())
        ),
    )


def _write(step: Step) -> Program[bool]:
    """Executes a step; returns whether it did something."""
    (answer,) = yield (step,)
    return failure(answer) is None


def write_topic(topic: CreatableTopic, rules: ZooKeeperRules, ibp: InterBrokerProtocol) -> Program[TopicResult]:
    """Makes a topic's nodes; the controller's watch does the rest.

    Below 2.8 a topic is given no id, whatever the release knows.
    """
    if not topic.assignments:
        return TopicResult(
            name=topic.name, error=ErrorCode.INVALID_REPLICA_ASSIGNMENT, error_message="its replicas are not named"
        )
    partitions = {number: ReplicaAssignment(replicas=replicas) for number, replicas in enumerate(topic.assignments)}
    content = TopicAssignment(topic_id=topic.topic_id if ibp.sends_topic_ids else None, partitions=partitions)
    data = encode_topic(content, topic_format=rules.topic_format)
    if not (yield from _write(Exists(path=paths.topic_node(topic.name)))):
        yield from _write(Delete(path=paths.topic_config_node(topic.name), version=None))
        config = encode_config(dict(topic.configs))
        yield from _write(Create(path=paths.topic_config_node(topic.name), data=config))
    is_made = yield from _write(Create(path=paths.topic_node(topic.name), data=data))
    return TopicResult(name=topic.name, error=ErrorCode.NONE if is_made else ErrorCode.TOPIC_ALREADY_EXISTS)


def _delete(topic: str) -> Program[TopicResult]:
    if not (yield from _write(Exists(path=paths.topic_node(topic)))):
        return TopicResult(name=topic, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    yield from _write(Create(path=paths.delete_topic_node(topic)))  # asked for again, it is there already
    return TopicResult(name=topic, error=ErrorCode.NONE)


def write_partitions(wanted: CreatablePartitions, rules: ZooKeeperRules) -> Program[TopicResult]:
    """Adds partitions, whose replicas must be named, to a topic's node (``AdminZkClient.addPartitions``)."""
    path = paths.topic_node(wanted.name)
    (found,) = yield (GetData(path=path),)
    if not isinstance(found, DataRead):
        return TopicResult(name=wanted.name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    before = decode_topic(found.data, topic_format=rules.topic_format)
    first = len(before.partitions)
    added = {first + number: ReplicaAssignment(replicas=each) for number, each in enumerate(wanted.assignments)}
    content = TopicAssignment(topic_id=before.topic_id, partitions={**before.partitions, **added})
    data = encode_topic(content, topic_format=rules.topic_format)
    if first + len(added) != wanted.count or not (
        yield from _write(SetData(path=path, data=data, version=found.stat.version))
    ):
        message = f"topic {wanted.name!r} was changed meanwhile"
        return TopicResult(name=wanted.name, error=ErrorCode.INVALID_PARTITIONS, error_message=message)
    return TopicResult(name=wanted.name, error=ErrorCode.NONE)


def write_config(resource: AlterConfigsResource) -> Program[ConfigResourceResult]:
    """Changes the node of a resource's configuration, which is made where there is none."""
    if resource.resource is ConfigResource.TOPIC:
        path = paths.topic_config_node(resource.resource_name)
    else:
        path = paths.broker_config_node(resource.resource_name or _DEFAULT_BROKER)
    (found,) = yield (GetData(path=path),)
    config = decode_config(found.data) if isinstance(found, DataRead) else {}
    for change in resource.configs:
        config.pop(change.name, None)
        if change.operation is not ConfigOperation.DELETE and change.value is not None:
            config[change.name] = change.value
    content = encode_config(config)
    is_there = isinstance(found, DataRead)
    yield from _write(SetData(path=path, data=content, version=None) if is_there else Create(path=path, data=content))
    return ConfigResourceResult(resource=resource.resource, resource_name=resource.resource_name, error=ErrorCode.NONE)
