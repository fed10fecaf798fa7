"""A topic that is deleted and created again while its broker looks away: one difference of two images, two logs."""

import pytest

from laststand.emulator.core import effects, messages, records
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerId, TopicId
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, TOPIC_ID
from tests.unit.core.broker.kraft.test_broker_steps import Life, error_of, fetch, produce

NEW_ID = TopicId("id-of-the-next-orders")


def recreate(life: Life) -> list[object]:
    return list(
        life.metadata(
            records.RemoveTopicRecord(topic_id=TOPIC_ID),
            records.TopicRecord(name=NAME.topic, topic_id=NEW_ID),
            records.PartitionRecord(topic_id=NEW_ID, partition=0, replicas=(OWN, FIRST), isr=(OWN,), leader=OWN),
        )
    )


def answered(life: Life, request: messages.ProduceRequest) -> tuple[messages.ProducePartitionResponse, ...]:
    answer = life.answers[life.ask(request)]
    assert isinstance(answer, messages.ProduceResponse)
    return answer.partitions


def test_the_old_log_goes_before_the_new_one_comes() -> None:
    life = Life()
    life.serve()
    files = [
        effect
        for effect in recreate(life)
        if isinstance(effect, effects.AppendToLog | effects.CreateLog | effects.DeleteLog)
    ]
    assert files == [effects.DeleteLog(partition=NAME), effects.CreateLog(partition=NAME, topic_id=NEW_ID)]


def test_records_of_the_old_topic_are_never_acknowledged_by_the_new_one() -> None:
    life = Life()
    life.serve()
    waiting = life.ask(produce())
    recreate(life)
    life.ask(produce(acks=1))
    assert error_of(life.answers[waiting]) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("switches", "error"),
    [(Switches(), ErrorCode.UNKNOWN_TOPIC_ID), (Switches(produce_topic_id=False), ErrorCode.NONE)],
)
def test_a_leader_that_is_behind_takes_no_records_for_the_next_topic(switches: Switches, error: ErrorCode) -> None:
    life = Life(switches=switches)
    life.serve()
    assert error_of(life.answers[life.ask(produce(acks=1, topic_id=NEW_ID))]) is error
    assert error_of(life.answers[life.ask(produce(acks=1, topic_id=TOPIC_ID))]) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("switches", "error", "hint"),
    [
        (Switches(), ErrorCode.UNKNOWN_TOPIC_ID, None),
        (Switches(produce_topic_id=False), ErrorCode.NOT_LEADER_OR_FOLLOWER, FIRST),
    ],
)
def test_who_led_the_topic_before_is_no_hint_about_the_next(
    switches: Switches, error: ErrorCode, hint: BrokerId | None
) -> None:
    life = Life(switches=switches)
    life.serve()
    life.metadata(records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, leader=FIRST))
    (early,) = answered(life, produce(topic_id=NEW_ID))
    assert (early.error, early.current_leader) == (error, hint)
    (timely,) = answered(life, produce(topic_id=TOPIC_ID))
    assert (timely.error, timely.current_leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, FIRST)


def test_who_leads_the_next_topic_is_no_hint_to_whoever_waited_for_the_one_before() -> None:
    life = Life(switches=Switches())
    life.serve()
    waiting = life.ask(produce(topic_id=TOPIC_ID))
    recreate(life)
    answer = life.answers[waiting]
    assert isinstance(answer, messages.ProduceResponse)
    assert (answer.partitions[0].error, answer.partitions[0].current_leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, None)


def test_a_parked_fetch_of_the_old_topic_is_answered_with_its_end() -> None:
    life = Life()
    life.serve()
    parked = life.ask(fetch(0))
    recreate(life)
    answer = life.answers[parked]
    assert isinstance(answer, messages.FetchResponse)
    assert answer.partitions[0].error is ErrorCode.UNKNOWN_TOPIC_ID
