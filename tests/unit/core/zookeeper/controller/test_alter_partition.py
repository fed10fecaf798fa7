"""AlterIsr and AlterPartition: what is answered, by version of the request and rules of the release."""

from collections.abc import Sequence

import msgspec
import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerEpoch,
    LeaderEpoch,
    LeaderRecoveryState,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages, operations
from laststand.emulator.core.zookeeper.nodes import paths
from tests.unit.core.zookeeper.controller.controllers import ORDERS, TOPIC_ID, Cluster, alter, broker, isr_change

UNKNOWN_ID = TopicId("AAAAAAAAAAcAAAAAAAAACA")


def with_partitions(
    request: messages.AlterPartitionRequest, *partitions: messages.AlterPartitionData
) -> messages.AlterPartitionRequest:
    return msgspec.structs.replace(request, partitions=partitions)


def results(cluster: Cluster, request: messages.AlterPartitionRequest) -> Sequence[messages.AlterPartitionResult]:
    response = cluster.ask(1, request)
    assert isinstance(response, messages.AlterPartitionResponse)
    return response.partitions


def test_a_change_is_answered_with_the_state_that_was_written() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2, 3)
    change = isr_change(cluster, 1, 2)
    written = messages.AlterPartitionResult(
        topic=ORDERS.topic,
        topic_id=TOPIC_ID,
        partition=ORDERS.partition,
        error=ErrorCode.NONE,
        leader=broker(1),
        leader_epoch=LeaderEpoch(0),
        isr=(broker(1), broker(2)),
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
        partition_epoch=PartitionEpoch(1),
    )
    assert results(cluster, change) == (written,)


@pytest.mark.parametrize(("era", "is_early"), [("kafka-3.9-zk", False), ("kip-550-zk", True)])
def test_a_change_is_answered_after_the_write_or_before_it_as_the_rule_says(era: str, *, is_early: bool) -> None:
    cluster = Cluster(1, 2, 3, era=era)
    cluster.create_topic(1, 2, 3)
    answers: list[messages.AlterPartitionResponse] = []
    program = cluster[1].term.alter_partition.handle(isr_change(cluster, 1, 2), answers.append)
    (write,) = next(program)
    assert isinstance(write, operations.Transaction)
    assert [result.error for answer in answers for result in answer.partitions] == [ErrorCode.NONE] * is_early


def test_what_is_refused_is_refused_before_anything_is_written() -> None:
    cluster = Cluster(1, 2, 3, era="kip-550-zk")
    cluster.create_topic(1, 2)
    change = isr_change(cluster, 1)
    (data,) = change.partitions
    elsewhere = msgspec.structs.replace(data, new_isr=(messages.IsrMember(broker(1)), messages.IsrMember(broker(3))))
    answers: list[messages.AlterPartitionResponse] = []
    program = cluster[1].term.alter_partition.handle(with_partitions(change, elsewhere, data), answers.append)
    next(program)
    errors = [result.error for answer in answers for result in answer.partitions]
    assert errors == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]


def test_a_recovering_leader_is_informed_of_its_state_and_adds_no_member() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3, unclean=True)
    alter(cluster, isr_change(cluster, 2, sender=2))
    cluster.lose(2)
    (data,) = isr_change(cluster, 3, sender=3).partitions
    data = msgspec.structs.replace(data, leader_recovery_state=LeaderRecoveryState.RECOVERING)
    request = msgspec.structs.replace(with_partitions(isr_change(cluster, 3, sender=3), data), api_version=1)
    (as_it_is,) = results(cluster, request)
    assert (as_it_is.error, as_it_is.leader_recovery_state) == (ErrorCode.NONE, LeaderRecoveryState.RECOVERING)
    members = tuple(messages.IsrMember(broker(number), None) for number in (3, 1))
    expanded = with_partitions(request, msgspec.structs.replace(data, new_isr=members))
    assert [result.error for result in results(cluster, expanded)] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(("api_version", "error"), [(0, ErrorCode.NONE), (1, ErrorCode.INVALID_REQUEST)])
def test_version_0_says_nothing_of_recovery(api_version: int, error: ErrorCode) -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic(1, 2)
    change = isr_change(cluster, 1)
    (data,) = change.partitions
    data = msgspec.structs.replace(data, leader_recovery_state=LeaderRecoveryState.RECOVERING)
    request = msgspec.structs.replace(with_partitions(change, data), api_version=api_version)
    assert [result.error for result in results(cluster, request)] == [error]


def test_a_partition_of_which_nobody_knows_the_topics_id_keeps_no_other_from_its_change() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic(1, 2)
    change = isr_change(cluster, 1)
    (data,) = change.partitions
    unknown = msgspec.structs.replace(data, topic_id=UNKNOWN_ID)
    answered = results(cluster, with_partitions(change, unknown, data))
    assert [(result.topic_id, result.error) for result in answered] == [
        (UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID),
        (TOPIC_ID, ErrorCode.NONE),
    ]


@pytest.mark.parametrize(
    ("api_version", "name", "error"),
    [
        (1, ORDERS.topic, ErrorCode.OPERATION_NOT_ATTEMPTED),
        (2, "", ErrorCode.INELIGIBLE_REPLICA),
        (3, "", ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_since_version_2_topics_go_by_id_and_a_member_that_is_not_alive_is_called_ineligible(
    api_version: int, name: str, error: ErrorCode
) -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic(1, 2, 3)
    change = isr_change(cluster, 1, 2, 3)
    (data,) = change.partitions
    request = msgspec.structs.replace(
        with_partitions(change, msgspec.structs.replace(data, topic=name)), api_version=api_version
    )
    assert [result.error for result in results(cluster, request)] == [error]


def test_a_partition_without_a_state_node_fails_alone() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic(1, 2, others=[(1, 2)])
    other = TopicPartition(ORDERS.topic, 1)
    partitions = (*isr_change(cluster, 1).partitions, *isr_change(cluster, 1, name=other).partitions)
    request = with_partitions(isr_change(cluster, 1), *partitions)
    cluster.write(operations.Delete(path=paths.state_node(ORDERS), version=None))
    errors = [result.error for result in results(cluster, request)]
    assert errors == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]


def test_with_the_kip_all_replicas_may_be_members() -> None:
    cluster = Cluster(1, 2, era="kip-550-zk")
    cluster.create_topic(1, 2)
    alter(cluster, isr_change(cluster, 1))
    assert alter(cluster, isr_change(cluster, 1, 2)) is ErrorCode.NONE


def test_a_change_that_was_written_is_sent_to_every_broker() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2)
    told_before = {number: len(cluster[number].told) for number in (1, 2, 3)}
    assert alter(cluster, isr_change(cluster, 1)) is ErrorCode.NONE
    for number, before in told_before.items():
        (update,) = cluster[number].told[before:]
        assert isinstance(update, control_messages.UpdateMetadataRequest)
        assert [(state.name, state.isr) for state in update.partitions] == [(ORDERS, (broker(1),))]


@pytest.mark.parametrize("era", ["kafka-3.1-zk", "kafka-3.9-zk", "kip-550-zk"])
def test_a_leader_of_an_older_epoch_changes_nothing(era: str) -> None:
    cluster = Cluster(1, 2, 3, era=era)
    cluster.create_topic(2, 3)
    late = isr_change(cluster, 2, sender=2)
    cluster.lose(3)
    cluster.start(3)
    alter(cluster, isr_change(cluster, 2, 3, sender=2))
    cluster.lose(2)
    late = msgspec.structs.replace(late, broker_id=broker(3), broker_epoch=BrokerEpoch(cluster[3].broker_epochs[-1]))
    before = cluster.shown()
    assert [result.error for result in results(cluster, late)] == [ErrorCode.FENCED_LEADER_EPOCH]
    assert cluster.shown() == before


@pytest.mark.parametrize("era", ["kafka-3.1-zk", "kafka-3.9-zk", "kip-550-zk"])
def test_a_broker_of_a_former_registration_or_of_none_changes_nothing(era: str) -> None:
    cluster = Cluster(1, 2, era=era)
    cluster.create_topic(1, 2)
    change = isr_change(cluster, 1)
    before = cluster.shown()
    former = msgspec.structs.replace(change, broker_epoch=BrokerEpoch(change.broker_epoch - 1))
    unknown = msgspec.structs.replace(change, broker_id=broker(7))
    for request in (former, unknown):
        assert cluster.ask(1, request) == messages.AlterPartitionResponse(error=ErrorCode.STALE_BROKER_EPOCH)
    assert cluster.shown() == before
