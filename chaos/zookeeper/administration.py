"""Requests of administrators in a cluster with ZooKeeper, beside direct writes: placement, listings.

Kafka's brokers place replicas and describe topics from what they have read in ZooKeeper; here the harness does it from
the transaction log, by the rules by which a KRaft controller places and describes.
"""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import msgspec

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.controller.config_requests import alter_config_resource, describe_config_resource
from laststand.emulator.core.controller.reassignment import ongoing_reassignments
from laststand.emulator.core.controller.topics import TopicOutcome, add_partitions, create_topic
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.describe import describe_topic_partitions
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.records import PartitionRecord
from laststand.emulator.core.types import BrokerId, TopicPartition

Listing: TypeAlias = (
    messages.DescribeTopicPartitionsRequest
    | admin_messages.DescribeConfigsRequest
    | admin_messages.ListPartitionReassignmentsRequest
)

_PlacedT = TypeVar("_PlacedT")


def described(request: Listing, view: ClusterView) -> messages.Response:
    """Answers a question from committed state."""
    match request:
        case messages.DescribeTopicPartitionsRequest():
            limit = view.properties.max_request_partition_size_limit
            return describe_topic_partitions(view.image, request, partition_limit=limit)
        case admin_messages.DescribeConfigsRequest():
            found = tuple(describe_config_resource(view, resource) for resource in request.resources)
            return admin_messages.DescribeConfigsResponse(resources=found)
        case admin_messages.ListPartitionReassignmentsRequest():
            asked = None if request.partitions is None else [TopicPartition(*name) for name in request.partitions]
            found_moves = ongoing_reassignments(view, asked)
            return admin_messages.ListPartitionReassignmentsResponse(error=ErrorCode.NONE, partitions=found_moves)


def placed_topic(
    topic: admin_messages.CreatableTopic, view: ClusterView
) -> admin_messages.CreatableTopic | admin_messages.TopicResult:
    """Returns a topic with its replicas, or why it cannot be; those that were asked for may be dead."""
    if topic.assignments:
        return topic
    outcome = create_topic(view, topic)
    return _placed(topic.name, outcome, lambda replicas: msgspec.structs.replace(topic, assignments=replicas))


def placed_partitions(
    wanted: admin_messages.CreatablePartitions, view: ClusterView
) -> admin_messages.CreatablePartitions | admin_messages.TopicResult:
    """Returns new partitions with their replicas, or why they cannot be."""
    outcome = add_partitions(view, wanted)
    return _placed(wanted.name, outcome, lambda replicas: msgspec.structs.replace(wanted, assignments=replicas))


def _placed(
    name: str, outcome: TopicOutcome, make: Callable[[tuple[tuple[BrokerId, ...], ...]], _PlacedT]
) -> _PlacedT | admin_messages.TopicResult:
    if outcome.error is not ErrorCode.NONE:
        return admin_messages.TopicResult(name=name, error=outcome.error, error_message=outcome.message)
    records = (decision.record for decision in outcome.decisions)
    return make(tuple(record.replicas for record in records if isinstance(record, PartitionRecord)))


def config_problem(
    resource: admin_messages.AlterConfigsResource, view: ClusterView
) -> admin_messages.ConfigResourceResult | None:
    """Returns why a configuration cannot be changed like that; ``None`` if it can."""
    outcome = alter_config_resource(view, resource)
    if outcome.error is ErrorCode.NONE:
        return None
    return admin_messages.ConfigResourceResult(
        resource=resource.resource,
        resource_name=resource.resource_name,
        error=outcome.error,
        error_message=outcome.message,
    )
