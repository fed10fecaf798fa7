"""Does what a scenario asks of the controller, and says how it was answered.

An answer that the step does not allow ends the plan: what follows would be another story.
"""

from random import Random
from typing import assert_never

from chaos.administration import (
    Administration,
    AlterConfig,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    Reassign,
    UnregisterBroker,
    UpdateFeature,
    creatable,
)
from chaos.scene import Scene
from chaos.waiting import Missed
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
from emulator.core.messages import Response


async def administer(scene: Scene, wish: Administration, *, chance: Random) -> str:
    """Asks the controller and returns its answer in words; ``chance`` draws the id of a new topic.

    Raises:
        Missed: it was answered in a way that the step does not allow.
        EmulatorError: it was not answered.
    """
    answers = _answers(await scene.ask_controller(_request(wish, chance))) or [(ErrorCode.NONE, "")]
    text = ", ".join(f"{error.name} ({message})" if message else error.name for error, message in answers)
    unexpected = [error for error, _ in answers if error not in wish.answers]
    if unexpected:
        allowed = ", ".join(error.name for error in wish.answers)
        raise Missed(f"the controller answered {text}, allowed: {allowed}")
    return text


def _request(wish: Administration, chance: Random) -> AdminRequest:
    match wish:
        case CreateTopic(topic=topic):
            return CreateTopicsRequest(topics=(creatable(topic, chance=chance),))
        case DeleteTopic(name=name):
            return DeleteTopicsRequest(topics=(name,))
        case AlterConfig(resource=resource, resource_name=name, changes=changes):
            configs = tuple(_config(key, value) for key, value in changes)
            return IncrementalAlterConfigsRequest(
                resources=(AlterConfigsResource(resource=resource, resource_name=name, configs=configs),)
            )
        case ElectLeaders(election=election, partitions=partitions, leader=leader):
            return ElectLeadersRequest(
                election_type=int(election),
                partitions=tuple(
                    ElectablePartition(topic=each.topic, partition=each.partition, desired_leader=leader)
                    for each in partitions
                ),
            )
        case Reassign(partition=partition, replicas=replicas):
            target = ReassignablePartition(topic=partition.topic, partition=partition.partition, replicas=replicas)
            return AlterPartitionReassignmentsRequest(partitions=(target,))
        case UpdateFeature(feature=feature, level=level, upgrade_type=upgrade_type):
            update = FeatureUpdate(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
            return UpdateFeaturesRequest(feature_updates=(update,))
        case UnregisterBroker(broker_id=broker_id):
            return UnregisterBrokerRequest(broker_id=broker_id)
        case _:
            assert_never(wish)


def _config(name: str, value: str | None) -> AlterableConfig:
    operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
    return AlterableConfig(name=name, operation=operation, value=value)


def _answers(response: Response) -> list[tuple[ErrorCode, str]]:
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
            raise AssertionError(f"no administrator asked for {response}")
