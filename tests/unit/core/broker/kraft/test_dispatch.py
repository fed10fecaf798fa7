"""Inputs of a broker, and the part of it that gets each: what no test of a part sees."""

import msgspec
import pytest

from laststand.emulator.core import events, inputs, messages, records
from laststand.emulator.core.effects import RecordEvent, SendRequest
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.switches import Switches, Truncation
from laststand.emulator.core.types import (
    IsrAnswer,
    LeaderEpoch,
    MetadataOffset,
    Offset,
    ProducerId,
    RequestFailure,
    RequestId,
)
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, TOPIC_ID
from tests.unit.core.broker.kraft.test_broker_steps import CAUSE, Life, fetch, produce, registered


def serving(switches: Switches | None = None) -> Life:
    life = Life(switches or Switches())
    life.serve()
    return life


def sent(life: Life, kind: type[messages.Request]) -> SendRequest:
    """Takes the one request of a kind that is under way."""
    (request,) = [each for each in life.in_flight if isinstance(each.request, kind)]
    life.in_flight.remove(request)
    return request


def test_a_broker_lists_the_live_brokers() -> None:
    life = serving()
    cluster = life.answers[life.ask(messages.MetadataRequest(topics=(NAME.topic,)))]
    assert isinstance(cluster, messages.MetadataResponse)
    assert (cluster.brokers, cluster.controller_id) == ((OWN, FIRST), 100)
    assert [partition.leader for topic in cluster.topics for partition in topic.partitions] == [OWN]
    described = life.answers[life.ask(messages.DescribeTopicPartitionsRequest())]
    assert isinstance(described, messages.DescribeTopicPartitionsResponse)
    assert [topic.name for topic in described.topics] == [NAME.topic]


def test_a_request_that_waits_for_a_producer_id_fails_when_none_comes() -> None:
    life = serving()
    waiting = life.ask(messages.InitProducerIdRequest())
    asked = sent(life, messages.AllocateProducerIdsRequest)
    failure = RequestFailure.TIMED_OUT
    life.step(inputs.RequestFailed(cause_id=CAUSE, correlation_id=asked.correlation_id, failure=failure))
    answer = life.answers[waiting]
    assert isinstance(answer, messages.InitProducerIdResponse)
    assert answer.error is ErrorCode.BROKER_NOT_AVAILABLE


def test_a_block_that_is_too_small_for_all_who_wait_is_followed_by_another() -> None:
    life = serving()
    waiting = [life.ask(messages.InitProducerIdRequest()) for _ in range(2)]
    for start in (5, 9):
        block = messages.AllocateProducerIdsResponse(
            error=ErrorCode.NONE, producer_id_start=ProducerId(start), producer_id_len=1
        )
        life.answer(sent(life, messages.AllocateProducerIdsRequest), block)
    given: list[int | None] = []
    for request_id in waiting:
        answer = life.answers[request_id]
        assert isinstance(answer, messages.InitProducerIdResponse)
        given.append(answer.producer_id)
    assert given == [5, 9]


@pytest.mark.parametrize("end_offset", [0, 1])
def test_by_the_rule_of_kip_101_a_follower_cuts_where_the_leader_says_that_the_epoch_ends(end_offset: int) -> None:
    life = serving(Switches(truncation=Truncation.KIP_101))
    for _ in range(2):
        life.ask(produce(acks=1))
    life.metadata(records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, leader=FIRST))
    result = messages.EpochPositionResult(
        topic=NAME.topic, partition=0, error=ErrorCode.NONE, leader_epoch=LeaderEpoch(0), end_offset=Offset(end_offset)
    )
    life.answer(
        sent(life, messages.OffsetForLeaderEpochRequest), messages.OffsetForLeaderEpochResponse(partitions=(result,))
    )
    partition = life.broker.partition(NAME)
    assert partition is not None
    assert partition.log.log_end_offset == end_offset


def test_the_first_difference_begins_at_the_beginning() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    life.step(inputs.MetadataStreamOpened(cause_id=CAUSE, end_offset=MetadataOffset(1)))
    life.metadata(registered(FIRST, 0))
    life.metadata(registered(OWN, 1))
    effects = life.step(inputs.LogsLoaded(cause_id=CAUSE, logs=()))
    applied = [effect.event for effect in effects if isinstance(effect, RecordEvent)]
    assert [
        (event.start_offset, event.end_offset) for event in applied if isinstance(event, events.MetadataApplied)
    ] == [(0, 2)]


def test_a_change_that_another_one_is_in_the_way_of_is_taken_back() -> None:
    # The leader proposed, and was elected again before it was answered: the first proposal is still under way.
    life = serving()
    life.metadata(records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, isr=(OWN,)))
    life.ask(fetch(0))
    assert sent(life, messages.AlterPartitionRequest)
    life.metadata(records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, leader=OWN, isr=(OWN,)))
    again = fetch(0)
    (asked,) = again.partitions
    asked = msgspec.structs.replace(asked, current_leader_epoch=LeaderEpoch(1))
    request = inputs.RequestReceived(
        cause_id=CAUSE, request_id=RequestId(99), request=msgspec.structs.replace(again, partitions=(asked,))
    )
    told = [effect.event for effect in life.step(request) if isinstance(effect, RecordEvent)]
    assert [(event.error, event.outcome) for event in told if isinstance(event, events.AlterPartitionAnswered)] == [
        ("OPERATION_NOT_ATTEMPTED", IsrAnswer.REVERTED)
    ]
