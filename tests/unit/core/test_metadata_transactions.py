"""Metadata transactions in an image: applied at once, undone by an abort, and refused where they do not fit."""

import pytest

from laststand.emulator.core import records
from laststand.emulator.core.acls import AccessControlEntry, AclOperation, AclPermission, PatternType, ResourceType
from laststand.emulator.core.client_quotas import PRODUCER_BYTE_RATE, quota_entity
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ConfigResource,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    PartitionEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)

BEGIN, END, ABORT = (
    records.BeginTransactionRecord(name="some"),
    records.EndTransactionRecord(),
    records.AbortTransactionRecord(reason="failover"),
)
TOPIC = TopicId("id")
BROKER = BrokerId(NodeId(1))


def acl(principal: str) -> records.AccessControlEntryRecord:
    return records.AccessControlEntryRecord(
        entry=AccessControlEntry(
            resource_type=ResourceType.TOPIC,
            resource_name="orders",
            pattern_type=PatternType.LITERAL,
            principal=principal,
            host="*",
            operation=AclOperation.READ,
            permission=AclPermission.ALLOW,
        )
    )


def registered(incarnation: str) -> records.RegisterBrokerRecord:
    return records.RegisterBrokerRecord(
        broker_id=BROKER,
        incarnation_id=IncarnationId(incarnation),
        broker_epoch=BrokerEpoch(0),
        log_dirs=("directory",),
        fenced=True,
    )


def partition(index: int) -> records.PartitionRecord:
    return records.PartitionRecord(
        topic_id=TOPIC,
        partition=index,
        replicas=(BROKER,),
        isr=(BROKER,),
        leader=BROKER,
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
    )


def config(value: str) -> records.ConfigRecord:
    return records.ConfigRecord(
        resource=ConfigResource.TOPIC, resource_name="orders", name="min.insync.replicas", value=value
    )


BEFORE = (
    registered("first"),
    records.TopicRecord(name="orders", topic_id=TOPIC),
    partition(0),
    config("1"),
    records.FeatureLevelRecord(name="metadata.version", feature_level=20),
    acl("User:alice"),
    records.ClientQuotaRecord(entity=quota_entity(user="alice"), key=PRODUCER_BYTE_RATE, value=1.0),
)
INSIDE = (
    registered("second"),
    partition(1),
    config("2"),
    records.FeatureLevelRecord(name="metadata.version", feature_level=21),
    records.ProducerIdsRecord(broker_id=BROKER, broker_epoch=BrokerEpoch(0), next_producer_id=ProducerId(1000)),
    records.RemoveAccessControlEntryRecord(acl_id=MetadataOffset(5)),
    acl("User:bob"),
    records.ClientQuotaRecord(entity=quota_entity(user="alice"), key=PRODUCER_BYTE_RATE, value=None),
    records.RemoveTopicRecord(topic_id=TOPIC),
    records.UnregisterBrokerRecord(broker_id=BROKER, broker_epoch=BrokerEpoch(0)),
)


def fold(image: MetadataImage, *of: records.Record) -> MetadataImage:
    for record in of:
        image.replay(record, offset=image.next_offset)
    return image


def content(image: MetadataImage) -> tuple[object, ...]:
    return (
        image.brokers,
        image.topics,
        image.topic_names,
        image.partitions,
        image.partition_counts,
        image.features,
        image.next_producer_id,
        image.acls.entries(),
        image.client_quotas.quotas(),
        image.configs(ConfigResource.TOPIC, "orders"),
    )


def test_an_abort_undoes_every_record_of_the_transaction() -> None:
    image = fold(MetadataImage(), *BEFORE)
    store = image.acls
    fold(image, BEGIN, *INSIDE)
    assert image.transaction_start == len(BEFORE)
    assert content(image) != content(fold(MetadataImage(), *BEFORE))
    fold(image, ABORT)
    assert content(image) == content(fold(MetadataImage(), *BEFORE))
    assert image.acls is store, "whoever decides by it holds this very store"
    assert image.transaction_start is None
    assert image.next_offset == len(BEFORE) + len(INSIDE) + 2


def test_an_end_leaves_what_the_transaction_did() -> None:
    ended = fold(MetadataImage(), *BEFORE, BEGIN, *INSIDE[:4], END)
    assert ended.brokers[BROKER].incarnation_id == "second"
    assert ended.transaction_start is None
    assert set(ended.partitions) == {TopicPartition("orders", 0), TopicPartition("orders", 1)}


def test_a_difference_names_no_change_that_was_undone_and_those_before() -> None:
    image = fold(MetadataImage(), *BEFORE, BEGIN, *INSIDE, ABORT)
    delta = image.pop_delta()
    assert set(delta.partitions) == {TopicPartition("orders", 0)}
    assert delta.partitions[TopicPartition("orders", 0)].before is None
    assert delta.brokers == {BROKER}
    fold(image, BEGIN, *INSIDE)
    image.pop_delta()
    fold(image, ABORT)
    assert image.pop_delta().is_empty


@pytest.mark.parametrize(
    ("of", "text"),
    [((BEGIN, BEGIN), "in the one that began at 0"), ((END,), "no metadata transaction"), ((ABORT,), "Abort")],
)
def test_a_transaction_in_another_or_the_end_of_none_is_refused(of: tuple[records.Record, ...], text: str) -> None:
    with pytest.raises(InvariantError, match=text):
        fold(MetadataImage(), *of)
