"""A log directory that could not be loaded: reported, and what may lie in it is neither served nor made again."""

from laststand.emulator.core import inputs, messages, records
from laststand.emulator.core.effects import CreateLog, SendRequest
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import MetadataOffset, TopicId, TopicPartition
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, TOPIC_ID
from tests.unit.core.broker.kraft.test_broker_steps import CAUSE, OWN_EPOCH, Life, error_of, produce, registered
from tests.unit.core.broker.replicas.test_follower import loaded

NEW_ID = TopicId("id-of-the-next-orders")


def returned(
    *, failed: tuple[str, ...], logs: tuple[inputs.LoadedLog, ...] = ()
) -> tuple[Life, list[object], list[str]]:
    """Comes up as replica of a partition; returns what was wanted, and what was reported."""
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    life.step(inputs.MetadataStreamOpened(cause_id=CAUSE, end_offset=MetadataOffset(4)))
    life.register()
    life.metadata(
        registered(OWN, OWN_EPOCH),
        registered(FIRST, 6),
        records.TopicRecord(name=NAME.topic, topic_id=TOPIC_ID),
        records.PartitionRecord(topic_id=TOPIC_ID, partition=0, replicas=(OWN, FIRST), isr=(OWN, FIRST), leader=OWN),
    )
    effects: list[object] = list(life.step(inputs.LogsLoaded(cause_id=CAUSE, logs=logs, failed_log_dirs=failed)))
    sent = life.take(messages.BrokerHeartbeatRequest)
    response = messages.BrokerHeartbeatResponse(error=ErrorCode.NONE, is_caught_up=True, is_fenced=False)
    effects += life.answer(sent, response)
    reported = [
        directory
        for effect in effects
        if isinstance(effect, SendRequest) and isinstance(effect.request, messages.BrokerHeartbeatRequest)
        for directory in effect.request.offline_log_dirs
    ]
    return life, effects, reported


def created(effects: list[object]) -> list[TopicPartition]:
    return [effect.partition for effect in effects if isinstance(effect, CreateLog)]


def test_with_all_directories_a_missing_log_is_made() -> None:
    life, effects, reported = returned(failed=())
    assert created(effects) == [NAME]
    assert reported == []
    assert error_of(life.answers[life.ask(produce(acks=1))]) is ErrorCode.NONE


def test_no_empty_log_takes_the_place_of_one_that_is_out_of_reach() -> None:
    life, effects, reported = returned(failed=("directory-b",))
    assert created(effects) == []
    assert reported == ["directory-b"]
    assert error_of(life.answers[life.ask(produce(acks=1))]) is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_partition_that_is_new_gets_its_log() -> None:
    life, _, _ = returned(failed=("directory-b",))
    effects: list[object] = list(
        life.metadata(
            records.RemoveTopicRecord(topic_id=TOPIC_ID),
            records.TopicRecord(name=NAME.topic, topic_id=NEW_ID),
            records.PartitionRecord(topic_id=NEW_ID, partition=0, replicas=(OWN, FIRST), isr=(OWN,), leader=OWN),
        )
    )
    assert created(effects) == [NAME]
    assert error_of(life.answers[life.ask(produce(acks=1))]) is ErrorCode.NONE


def test_partitions_whose_logs_were_found_are_served() -> None:
    life, _, _ = returned(failed=("directory-b",), logs=(loaded(()),))
    assert error_of(life.answers[life.ask(produce(acks=1))]) is ErrorCode.NONE
