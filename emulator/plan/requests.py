"""An administrator's actions as requests to the controller, and the answers to them."""

from random import Random
from typing import assert_never

from emulator.core.admin_messages import (
    AdminRequest,
    AlterableConfig,
    AlterConfigsResource,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ConfigOperation,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectablePartition,
    ElectLeadersRequest,
    ElectLeadersResponse,
    FeatureUpdate,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ReassignablePartition,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from emulator.core.errors import ErrorCode
from emulator.core.image import MetadataImage
from emulator.core.messages import Response
from emulator.core.records import ConfigResource
from emulator.core.types import BrokerId, TopicId, TopicPartition
from emulator.plan.actions import (
    Administration,
    AlterConfig,
    CancelReassignment,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    Reassign,
    RecreateTopic,
    UnregisterBroker,
    UpdateFeature,
)
from emulator.plan.topics import PlannedTopic, draw_topic_id


def requests_of(action: Administration, image: MetadataImage, *, topic_id: TopicId) -> tuple[AdminRequest, ...]:
    """Returns the requests that an action is, in order.

    Args:
        action: what is asked for.
        image: committed metadata, where a topic that is recreated has its replicas and configuration.
        topic_id: of a topic that is created.
    """
    match action:
        case CreateTopic(topic=topic):
            return (CreateTopicsRequest(topics=(topic.creatable(topic_id),)),)
        case DeleteTopic(name=name):
            return (DeleteTopicsRequest(topics=(name,)),)
        case RecreateTopic(name=name):
            again = CreateTopicsRequest(topics=(_as_it_is(name, image).creatable(topic_id),))
            return (DeleteTopicsRequest(topics=(name,)), again)
        case AlterConfig(config=config):
            configs = tuple(_config(key, value) for key, value in config.changes)
            resource = AlterConfigsResource(resource=config.resource, resource_name=config.name, configs=configs)
            return (IncrementalAlterConfigsRequest(resources=(resource,)),)
        case ElectLeaders(election=election, partitions=partitions, leader=leader):
            electable = tuple(
                ElectablePartition(topic=each.topic, partition=each.partition, desired_leader=leader)
                for each in partitions
            )
            return (ElectLeadersRequest(election_type=int(election), partitions=electable),)
        case Reassign(partition=partition, replicas=replicas):
            return (_reassignment(partition, replicas),)
        case CancelReassignment(partition=partition):
            return (_reassignment(partition, None),)
        case UpdateFeature(target=target, upgrade_type=upgrade_type):
            update = FeatureUpdate(feature=target.feature, max_version_level=target.level, upgrade_type=upgrade_type)
            return (UpdateFeaturesRequest(feature_updates=(update,)),)
        case UnregisterBroker(broker_id=broker_id):
            return (UnregisterBrokerRequest(broker_id=broker_id),)
        case _:
            assert_never(action)


def new_topic_id(seed: str) -> TopicId:
    """Returns the id of a topic that is created, drawn from a seed."""
    return draw_topic_id(Random(seed))


def _as_it_is(name: str, image: MetadataImage) -> PlannedTopic:
    states = [state for partition, state in sorted(image.partitions.items()) if partition.topic == name]
    return PlannedTopic(
        name=name,
        replicas=tuple(state.replicas for state in states),
        properties=tuple(sorted(image.configs(ConfigResource.TOPIC, name).items())),
    )


def _config(name: str, value: str | None) -> AlterableConfig:
    operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
    return AlterableConfig(name=name, operation=operation, value=value)


def _reassignment(
    partition: TopicPartition, replicas: tuple[BrokerId, ...] | None
) -> AlterPartitionReassignmentsRequest:
    target = ReassignablePartition(topic=partition.topic, partition=partition.partition, replicas=replicas)
    return AlterPartitionReassignmentsRequest(partitions=(target,))


def errors_of(response: Response) -> list[tuple[ErrorCode, str]]:
    """Returns what a response says about each thing that was asked for: the error, and Kafka's message."""
    match response:
        case CreateTopicsResponse(topics=topics) | DeleteTopicsResponse(topics=topics):
            return [(each.error, each.error_message) for each in topics]
        case IncrementalAlterConfigsResponse(resources=resources):
            return [(each.error, each.error_message) for each in resources]
        case ElectLeadersResponse() | AlterPartitionReassignmentsResponse():
            if response.error is not ErrorCode.NONE:
                return [(response.error, response.error_message)]
            return [(each.error, each.error_message) for each in response.partitions]
        case UpdateFeaturesResponse() | UnregisterBrokerResponse():
            return [(response.error, response.error_message)]
        case _:
            raise AssertionError(f"{response} answers no administrator")
