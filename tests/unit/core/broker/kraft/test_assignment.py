"""Differences between two images that a broker acts on beside roles: configuration, wake-ups, leaving."""

from msgspec import UNSET, UnsetType

from laststand.emulator.core import events, inputs, messages, records
from laststand.emulator.core.broker.kraft.broker import PARTITIONS_PER_STEP
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.effects import BrokerEffect, RecordEvent
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    ConfigResource,
    MetadataOffset,
    RequestFailure,
    TopicId,
    TopicPartition,
)
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, SECOND, TOPIC_ID, batch
from tests.unit.core.broker.kraft.test_broker_steps import CAUSE, OWN_EPOCH, Life, error_of, fetch, produce, registered

MIN_ISR = "min.insync.replicas"
PAYMENTS, PAYMENTS_ID = TopicPartition("payments", 0), TopicId("id-of-payments")


def changed(
    broker_id: BrokerId, *, fenced: bool | UnsetType = UNSET, in_controlled_shutdown: bool | UnsetType = UNSET
) -> records.BrokerRegistrationChangeRecord:
    return records.BrokerRegistrationChangeRecord(
        broker_id=broker_id,
        broker_epoch=OWN_EPOCH if broker_id == OWN else BrokerEpoch(6),
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )


def serving() -> Life:
    life = Life()
    life.serve()
    return life


def partition_of(life: Life, name: TopicPartition = NAME) -> Partition:
    partition = life.broker.partition(name)
    assert partition is not None
    return partition


def sets(life: Life, resource: ConfigResource, name: str, min_isr: int) -> None:
    life.metadata(records.ConfigRecord(resource=resource, resource_name=name, name=MIN_ISR, value=str(min_isr)))


def test_a_default_of_the_cluster_holds_for_every_topic_and_a_topic_s_value_for_it_alone() -> None:
    life = serving()
    life.metadata(
        records.TopicRecord(name=PAYMENTS.topic, topic_id=PAYMENTS_ID),
        records.PartitionRecord(topic_id=PAYMENTS_ID, partition=0, replicas=(OWN, FIRST), isr=(OWN, FIRST), leader=OWN),
    )

    def min_isrs() -> list[int]:
        return [partition_of(life, name).topic_properties.min_insync_replicas for name in (NAME, PAYMENTS)]

    assert min_isrs() == [1, 1]
    sets(life, ConfigResource.BROKER, "", 2)
    assert min_isrs() == [2, 2]
    sets(life, ConfigResource.TOPIC, NAME.topic, 1)
    assert min_isrs() == [1, 2]


def creates_many(count: int) -> tuple[records.TopicRecord | records.PartitionRecord, ...]:
    """A topic that the broker leads, and that broker 1 follows."""
    return (
        records.TopicRecord(name=PAYMENTS.topic, topic_id=PAYMENTS_ID),
        *(
            records.PartitionRecord(
                topic_id=PAYMENTS_ID, partition=partition, replicas=(OWN, FIRST), isr=(OWN, FIRST), leader=OWN
            )
            for partition in range(count)
        ),
    )


def heartbeats(life: Life) -> list[messages.BrokerHeartbeatRequest]:
    return [each.request for each in life.in_flight if isinstance(each.request, messages.BrokerHeartbeatRequest)]


def applied(effects: list[BrokerEffect]) -> list[tuple[int, int]]:
    """Returns the spans of metadata that the broker says to act on."""
    found = [each.event for each in effects if isinstance(each, RecordEvent)]
    return [(each.start_offset, each.end_offset) for each in found if isinstance(each, events.MetadataApplied)]


def test_a_heartbeat_leaves_between_two_parts_of_a_large_difference() -> None:
    life = serving()
    told = messages.BrokerHeartbeatResponse(error=ErrorCode.NONE, is_caught_up=True, is_fenced=False)
    life.answer(life.take(messages.BrokerHeartbeatRequest), told)
    before, count = life.broker.image.next_offset, 2 * PARTITIONS_PER_STEP
    life.advance(1990)
    assert heartbeats(life) == []
    assert applied(life.metadata(*creates_many(count + 1))) == []
    hosted = [len(life.broker.partitions) - 1]
    spans: list[tuple[int, int]] = []
    causes = set()
    life.now_ms += 10  # the files of a part took their time
    while hosted[-1] <= count:
        effects = life.step(inputs.TimerFired(cause_id=CauseId("timer")))
        causes |= {each.event.cause_id for each in effects if isinstance(each, RecordEvent)}
        spans += applied(effects)
        hosted.append(len(life.broker.partitions) - 1)
        if len(hosted) == 2:
            (heartbeat,) = heartbeats(life)
            assert heartbeat.current_metadata_offset == before - 1, "it acts on a part of the rest only"
    assert hosted == [PARTITIONS_PER_STEP, count, count + 1]
    assert spans == [(before, life.broker.image.next_offset)]
    assert causes == {CAUSE}, "what is done has the cause of the metadata"
    assert life.broker.next_deadline_ms() != life.now_ms, "nothing is left"


def test_metadata_that_comes_between_two_parts_is_part_of_the_rest() -> None:
    life = serving()
    last = TopicPartition(PAYMENTS.topic, PARTITIONS_PER_STEP)
    life.metadata(*creates_many(PARTITIONS_PER_STEP + 1))
    assert life.broker.partition(last) is None
    life.metadata(
        records.PartitionChangeRecord(topic_id=PAYMENTS_ID, partition=last.partition, leader=FIRST),
        records.PartitionChangeRecord(topic_id=PAYMENTS_ID, partition=0, leader=FIRST),
    )
    assert not partition_of(life, last).is_leader
    assert partition_of(life, last).leader_epoch == 1
    assert not partition_of(life, PAYMENTS).is_leader


def test_it_asks_to_be_unfenced_only_when_it_acts_on_all_metadata() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    life.step(inputs.MetadataStreamOpened(cause_id=CAUSE, end_offset=MetadataOffset(0)))
    life.register()
    life.metadata(registered(OWN, OWN_EPOCH, fenced=True), *creates_many(PARTITIONS_PER_STEP + 1))
    life.answer(life.take(messages.BrokerHeartbeatRequest), messages.BrokerHeartbeatResponse(error=ErrorCode.NONE))
    life.step(inputs.LogsLoaded(cause_id=CAUSE, logs=()))
    assert heartbeats(life) == []
    life.step(inputs.TimerFired(cause_id=CAUSE))
    (heartbeat,) = heartbeats(life)
    assert not heartbeat.want_fence


def test_a_min_isr_that_is_lowered_lets_waiting_records_commit() -> None:
    life = serving()
    sets(life, ConfigResource.TOPIC, NAME.topic, 2)
    life.metadata(
        records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, isr=(OWN,)), changed(FIRST, fenced=True)
    )
    life.ask(produce(acks=1))
    assert partition_of(life).log.high_watermark == 0
    sets(life, ConfigResource.TOPIC, NAME.topic, 1)
    assert partition_of(life).log.high_watermark == 1


def test_a_leader_deposed_in_a_later_part_commits_nothing_by_a_min_isr_that_came_after_its_term() -> None:
    life = serving()
    earlier, earlier_id = "a-topic-before-orders", TopicId("id-of-earlier")
    sets(life, ConfigResource.TOPIC, NAME.topic, 2)
    parked = life.ask(produce(acks=-1))
    life.metadata(
        records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, isr=(OWN,)), changed(FIRST, fenced=True)
    )
    min_isr = records.ConfigRecord(resource=ConfigResource.TOPIC, resource_name=NAME.topic, name=MIN_ISR, value="1")
    life.metadata(
        records.TopicRecord(name=earlier, topic_id=earlier_id),
        *(
            records.PartitionRecord(topic_id=earlier_id, partition=each, replicas=(OWN,), isr=(OWN,), leader=OWN)
            for each in range(PARTITIONS_PER_STEP)
        ),
        records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, isr=(FIRST,), leader=FIRST),
        min_isr,
    )
    assert partition_of(life).is_leader, "its role is in the next part"
    assert parked not in life.answers
    life.step(inputs.TimerFired(cause_id=CAUSE))
    assert error_of(life.answers[parked]) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition_of(life).log.high_watermark == 0
    assert partition_of(life).topic_properties.min_insync_replicas == 1


def test_on_a_follower_a_configuration_commits_nothing() -> None:
    life = Life(Switches(hw_requires_min_isr=False))  # with that rule, the ISR that it does not have is too small
    life.serve()
    life.metadata(records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, leader=FIRST))
    log = partition_of(life).log
    log.append(batch(0, 1), now_ms=0)
    sets(life, ConfigResource.TOPIC, NAME.topic, 2)
    assert log.high_watermark == 0


def test_a_new_leader_answers_its_followers_fetches_so_that_the_next_brings_the_partition_along() -> None:
    life = serving()
    parked = life.ask(fetch(0))
    assert parked not in life.answers
    life.metadata(
        records.TopicRecord(name=PAYMENTS.topic, topic_id=PAYMENTS_ID),
        records.PartitionRecord(
            topic_id=PAYMENTS_ID, partition=0, replicas=(FIRST, OWN), isr=(FIRST, OWN), leader=FIRST
        ),
    )
    assert parked not in life.answers, "it became a follower"
    life.metadata(records.PartitionChangeRecord(topic_id=PAYMENTS_ID, partition=0, leader=OWN))
    assert isinstance(life.answers[parked], messages.FetchResponse)


def test_a_broker_that_may_leave_fetches_only_for_the_isrs_that_it_is_in() -> None:
    life = serving()
    life.metadata(
        registered(SECOND, 7),
        records.TopicRecord(name=PAYMENTS.topic, topic_id=PAYMENTS_ID),
        records.PartitionRecord(topic_id=PAYMENTS_ID, partition=0, replicas=(FIRST, OWN), isr=(FIRST,), leader=FIRST),
        records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, leader=FIRST),
    )
    assert fetched(life) == {NAME, PAYMENTS}
    life.metadata(changed(OWN, in_controlled_shutdown=True))
    assert fetched(life) == {NAME}
    assert life.broker.partition(PAYMENTS) is not None, "it stays a replica"


def fetched(life: Life) -> set[TopicPartition]:
    """Returns what the next fetch after a failed one names."""
    names: set[TopicPartition] = set()
    for _ in range(2):
        (sent,) = [sent for sent in life.in_flight if isinstance(sent.request, messages.FetchRequest)]
        life.in_flight.remove(sent)
        assert isinstance(sent.request, messages.FetchRequest)
        names = {asked.topic_partition for asked in sent.request.partitions}
        failure = RequestFailure.TIMED_OUT
        life.step(inputs.RequestFailed(cause_id=CAUSE, correlation_id=sent.correlation_id, failure=failure))
        life.advance(100)
    return names


def heartbeats_after(record: records.BrokerRegistrationChangeRecord) -> int:
    """Returns how many heartbeats a record sets off, where none is under way."""
    life = serving()
    answer = messages.BrokerHeartbeatResponse(error=ErrorCode.NONE, is_caught_up=True, is_fenced=False)
    life.answer(life.take(messages.BrokerHeartbeatRequest), answer)
    life.metadata(record)
    return len([sent for sent in life.in_flight if isinstance(sent.request, messages.BrokerHeartbeatRequest)])


def test_that_another_broker_leaves_is_confirmed_at_once_and_not_that_it_is_gone() -> None:
    assert heartbeats_after(changed(FIRST, in_controlled_shutdown=True)) == 1
    assert heartbeats_after(changed(FIRST, in_controlled_shutdown=True, fenced=True)) == 0
    assert heartbeats_after(changed(FIRST, fenced=True)) == 0


def test_a_broker_serves_once_its_metadata_calls_it_unfenced_though_its_controller_did_before() -> None:
    life = Life()
    life.serve(is_fenced=True)
    refused = life.ask(fetch(0, max_wait_ms=0))
    life.metadata(changed(OWN, fenced=False))
    served = life.ask(fetch(0, max_wait_ms=0))
    errors: list[ErrorCode] = []
    for request_id in (refused, served):
        answer = life.answers[request_id]
        assert isinstance(answer, messages.FetchResponse)
        errors.append(answer.partitions[0].error)
    assert errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]
