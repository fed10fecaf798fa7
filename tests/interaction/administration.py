"""Requests to the controller of a script's cluster, by an administrator or by a leader with a wish of its own.

Each function sends one request and returns the lines that the script prints of the answer.
"""

from collections.abc import Mapping
from typing import TypeVar

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ConfigResource,
    FeatureUpgradeType,
    LeaderEpoch,
    LeaderRecoveryState,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster

ResponseT = TypeVar("ResponseT")
_WITHIN_MS = 100


def _ask(
    cluster: SimulatedCluster, request: messages.Request, expected: type[ResponseT], *, node_id: NodeId = CONTROLLER
) -> ResponseT:
    request_id = cluster.clients.ask(node_id, request, cause="admin")
    cluster.run_until(lambda: request_id in cluster.clients.answers, within_ms=_WITHIN_MS)
    response = cluster.clients.answers[request_id]
    assert isinstance(response, expected)
    return response


def _outcome(error: ErrorCode, message: str) -> str:
    return f"{error.name}: {message}" if message else error.name


def _resource(word: str) -> tuple[ConfigResource, str]:
    if word == "cluster":
        return ConfigResource.BROKER, ""
    if word.startswith("broker:"):
        return ConfigResource.BROKER, word.removeprefix("broker:")
    return ConfigResource.TOPIC, word


def list_reassignments(cluster: SimulatedCluster) -> list[str]:
    """All that is under way, a line each."""
    response = _ask(
        cluster, admin_messages.ListPartitionReassignmentsRequest(), admin_messages.ListPartitionReassignmentsResponse
    )
    return [
        f"{found.topic_partition} replicas={_ids(found.replicas)} adding={_ids(found.adding_replicas)}"
        f" removing={_ids(found.removing_replicas)}"
        for found in response.partitions
    ] or ["none"]


def alter_config(cluster: SimulatedCluster, resource: str, changes: Mapping[str, str]) -> list[str]:
    """Sets ``name=value``; ``name=`` deletes, ``name=+value`` appends, ``name=-value`` subtracts."""
    kind, name = _resource(resource)
    configs = tuple(_change(key, value) for key, value in changes.items())
    asked = admin_messages.AlterConfigsResource(resource=kind, resource_name=name, configs=configs)
    request = admin_messages.IncrementalAlterConfigsRequest(resources=(asked,))
    [result] = _ask(cluster, request, admin_messages.IncrementalAlterConfigsResponse).resources
    return [_outcome(result.error, result.error_message)]


def _change(name: str, value: str) -> admin_messages.AlterableConfig:
    if not value:
        return admin_messages.AlterableConfig(name=name, operation=admin_messages.ConfigOperation.DELETE)
    operation = {"+": admin_messages.ConfigOperation.APPEND, "-": admin_messages.ConfigOperation.SUBTRACT}.get(
        value[0], admin_messages.ConfigOperation.SET
    )
    return admin_messages.AlterableConfig(name=name, operation=operation, value=value.lstrip("+-"))


def describe_config(cluster: SimulatedCluster, resource: str, names: list[str]) -> list[str]:
    """Returns the values in effect, each with every place that gives one."""
    kind, name = _resource(resource)
    asked = admin_messages.DescribeConfigsResource(resource=kind, resource_name=name, configuration_keys=tuple(names))
    [described] = _ask(
        cluster, admin_messages.DescribeConfigsRequest(resources=(asked,)), admin_messages.DescribeConfigsResponse
    ).resources
    if described.error is not ErrorCode.NONE:
        return [_outcome(described.error, described.error_message)]
    return [
        f"{config.name}={config.value} "
        + " ".join(f"{synonym.source.value}:{synonym.name}={synonym.value}" for synonym in config.synonyms)
        for config in described.configs
    ]


def update_features(
    cluster: SimulatedCluster, levels: Mapping[str, str], *, upgrade_type: FeatureUpgradeType
) -> list[str]:
    """Asks for levels, all in one request."""
    updates = tuple(
        admin_messages.FeatureUpdate(feature=name, max_version_level=int(level), upgrade_type=upgrade_type)
        for name, level in levels.items()
    )
    response = _ask(
        cluster, admin_messages.UpdateFeaturesRequest(feature_updates=updates), admin_messages.UpdateFeaturesResponse
    )
    return [_outcome(response.error, response.error_message)]


def describe_features(cluster: SimulatedCluster) -> list[str]:
    """Every feature with its finalized level and the levels that exist."""
    return [
        f"{feature.name} {feature.finalized_version} of {feature.min_supported_version}"
        f"..{feature.max_supported_version}"
        for feature in _ask(
            cluster, admin_messages.DescribeFeaturesRequest(), admin_messages.DescribeFeaturesResponse
        ).features
    ]


def describe_topics(
    cluster: SimulatedCluster, topics: tuple[str, ...], *, node_id: NodeId, cursor: TopicPartition | None, limit: int
) -> list[str]:
    """A page of partitions as a node knows them, and where the next one begins."""
    start = None if cursor is None else messages.TopicCursor(topic=cursor.topic, partition=cursor.partition)
    request = messages.DescribeTopicPartitionsRequest(topics=topics, cursor=start, response_partition_limit=limit)
    page = _ask(cluster, request, messages.DescribeTopicPartitionsResponse, node_id=node_id)
    described = [
        f"{topic.name}-{found.partition} leader={'none' if found.leader is None else found.leader}"
        f" leader_epoch={found.leader_epoch} isr={_ids(found.isr)} elr={_ids(found.elr)}"
        for topic in page.topics
        for found in topic.partitions
    ]
    following = page.next_cursor
    return [*described, "no more" if following is None else f"next {following.topic}-{following.partition}"]


def unregister(cluster: SimulatedCluster, broker_id: BrokerId) -> list[str]:
    """Forgets a broker."""
    response = _ask(
        cluster, admin_messages.UnregisterBrokerRequest(broker_id=broker_id), admin_messages.UnregisterBrokerResponse
    )
    return [_outcome(response.error, response.error_message)]


def describe_cluster(cluster: SimulatedCluster) -> list[str]:
    """Registered brokers."""
    response = _ask(cluster, admin_messages.DescribeClusterRequest(), admin_messages.DescribeClusterResponse)
    return [
        f"broker {broker.broker_id} epoch={broker.broker_epoch} applied={broker.applied_offset}"
        f"{' fenced' if broker.is_fenced else ''}{' shutting_down' if broker.in_controlled_shutdown else ''}"
        for broker in response.brokers
    ]


def alter_partition(cluster: SimulatedCluster, name: TopicPartition, given: Mapping[str, str]) -> list[str]:
    """An AlterPartition as ``from`` would send it, with whatever is ``given`` in the place of what is true."""
    state = cluster.controller.image.partitions[name]
    brokers = cluster.controller.image.brokers
    sender = BrokerId(NodeId(int(given["from"])))
    api_version = int(given.get("version", "3"))
    members = [member.partition("@") for member in given["isr"].strip("()").split(",") if member]
    topic_id = TopicId(given.get("topic_id", state.topic_id))
    data = messages.AlterPartitionData(
        topic=name.topic,
        topic_id=topic_id if api_version >= 2 else None,
        partition=int(given.get("partition", name.partition)),
        leader_epoch=LeaderEpoch(int(given.get("leader_epoch", state.leader_epoch))),
        partition_epoch=PartitionEpoch(int(given.get("partition_epoch", state.partition_epoch))),
        new_isr=tuple(_member(cluster, member, epoch) for member, _, epoch in members),
        leader_recovery_state=LeaderRecoveryState[given.get("recovery", "RECOVERED")],
    )
    registered = brokers[sender].broker_epoch if sender in brokers else -1
    request = messages.AlterPartitionRequest(
        broker_id=sender,
        broker_epoch=BrokerEpoch(int(given.get("broker_epoch", registered))),
        partitions=(data,),
        api_version=api_version,
    )
    response = _ask(cluster, request, messages.AlterPartitionResponse)
    if response.error is not ErrorCode.NONE:
        return [f"top level {response.error.name}"]
    [result] = response.partitions
    if result.error is not ErrorCode.NONE:
        return [result.error.name]
    return [
        f"NONE leader={result.leader} leader_epoch={result.leader_epoch} partition_epoch={result.partition_epoch}"
        f" isr={_ids(result.isr)} {result.leader_recovery_state.name}"
    ]


def _member(cluster: SimulatedCluster, word: str, epoch: str) -> messages.IsrMember:
    broker_id = BrokerId(NodeId(int(word)))
    if epoch == "?":
        return messages.IsrMember(broker_id, None)
    registration = cluster.controller.image.brokers.get(broker_id)
    known = None if registration is None else registration.broker_epoch
    return messages.IsrMember(broker_id, BrokerEpoch(int(epoch)) if epoch else known)


def _ids(brokers: tuple[BrokerId, ...]) -> str:
    return "(" + ",".join(str(broker) for broker in brokers) + ")"
