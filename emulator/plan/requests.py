"""An administrator's actions as requests, of which all but DeleteRecords are the controller's, and the answers."""

from collections.abc import Iterator
from typing import Final, assert_never

from laststand.emulator.core.admin_messages import (
    AdminRequest,
    AlterableConfig,
    AlterConfigsResource,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ConfigOperation,
    CreatablePartitions,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
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
    RequestedElection,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTarget,
    Request,
    Response,
)
from laststand.emulator.core.types import BrokerId, ConfigResource, TopicId, TopicPartition
from laststand.emulator.plan.actions import (
    Administration,
    AlterConfig,
    CancelReassignment,
    CreatePartitions,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    ElectLeaders,
    Reassign,
    RecreateTopic,
    UnregisterBroker,
    UpdateFeature,
)
from laststand.emulator.plan.administration_fields import ConfigChange, FeatureLevel
from laststand.emulator.plan.topics import PlannedTopic

DELETE_RECORDS_TIMEOUT_MS: Final = 4_000
"""How long a leader waits for its followers. One in touch needs a single fetch; no plan waits for the others."""


def requests_of(
    action: Administration, image: MetadataImage, *, topic_id: TopicId
) -> tuple[AdminRequest | DeleteRecordsRequest, ...]:
    """Returns the requests of an action, in order.

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
            again = CreateTopicsRequest(topics=(existing_topic(name, image).creatable(topic_id),))
            return (DeleteTopicsRequest(topics=(name,)), again)
        case CreatePartitions(name=name, count=count):
            return (CreatePartitionsRequest(topics=(CreatablePartitions(name=name, count=count),)),)
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
        case DeleteRecords(partition=partition, offset=offset):
            below = DeleteRecordsTarget(topic=partition.topic, partition=partition.partition, offset=offset)
            return (DeleteRecordsRequest(partitions=(below,), timeout_ms=DELETE_RECORDS_TIMEOUT_MS),)
        case _:
            assert_never(action)


def existing_topic(name: str, image: MetadataImage) -> PlannedTopic:
    """Returns a topic as it is committed: its replicas and its configuration."""
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


def actions_of(request: Request) -> Iterator[Administration]:
    """Yields the actions that a request was, none for one that changes nothing.

    A topic whose replicas the controller chooses has none, and an election in all partitions names none.
    """
    match request:
        case (
            CreatePartitionsRequest(validate_only=True)
            | IncrementalAlterConfigsRequest(validate_only=True)
            | UpdateFeaturesRequest(validate_only=True)
        ):
            return
        case CreateTopicsRequest(topics=created):
            for topic in created:
                yield CreateTopic(
                    topic=PlannedTopic(name=topic.name, replicas=topic.assignments, properties=topic.configs)
                )
        case DeleteTopicsRequest(topics=deleted):
            for name in deleted:
                yield DeleteTopic(name=name)
        case CreatePartitionsRequest(topics=grown):
            for each in grown:
                yield CreatePartitions(name=each.name, count=each.count)
        case IncrementalAlterConfigsRequest(resources=resources):
            for resource in resources:
                changes = tuple((config.name, config.value) for config in resource.configs)
                name = resource.resource_name
                yield AlterConfig(config=ConfigChange(resource=resource.resource, name=name, changes=changes))
        case ElectLeadersRequest():
            yield _election(request)
        case AlterPartitionReassignmentsRequest(partitions=partitions):
            for target in partitions:
                partition = TopicPartition(target.topic, target.partition)
                if target.replicas is None:
                    yield CancelReassignment(partition=partition)
                else:
                    yield Reassign(partition=partition, replicas=target.replicas)
        case UpdateFeaturesRequest(feature_updates=updates):
            for update in updates:
                level = FeatureLevel(update.feature, update.max_version_level)
                yield UpdateFeature(target=level, upgrade_type=update.upgrade_type)
        case UnregisterBrokerRequest(broker_id=broker_id):
            yield UnregisterBroker(broker_id=broker_id)
        case DeleteRecordsRequest(partitions=targets):
            for asked in targets:
                yield DeleteRecords(partition=TopicPartition(asked.topic, asked.partition), offset=asked.offset)
        case _:
            return


def _election(request: ElectLeadersRequest) -> ElectLeaders:
    wanted = request.partitions or ()
    return ElectLeaders(
        election=RequestedElection(request.election_type),
        partitions=tuple(TopicPartition(each.topic, each.partition) for each in wanted),
        leader=wanted[0].desired_leader if wanted else None,
    )


def errors_of(response: Response) -> list[tuple[ErrorCode, str]]:
    """Returns the error and message for each subject of a response, in request order."""
    match response:
        case (
            CreateTopicsResponse(topics=topics)
            | DeleteTopicsResponse(topics=topics)
            | CreatePartitionsResponse(topics=topics)
        ):
            return [(each.error, each.error_message) for each in topics]
        case IncrementalAlterConfigsResponse(resources=resources):
            return [(each.error, each.error_message) for each in resources]
        case ElectLeadersResponse() | AlterPartitionReassignmentsResponse():
            if response.error is not ErrorCode.NONE:
                return [(response.error, response.error_message)]
            return [(each.error, each.error_message) for each in response.partitions]
        case DeleteRecordsResponse(partitions=partitions):
            return [(each.error, "") for each in partitions]
        case UpdateFeaturesResponse() | UnregisterBrokerResponse():
            return [(response.error, response.error_message)]
        case _:
            raise AssertionError(f"{response} answers no administrator")
