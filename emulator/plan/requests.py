"""An administrator's actions as requests, and their responses; all but DeleteRecords go to the controller."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclOperation,
    ResourceType,
    matching_filter,
)
from laststand.emulator.core.controller.elect_leaders import election_requests
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.requester import node_principal
from laststand.emulator.core.types import BrokerId, ConfigResource, NodeId, TopicId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.administration_fields import ConfigChange, FeatureLevel
from laststand.emulator.plan.topics import PlannedTopic

DELETE_RECORDS_TIMEOUT_MS: Final = 4_000
"""Time for which a leader waits for its followers. One in touch needs a single fetch; no plan waits for the others."""


def requests_of(
    action: actions.Administration, image: MetadataImage, *, topic_id: TopicId
) -> tuple[admin_messages.AdminRequest | messages.DeleteRecordsRequest, ...]:
    """Returns the requests of an action, in order.

    Args:
        action: the action.
        image: committed metadata, which has the replicas and configuration of a topic to recreate.
        topic_id: of a topic that is created.
    """
    match action:
        case actions.CreateTopic(topic=topic):
            return (admin_messages.CreateTopicsRequest(topics=(topic.creatable(topic_id),)),)
        case actions.DeleteTopic(name=name):
            return (admin_messages.DeleteTopicsRequest(topics=(name,)),)
        case actions.RecreateTopic(name=name):
            again = admin_messages.CreateTopicsRequest(topics=(existing_topic(name, image).creatable(topic_id),))
            return (admin_messages.DeleteTopicsRequest(topics=(name,)), again)
        case actions.CreatePartitions(name=name, count=count):
            return (
                admin_messages.CreatePartitionsRequest(
                    topics=(admin_messages.CreatablePartitions(name=name, count=count),)
                ),
            )
        case actions.AlterConfig(config=config):
            configs = tuple(_config(key, value) for key, value in config.changes)
            resource = admin_messages.AlterConfigsResource(
                resource=config.resource, resource_name=config.name, configs=configs
            )
            return (admin_messages.IncrementalAlterConfigsRequest(resources=(resource,)),)
        case actions.ElectLeaders(election=election, partitions=partitions, leader=leader):
            electable = tuple(
                admin_messages.ElectablePartition(topic=each.topic, partition=each.partition, desired_leader=leader)
                for each in partitions
            )
            return election_requests(int(election), electable)
        case actions.Reassign(partition=partition, replicas=replicas):
            return (_reassignment(partition, replicas),)
        case actions.CancelReassignment(partition=partition):
            return (_reassignment(partition, None),)
        case actions.UpdateFeature(target=target, upgrade_type=upgrade_type):
            update = admin_messages.FeatureUpdate(
                feature=target.feature, max_version_level=target.level, upgrade_type=upgrade_type
            )
            return (admin_messages.UpdateFeaturesRequest(feature_updates=(update,)),)
        case actions.UnregisterBroker(broker_id=broker_id):
            return (admin_messages.UnregisterBrokerRequest(broker_id=broker_id),)
        case actions.DeleteRecords(partition=partition, offset=offset):
            below = messages.DeleteRecordsTarget(topic=partition.topic, partition=partition.partition, offset=offset)
            return (messages.DeleteRecordsRequest(partitions=(below,), timeout_ms=DELETE_RECORDS_TIMEOUT_MS),)
        case _:
            assert_never(action)


def permission_request(action: actions.Grant[NodeId] | actions.Revoke[NodeId]) -> admin_messages.AdminRequest:
    """Returns the request that adds or removes the entries of an action: one entry for each node."""
    entries = tuple(
        AccessControlEntry(
            resource_type=ResourceType.CLUSTER if action.topic is None else ResourceType.TOPIC,
            resource_name=CLUSTER_NAME if action.topic is None else action.topic,
            principal=node_principal(node_id),
            operation=AclOperation[action.operation.name],
        )
        for node_id in action.nodes
    )
    if isinstance(action, actions.Grant):
        return admin_messages.CreateAclsRequest(acls=entries)
    return admin_messages.DeleteAclsRequest(filters=tuple(map(matching_filter, entries)))


def existing_topic(name: str, image: MetadataImage) -> PlannedTopic:
    """Returns a topic as committed: its replicas and its configuration."""
    states = [state for partition, state in sorted(image.partitions.items()) if partition.topic == name]
    return PlannedTopic(
        name=name,
        replicas=tuple(state.replicas for state in states),
        properties=tuple(sorted(image.configs(ConfigResource.TOPIC, name).items())),
    )


def _config(name: str, value: str | None) -> admin_messages.AlterableConfig:
    operation = admin_messages.ConfigOperation.DELETE if value is None else admin_messages.ConfigOperation.SET
    return admin_messages.AlterableConfig(name=name, operation=operation, value=value)


def _reassignment(
    partition: TopicPartition, replicas: tuple[BrokerId, ...] | None
) -> admin_messages.AlterPartitionReassignmentsRequest:
    target = admin_messages.ReassignablePartition(
        topic=partition.topic, partition=partition.partition, replicas=replicas
    )
    return admin_messages.AlterPartitionReassignmentsRequest(partitions=(target,))


def actions_of(request: messages.Request) -> Iterator[actions.Administration]:
    """Yields the actions that a request corresponds to; none for a request that changes nothing.

    A topic whose replicas the controller chooses has no action, and an election in all partitions names none.
    """
    match request:
        case (
            admin_messages.CreatePartitionsRequest(validate_only=True)
            | admin_messages.IncrementalAlterConfigsRequest(validate_only=True)
            | admin_messages.UpdateFeaturesRequest(validate_only=True)
        ):
            return
        case admin_messages.CreateTopicsRequest(topics=created):
            for topic in created:
                yield actions.CreateTopic(
                    topic=PlannedTopic(name=topic.name, replicas=topic.assignments, properties=topic.configs)
                )
        case admin_messages.DeleteTopicsRequest(topics=deleted):
            for name in deleted:
                yield actions.DeleteTopic(name=name)
        case admin_messages.CreatePartitionsRequest(topics=grown):
            for each in grown:
                yield actions.CreatePartitions(name=each.name, count=each.count)
        case admin_messages.IncrementalAlterConfigsRequest(resources=resources):
            for resource in resources:
                changes = tuple((config.name, config.value) for config in resource.configs)
                name = resource.resource_name
                yield actions.AlterConfig(config=ConfigChange(resource=resource.resource, name=name, changes=changes))
        case admin_messages.ElectLeadersRequest():
            yield _election(request)
        case admin_messages.AlterPartitionReassignmentsRequest(partitions=partitions):
            for target in partitions:
                partition = TopicPartition(target.topic, target.partition)
                if target.replicas is None:
                    yield actions.CancelReassignment(partition=partition)
                else:
                    yield actions.Reassign(partition=partition, replicas=target.replicas)
        case admin_messages.UpdateFeaturesRequest(feature_updates=updates):
            for update in updates:
                level = FeatureLevel(update.feature, update.max_version_level)
                yield actions.UpdateFeature(target=level, upgrade_type=update.upgrade_type)
        case admin_messages.UnregisterBrokerRequest(broker_id=broker_id):
            yield actions.UnregisterBroker(broker_id=broker_id)
        case messages.DeleteRecordsRequest(partitions=targets):
            for asked in targets:
                yield actions.DeleteRecords(partition=TopicPartition(asked.topic, asked.partition), offset=asked.offset)
        case _:
            return


def _election(request: admin_messages.ElectLeadersRequest) -> actions.ElectLeaders:
    wanted = request.partitions or ()
    return actions.ElectLeaders(
        election=admin_messages.RequestedElection(request.election_type),
        partitions=tuple(TopicPartition(each.topic, each.partition) for each in wanted),
        leader=wanted[0].desired_leader if wanted else None,
    )


def errors_of(response: messages.Response) -> list[tuple[ErrorCode, str]]:
    """Returns the error and message for each subject of a response, in request order."""
    match response:
        case (
            admin_messages.CreateTopicsResponse(topics=topics)
            | admin_messages.DeleteTopicsResponse(topics=topics)
            | admin_messages.CreatePartitionsResponse(topics=topics)
        ):
            return [(each.error, each.error_message) for each in topics]
        case admin_messages.IncrementalAlterConfigsResponse(resources=resources):
            return [(each.error, each.error_message) for each in resources]
        case admin_messages.ElectLeadersResponse() | admin_messages.AlterPartitionReassignmentsResponse():
            if response.error is not ErrorCode.NONE:
                return [(response.error, response.error_message)]
            return [(each.error, each.error_message) for each in response.partitions]
        case messages.DeleteRecordsResponse(partitions=partitions):
            return [(each.error, "") for each in partitions]
        case admin_messages.UpdateFeaturesResponse() | admin_messages.UnregisterBrokerResponse():
            return [(response.error, response.error_message)]
        case _:
            raise AssertionError(f"{response} answers no administrator")


def described_answers(answers: Iterable[tuple[ErrorCode, str]]) -> str:
    """Returns errors and messages as a text, in their order; equal ones are counted."""
    counts = Counter(f"{error.name} ({message})" if message else error.name for error, message in answers)
    return ", ".join(text if count == 1 else f"{count} x {text}" for text, count in counts.items())
