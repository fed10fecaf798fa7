"""Requests of a step to the controller, and the answers that the step takes."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import cast

import pytest

from laststand.chaos.play.administration import administer
from laststand.chaos.play.target import Target
from laststand.chaos.play.waiting import StepError
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.types import (
    BrokerId,
    ConfigResource,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.plan.actions import (
    Administration,
    AlterConfig,
    CancelReassignment,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    ElectLeaders,
    Outcome,
    UnregisterBroker,
    UpdateFeature,
)
from laststand.emulator.plan.administration_fields import ConfigChange, FeatureLevel
from laststand.emulator.plan.requests import actions_of
from laststand.emulator.plan.topics import PlannedTopic

ORDERS = TopicPartition("orders", 0)
ONE = BrokerId(NodeId(1))
REFUSED = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Controller:
    """Keeps what it was asked, and answers every part of it with one error."""

    def __init__(self, error: ErrorCode) -> None:
        self.image = MetadataImage()
        self.asked: list[admin_messages.AdminRequest] = []
        self._error = error

    async def ask_controller(self, request: messages.Request) -> messages.Response:
        assert isinstance(request, admin_messages.AdminRequest)
        self.asked.append(request)
        part = admin_messages.PartitionResult(topic="orders", partition=0, error=self._error)
        topic = admin_messages.TopicResult(name="orders", error=self._error)
        match request:
            case admin_messages.CreateTopicsRequest():
                return admin_messages.CreateTopicsResponse(topics=(topic,))
            case admin_messages.DeleteTopicsRequest():
                return admin_messages.DeleteTopicsResponse(topics=(topic,))
            case admin_messages.IncrementalAlterConfigsRequest():
                result = admin_messages.ConfigResourceResult(
                    resource=ConfigResource.TOPIC, resource_name="orders", error=self._error
                )
                return admin_messages.IncrementalAlterConfigsResponse(resources=(result,))
            case admin_messages.ElectLeadersRequest():
                return admin_messages.ElectLeadersResponse(error=ErrorCode.NONE, partitions=(part,))
            case admin_messages.AlterPartitionReassignmentsRequest():
                return admin_messages.AlterPartitionReassignmentsResponse(error=self._error, partitions=())
            case admin_messages.UpdateFeaturesRequest():
                return admin_messages.UpdateFeaturesResponse(error=self._error)
            case admin_messages.UnregisterBrokerRequest():
                return admin_messages.UnregisterBrokerResponse(error=self._error)
            case _:
                raise AssertionError(request)


def ask(action: Administration, error: ErrorCode = ErrorCode.NONE) -> tuple[admin_messages.AdminRequest, Outcome]:
    controller = Controller(error)
    outcome = asyncio.run(administer(cast(Target, controller), action, chance=Random(1)))
    (asked,) = controller.asked
    return asked, outcome


class NewController(Controller):
    """Says that it is not the controller until it was given time."""

    def __init__(self, *, pauses: int) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER)
        self.pauses_left = pauses

    async def pause(self, *, duration_ms: int) -> None:
        assert duration_ms == 100
        self.pauses_left -= 1
        if self.pauses_left == 0:
            self._error = ErrorCode.NONE


def actions(*answers: ErrorCode) -> list[Administration]:
    plan = PlannedTopic(name="orders", replicas=((ONE,),), properties=(("min.insync.replicas", "1"),))
    changes = (("min.insync.replicas", "1"), ("retention.ms", None))
    return [
        CreateTopic(topic=plan, answers=answers),
        DeleteTopic(name="orders", answers=answers),
        AlterConfig(
            config=ConfigChange(resource=ConfigResource.TOPIC, name="orders", changes=changes), answers=answers
        ),
        ElectLeaders(
            election=admin_messages.RequestedElection.DESIGNATED, partitions=(ORDERS,), leader=ONE, answers=answers
        ),
        CancelReassignment(partition=ORDERS, answers=answers),
        UpdateFeature(target=FeatureLevel("f", 1), answers=answers),
        UnregisterBroker(broker_id=ONE, answers=answers),
    ]


@pytest.mark.parametrize("action", actions(ErrorCode.NONE), ids=lambda action: type(action).__name__)
def test_an_answer_that_the_step_does_not_allow_ends_the_plan(action: Administration) -> None:
    assert ask(action)[1] == Outcome(took_effect=True, affected=True, seen="NONE")
    with pytest.raises(StepError, match="UNKNOWN_TOPIC_OR_PARTITION, allowed: NONE"):
        ask(action, REFUSED)


@pytest.mark.parametrize("action", actions(REFUSED), ids=lambda action: type(action).__name__)
def test_a_step_may_ask_for_a_refusal(action: Administration) -> None:
    assert ask(action, REFUSED)[1] == Outcome(took_effect=False, affected=False, seen="UNKNOWN_TOPIC_OR_PARTITION")
    with pytest.raises(StepError, match="NONE, allowed: UNKNOWN_TOPIC_OR_PARTITION"):
        ask(action)


@pytest.mark.parametrize("action", actions(ErrorCode.NONE), ids=lambda action: type(action).__name__)
def test_a_controller_that_is_not_active_yet_is_asked_again(action: Administration) -> None:
    elected = NewController(pauses=3)
    assert asyncio.run(administer(cast(Target, elected), action, chance=Random(1))).took_effect
    assert len(elected.asked) == 4
    nobody = NewController(pauses=-1)
    with pytest.raises(StepError, match="NOT_CONTROLLER, allowed: NONE"):
        asyncio.run(administer(cast(Target, nobody), action, chance=Random(1)))


def test_a_step_may_ask_for_no_controller() -> None:
    (create, *_) = actions(ErrorCode.NOT_CONTROLLER)
    assert not ask(create, ErrorCode.NOT_CONTROLLER)[1].took_effect


def test_the_request_says_what_the_step_says() -> None:
    asked = [ask(action)[0] for action in actions(ErrorCode.NONE)]
    create, delete, configs, elect, reassign, feature, unregister = asked
    assert isinstance(create, admin_messages.CreateTopicsRequest)
    assert create.topics[0].assignments == ((ONE,),)
    assert create.topics[0].configs == (("min.insync.replicas", "1"),)
    assert delete == admin_messages.DeleteTopicsRequest(topics=("orders",))
    assert isinstance(configs, admin_messages.IncrementalAlterConfigsRequest)
    assert [(each.name, each.operation, each.value) for each in configs.resources[0].configs] == [
        ("min.insync.replicas", admin_messages.ConfigOperation.SET, "1"),
        ("retention.ms", admin_messages.ConfigOperation.DELETE, None),
    ]
    assert isinstance(elect, admin_messages.ElectLeadersRequest)
    assert elect.election_type == 2
    assert elect.partitions is not None
    assert (elect.partitions[0].topic_partition, elect.partitions[0].desired_leader) == (ORDERS, ONE)
    assert isinstance(reassign, admin_messages.AlterPartitionReassignmentsRequest)
    assert (reassign.partitions[0].topic_partition, reassign.partitions[0].replicas) == (ORDERS, None)
    assert isinstance(feature, admin_messages.UpdateFeaturesRequest)
    assert (feature.feature_updates[0].feature, feature.feature_updates[0].max_version_level) == ("f", 1)
    assert unregister == admin_messages.UnregisterBrokerRequest(broker_id=ONE)


@pytest.mark.parametrize("action", actions(ErrorCode.NONE), ids=lambda action: type(action).__name__)
def test_a_request_can_be_put_on_record_as_the_action_that_it_was(action: Administration) -> None:
    assert list(actions_of(ask(action)[0])) == [action]


class Leader:
    """A cluster in which broker 1 leads, and answers as it is told, ``None`` for not at all."""

    def __init__(self, *answers: ErrorCode | None, leader: BrokerId | None = ONE) -> None:
        self.image = MetadataImage()
        self.image.partitions[ORDERS] = PartitionState(
            topic_id=TopicId("id"),
            replicas=(ONE,),
            isr=(ONE,),
            leader=leader,
            leader_epoch=LeaderEpoch(0),
            partition_epoch=PartitionEpoch(0),
        )
        self.asked: list[tuple[BrokerId, messages.Request]] = []
        self._answers = list(answers)

    async def ask_broker(self, broker_id: BrokerId, request: messages.Request) -> messages.Response | None:
        self.asked.append((broker_id, request))
        error = self._answers.pop(0)
        if error is None:
            return None
        return messages.DeleteRecordsResponse(
            partitions=(messages.DeleteRecordsResult(topic=ORDERS.topic, partition=ORDERS.partition, error=error),)
        )

    async def pause(self, *, duration_ms: int) -> None:
        assert duration_ms == 100


def delete(cluster: Leader, *, partition: TopicPartition = ORDERS, answers: tuple[ErrorCode, ...] = ()) -> Outcome:
    action = DeleteRecords(partition=partition, offset=Offset(5), answers=answers or (ErrorCode.NONE,))
    return asyncio.run(administer(cast(Target, cluster), action, chance=Random(1)))


def test_records_are_deleted_by_the_leader() -> None:
    cluster = Leader(ErrorCode.NONE)
    assert delete(cluster) == Outcome(took_effect=True, affected=True, seen="NONE")
    ((broker_id, request),) = cluster.asked
    assert broker_id == ONE
    assert isinstance(request, messages.DeleteRecordsRequest)
    assert [(each.topic, each.partition, each.offset) for each in request.partitions] == [("orders", 0, 5)]
    assert list(actions_of(request)) == [DeleteRecords(partition=ORDERS, offset=Offset(5))]


def test_a_broker_that_does_not_lead_yet_is_asked_again() -> None:
    cluster = Leader(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE)
    assert delete(cluster).took_effect
    assert len(cluster.asked) == 3


@pytest.mark.parametrize(
    ("cluster", "partition", "error"),
    [
        (lambda: Leader(ErrorCode.OFFSET_OUT_OF_RANGE), ORDERS, ErrorCode.OFFSET_OUT_OF_RANGE),
        (lambda: Leader(None), ORDERS, ErrorCode.NETWORK_EXCEPTION),
        (lambda: Leader(leader=None), ORDERS, ErrorCode.LEADER_NOT_AVAILABLE),
        (Leader, TopicPartition("refunds", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_leader_that_deletes_nothing_ends_the_plan_unless_the_step_allows_it(
    cluster: Callable[[], Leader], partition: TopicPartition, error: ErrorCode
) -> None:
    assert not delete(cluster(), partition=partition, answers=(error,)).took_effect
    with pytest.raises(StepError, match=f"the leader answered {error.name}, allowed: NONE"):
        delete(cluster(), partition=partition)
