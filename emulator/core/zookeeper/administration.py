"""Nodes that are written for administrators: topics, configurations, deletions (Kafka's ``AdminZkClient``).

The controller sees them by its watches. Elections and reassignments are asked of the controller instead.
"""

from typing import Final

from laststand.emulator.core import admin_messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, ConfigResource, MetadataOffset, NodeId
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.identifiers import Zxid
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_config, encode_config
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment, TopicAssignment, decode_topic, encode_topic
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules

_DEFAULT_BROKER: Final = "<default>"


def described_cluster(
    image: MetadataImage, *, cluster_id: str, controller: BrokerId | None, server: NodeId, last_zxid: Zxid
) -> admin_messages.DescribeClusterResponse:
    """Returns the registered brokers; how much metadata each has applied is not known.

    Args:
        image: the committed state.
        cluster_id: of the cluster.
        controller: the broker that ``/controller`` names; ``None`` stands for the server.
        server: its id.
        last_zxid: of the last write.
    """
    return admin_messages.DescribeClusterResponse(
        error=ErrorCode.NONE,
        cluster_id=cluster_id,
        controller_id=server if controller is None else controller,
        metadata_end_offset=MetadataOffset(last_zxid + 1),
        brokers=tuple(
            admin_messages.DescribedBroker(
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


def _write(step: operations.Step) -> operations.Program[bool]:
    """Executes a step; returns whether it did something."""
    (answer,) = yield (step,)
    return operations.failure(answer) is None


def write_topic(
    topic: admin_messages.CreatableTopic, rules: ZooKeeperRules, ibp: InterBrokerProtocol
) -> operations.Program[admin_messages.TopicResult]:
    """Makes the nodes of a topic, whose replicas must be named; the controller's watch does the rest.

    Below 2.8 a topic gets no id, whatever the release supports.
    """
    partitions = {number: ReplicaAssignment(replicas=replicas) for number, replicas in enumerate(topic.assignments)}
    content = TopicAssignment(topic_id=topic.topic_id if ibp.sends_topic_ids else None, partitions=partitions)
    data = encode_topic(content, topic_format=rules.topic_format)
    if not (yield from _write(operations.Exists(path=paths.topic_node(topic.name)))):
        yield from _write(operations.Delete(path=paths.topic_config_node(topic.name), version=None))
        config = encode_config(dict(topic.configs))
        yield from _write(operations.Create(path=paths.topic_config_node(topic.name), data=config))
    is_made = yield from _write(operations.Create(path=paths.topic_node(topic.name), data=data))
    return admin_messages.TopicResult(
        name=topic.name, error=ErrorCode.NONE if is_made else ErrorCode.TOPIC_ALREADY_EXISTS
    )


def mark_deleted(topic: str) -> operations.Program[admin_messages.TopicResult]:
    """Asks for the deletion of a topic, which the controller carries out."""
    if not (yield from _write(operations.Exists(path=paths.topic_node(topic)))):
        return admin_messages.TopicResult(name=topic, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    yield from _write(operations.Create(path=paths.delete_topic_node(topic)))  # asked for again, it is there already
    return admin_messages.TopicResult(name=topic, error=ErrorCode.NONE)


def write_partitions(
    wanted: admin_messages.CreatablePartitions, rules: ZooKeeperRules
) -> operations.Program[admin_messages.TopicResult]:
    """Adds partitions, whose replicas must be named, to a topic's node (``AdminZkClient.addPartitions``)."""
    path = paths.topic_node(wanted.name)
    (found,) = yield (operations.GetData(path=path),)
    if not isinstance(found, operations.DataRead):
        return admin_messages.TopicResult(name=wanted.name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    before = decode_topic(found.data, topic_format=rules.topic_format)
    first = len(before.partitions)
    added = {first + number: ReplicaAssignment(replicas=each) for number, each in enumerate(wanted.assignments)}
    content = TopicAssignment(topic_id=before.topic_id, partitions={**before.partitions, **added})
    data = encode_topic(content, topic_format=rules.topic_format)
    if first + len(added) != wanted.count or not (
        yield from _write(operations.SetData(path=path, data=data, version=found.stat.version))
    ):
        message = f"topic {wanted.name!r} was changed meanwhile"
        return admin_messages.TopicResult(name=wanted.name, error=ErrorCode.INVALID_PARTITIONS, error_message=message)
    return admin_messages.TopicResult(name=wanted.name, error=ErrorCode.NONE)


def config_node(resource: ConfigResource, resource_name: str) -> str:
    """Returns the path of a resource's configuration; a broker without a name is the cluster default."""
    if resource is ConfigResource.TOPIC:
        return paths.topic_config_node(resource_name)
    return paths.broker_config_node(resource_name or _DEFAULT_BROKER)


def write_config(
    resource: admin_messages.AlterConfigsResource,
) -> operations.Program[admin_messages.ConfigResourceResult]:
    """Changes the node of a resource's configuration, and creates it if it is missing."""
    path = config_node(resource.resource, resource.resource_name)
    (found,) = yield (operations.GetData(path=path),)
    config = decode_config(found.data) if isinstance(found, operations.DataRead) else {}
    for change in resource.configs:
        config.pop(change.name, None)
        if change.operation is not admin_messages.ConfigOperation.DELETE and change.value is not None:
            config[change.name] = change.value
    content = encode_config(config)
    is_there = isinstance(found, operations.DataRead)
    yield from _write(
        operations.SetData(path=path, data=content, version=None)
        if is_there
        else operations.Create(path=path, data=content)
    )
    return admin_messages.ConfigResourceResult(
        resource=resource.resource, resource_name=resource.resource_name, error=ErrorCode.NONE
    )
