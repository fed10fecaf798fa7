import pytest

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_records,
    encode_records,
)
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ConfigResource,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)

B0, B1, B2 = (BrokerId(NodeId(number)) for number in range(3))
ORDERS = TopicPartition("orders", 0)


def fold(image: MetadataImage, *records: Record) -> None:
    for record in records:
        image.replay(record, offset=image.next_offset)


def with_topic(topic_id: str = "first") -> tuple[Record, Record]:
    replicas = (B0, B1, B2)
    return (
        TopicRecord(name="orders", topic_id=TopicId(topic_id)),
        PartitionRecord(topic_id=TopicId(topic_id), partition=0, replicas=replicas, isr=replicas, leader=B0),
    )


def change(**fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=TopicId("first"), partition=0, **fields)  # type: ignore[arg-type] # any field


def test_a_change_raises_the_leader_epoch_only_where_it_names_a_leader() -> None:
    image = MetadataImage()
    fold(image, *with_topic())

    fold(image, change(isr=(B0, B1)))
    assert (image.partitions[ORDERS].leader_epoch, image.partitions[ORDERS].partition_epoch) == (0, 1)
    fold(image, change(leader=B0))
    assert (image.partitions[ORDERS].leader_epoch, image.partitions[ORDERS].partition_epoch) == (1, 2)
    fold(image, change(leader=None))
    assert image.partitions[ORDERS].leader is None
    assert image.partitions[ORDERS].leader_epoch == 2


def test_several_records_are_one_difference() -> None:
    image = MetadataImage()
    fold(image, *with_topic())
    image.pop_delta()
    before = image.partitions[ORDERS]

    fold(image, change(isr=(B0, B1)), change(isr=(B0,)))
    delta = image.pop_delta()

    assert delta.partitions[ORDERS].before == before
    assert delta.partitions[ORDERS].after == image.partitions[ORDERS]
    assert image.pop_delta().is_empty


def test_a_large_difference_may_be_had_in_parts() -> None:
    image = MetadataImage()
    fold(image, *with_topic())
    image.pop_delta()
    partitions = [TopicPartition(ORDERS.topic, number) for number in range(1, 4)]
    fold(
        image,
        *(
            PartitionRecord(
                topic_id=image.topics[name.topic], partition=name.partition, replicas=(B0,), isr=(B0,), leader=B0
            )
            for name in partitions
        ),
        RegisterBrokerRecord(
            broker_id=B0,
            incarnation_id=IncarnationId("first"),
            broker_epoch=BrokerEpoch(7),
            log_dirs=(),
            fenced=False,
        ),
    )

    first = image.pop_delta(partitions_max=2)
    assert [*first.partitions] == partitions[:2]
    assert not first.brokers
    assert image.has_changes

    fold(image, change(isr=(B0,)))
    rest = image.pop_delta(partitions_max=2)
    assert [*rest.partitions] == [ORDERS, partitions[2]]
    assert rest.brokers == {B0}
    assert not image.has_changes


def test_a_topic_that_was_replaced_shows_both_topic_ids() -> None:
    image = MetadataImage()
    fold(image, *with_topic("first"))
    image.pop_delta()

    fold(image, RemoveTopicRecord(topic_id=TopicId("first")), *with_topic("second"))
    delta = image.pop_delta().partitions[ORDERS]

    assert delta.before is not None
    assert delta.after is not None
    assert (delta.before.topic_id, delta.after.topic_id) == ("first", "second")


def test_clearing_the_elr_touches_only_partitions_that_have_something_to_clear() -> None:
    image = MetadataImage()
    fold(image, *with_topic())
    fold(image, ClearElrRecord(topic_id=None))
    assert image.partitions[ORDERS].partition_epoch == 0

    fold(
        image,
        change(isr=(B0,), elr=(B1,), last_known_elr=(B2,), last_known_leader=B1),
        ClearElrRecord(topic_id=TopicId("first")),
    )

    state = image.partitions[ORDERS]
    assert (state.elr, state.last_known_elr, state.last_known_leader) == ((), (), None)
    assert image.partitions[ORDERS].partition_epoch == 2


@pytest.mark.parametrize(
    "record",
    [
        change(leader=B1),
        RemoveTopicRecord(topic_id=TopicId("nowhere")),
        BrokerRegistrationChangeRecord(broker_id=B0, broker_epoch=BrokerEpoch(7), fenced=False),
    ],
)
def test_changing_what_does_not_exist_is_a_bug(record: Record) -> None:
    with pytest.raises(InvariantError):
        fold(MetadataImage(), record)


def test_a_change_of_another_incarnation_is_a_bug() -> None:
    image = MetadataImage()
    registration = RegisterBrokerRecord(
        broker_id=B0, incarnation_id=IncarnationId("one"), broker_epoch=BrokerEpoch(0), log_dirs=("dir",)
    )
    fold(image, registration)

    with pytest.raises(InvariantError):
        fold(image, BrokerRegistrationChangeRecord(broker_id=B0, broker_epoch=BrokerEpoch(1), fenced=False))


def test_records_are_replayed_in_order_and_once() -> None:
    image = MetadataImage()

    with pytest.raises(InvariantError):
        image.replay(TopicRecord(name="orders", topic_id=TopicId("first")), offset=MetadataOffset(1))


def test_a_record_that_is_skipped_changes_nothing_but_the_offset() -> None:
    image = MetadataImage()
    fold(image, *with_topic())
    image.pop_delta()

    with pytest.raises(InvariantError):
        image.skip(offset=MetadataOffset(3))
    image.skip(offset=MetadataOffset(2))

    assert image.next_offset == 3
    assert image.pop_delta().is_empty


def test_a_partition_begins_as_its_record_says() -> None:
    image = MetadataImage()
    fold(
        image,
        TopicRecord(name="orders", topic_id=TopicId("first")),
        PartitionRecord(
            topic_id=TopicId("first"),
            partition=0,
            replicas=(B0, B1, B2),
            isr=(),
            leader=None,
            leader_epoch=LeaderEpoch(4),
            partition_epoch=PartitionEpoch(5),
            leader_recovery_state=LeaderRecoveryState.RECOVERING,
            elr=(B0,),
            last_known_elr=(B1,),
            last_known_leader=B2,
            adding_replicas=(B2,),
            removing_replicas=(B1,),
        ),
    )
    assert image.partitions[ORDERS] == PartitionState(
        topic_id=TopicId("first"),
        replicas=(B0, B1, B2),
        isr=(),
        leader=None,
        leader_epoch=LeaderEpoch(4),
        partition_epoch=PartitionEpoch(5),
        leader_recovery_state=LeaderRecoveryState.RECOVERING,
        elr=(B0,),
        last_known_elr=(B1,),
        last_known_leader=B2,
        adding_replicas=(B2,),
        removing_replicas=(B1,),
    )


def test_a_record_that_names_no_eligible_replicas_has_none() -> None:
    # KIP-966: what was written before the feature is loaded with an empty ELR.
    image = MetadataImage()
    old = PartitionRecord(topic_id=TopicId("first"), partition=0, replicas=(B0, B1), isr=(B0,), leader=B0)
    fold(image, TopicRecord(name="orders", topic_id=TopicId("first")), old)
    assert (image.partitions[ORDERS].elr, image.partitions[ORDERS].last_known_elr) == ((), ())


def test_a_topic_has_as_many_partitions_as_it_was_given() -> None:
    image = MetadataImage()
    topic, first = with_topic()
    fold(image, topic)
    assert image.partition_counts == {"orders": 0}
    fold(image, first)
    assert image.partition_counts == {"orders": 1}
    assert image.partitions_of("orders") == [ORDERS]


def with_config(value: str | None) -> ConfigRecord:
    return ConfigRecord(resource=ConfigResource.TOPIC, resource_name="orders", name="min.insync.replicas", value=value)


def test_a_topic_takes_its_configuration_along() -> None:
    image = MetadataImage()
    fold(image, *with_topic(), with_config("2"))
    image.pop_delta()

    fold(image, RemoveTopicRecord(topic_id=TopicId("first")))
    assert image.configs(ConfigResource.TOPIC, "orders") == {}
    assert image.pop_delta().configs == {(ConfigResource.TOPIC, "orders")}

    fold(image, *with_topic("second"), RemoveTopicRecord(topic_id=TopicId("second")))
    assert image.pop_delta().configs == frozenset(), "it had none"


def test_a_value_that_was_never_set_can_be_deleted() -> None:
    image = MetadataImage()
    fold(image, *with_topic(), with_config(None))
    assert image.config(ConfigResource.TOPIC, "orders", "min.insync.replicas") is None


def test_records_survive_the_way_to_bytes_and_back() -> None:
    records = (*with_topic(), change(leader=None, elr=(B1,)), ClearElrRecord(topic_id=None))

    assert decode_records(encode_records(records)) == records
