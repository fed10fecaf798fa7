"""Our metadata records in Kafka's schemas: what was written is read back."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laststand.emulator.core import events, records
from laststand.emulator.core.acls import AccessControlEntry, AclOperation, ResourceType
from laststand.emulator.core.client_quotas import quota_entity
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.messages import FeatureRange
from laststand.emulator.core.quorum.batches import KRaftVersion, KRaftVoters, LeaderChange, QuorumBatch
from laststand.emulator.core.quorum.settings import initial_directory_id
from laststand.emulator.core.quorum.voter_set import ReplicaKey, Voter, VoterSet
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    ConfigResource,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    ProducerId,
    TopicId,
)
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.kafka.metadata_copy import read_metadata_copy
from laststand.emulator.kafka.metadata_log import MetadataLogReader
from laststand.emulator.kafka.metadata_records import MetadataRecordDecoder
from laststand.emulator.kafka.metadata_values import KafkaValues
from laststand.emulator.storage.fields import FieldError
from laststand.emulator.storage.metadata_log import MetadataLog
from laststand.emulator.storage.os_filesystem import OsFileSystem
from tests.unit.random_structs import structs

BROKERS = tuple(BrokerId(NodeId(number)) for number in range(3))
TOPIC = TopicId(uuid_text(bytes(range(16))))
DIRECTORY = uuid_text(bytes(range(16, 32)))
EVENT = events.OtherRecordCommitted(cause_id=CauseId("send-7"), metadata_offset=MetadataOffset(4), record="Some")
NEW_PARTITION = records.PartitionRecord(topic_id=TOPIC, partition=0, replicas=BROKERS, isr=BROKERS, leader=BROKERS[0])
ACL = AccessControlEntry(
    resource_type=ResourceType.TOPIC, resource_name="orders", principal="User:alice", operation=AclOperation.READ
)

BY_KAFKA = (
    records.FeatureLevelRecord(name="metadata.version", feature_level=29),
    records.RegisterBrokerRecord(
        broker_id=BROKERS[1],
        incarnation_id=IncarnationId(TOPIC),
        broker_epoch=BrokerEpoch(9),
        log_dirs=(DIRECTORY,),
        rack="north",
        features=(FeatureRange(name="metadata.version", min_supported_version=1, max_supported_version=29),),
    ),
    records.RegisterBrokerRecord(
        broker_id=BROKERS[2], incarnation_id=IncarnationId(TOPIC), broker_epoch=BrokerEpoch(10), log_dirs=()
    ),
    records.BrokerRegistrationChangeRecord(broker_id=BROKERS[1], broker_epoch=BrokerEpoch(9), fenced=False),
    records.BrokerRegistrationChangeRecord(
        broker_id=BROKERS[1], broker_epoch=BrokerEpoch(9), in_controlled_shutdown=True, log_dirs=(DIRECTORY,)
    ),
    records.TopicRecord(name="orders", topic_id=TOPIC),
    NEW_PARTITION,
    msgspec.structs.replace(
        NEW_PARTITION,
        partition=1,
        isr=(),
        leader=None,
        elr=BROKERS[:1],
        last_known_leader=BROKERS[2],
        leader_recovery_state=LeaderRecoveryState.RECOVERING,
        adding_replicas=BROKERS[2:],
    ),
    records.PartitionChangeRecord(topic_id=TOPIC, partition=0, isr=BROKERS[:1], leader=BROKERS[0]),
    records.PartitionChangeRecord(
        topic_id=TOPIC,
        partition=0,
        isr=(),
        leader=None,
        elr=BROKERS[:2],
        last_known_leader=None,
        replicas=BROKERS[:2],
        adding_replicas=(),
        removing_replicas=BROKERS[:1],
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
    ),
    records.ConfigRecord(resource=ConfigResource.TOPIC, resource_name="orders", name="min.insync.replicas", value="2"),
    records.ConfigRecord(resource=ConfigResource.BROKER, resource_name="", name="min.insync.replicas", value=None),
    records.ProducerIdsRecord(broker_id=BROKERS[0], broker_epoch=BrokerEpoch(9), next_producer_id=ProducerId(1_000)),
    records.UnregisterBrokerRecord(broker_id=BROKERS[2], broker_epoch=BrokerEpoch(10)),
    records.RemoveTopicRecord(topic_id=TOPIC),
    records.BeginTransactionRecord(name="some"),
    records.BeginTransactionRecord(),
    records.EndTransactionRecord(),
    records.AbortTransactionRecord(reason="failover"),
)
"""Kafka's schemas say all of them."""

BESIDE_KAFKA = (
    msgspec.structs.replace(NEW_PARTITION, last_known_elr=BROKERS[:1]),
    records.PartitionChangeRecord(topic_id=TOPIC, partition=0, last_known_elr=()),
    records.BrokerRegistrationChangeRecord(
        broker_id=BROKERS[1], broker_epoch=BrokerEpoch(9), in_controlled_shutdown=False
    ),
    records.TopicRecord(name="no-uuid", topic_id=TopicId("id-of-orders")),
    records.ClearElrRecord(topic_id=TOPIC),
    records.ClearElrRecord(topic_id=None),
    records.AccessControlEntryRecord(entry=ACL),
    records.RemoveAccessControlEntryRecord(acl_id=MetadataOffset(21)),
    records.ClientQuotaRecord(entity=quota_entity(client_id="app", user=None), key="producer_byte_rate", value=1024.0),
    records.ClientQuotaRecord(entity=quota_entity(user="alice"), key="producer_byte_rate", value=None),
)
"""Kafka's schemas lack something of each."""


def batch_of(*of: records.Record, base_offset: int = 0) -> records.MetadataBatch:
    return records.MetadataBatch(base_offset=MetadataOffset(base_offset), records=of)


def read_back(*of: records.Record, described: tuple[events.ControllerEvent, ...] = ()) -> list[records.Record]:
    written = KafkaValues().encode(batch_of(*of), described)
    reader = KafkaValues()
    stored = [reader.decode(value) for value in written]
    assert [each.events for each in stored] == [*((),) * (len(of) - 1), described]
    return [each.record for each in stored]


def test_records_are_read_back() -> None:
    assert read_back(*BY_KAFKA, *BESIDE_KAFKA, described=(EVENT, EVENT)) == [*BY_KAFKA, *BESIDE_KAFKA]


@pytest.mark.parametrize("record", BY_KAFKA, ids=lambda record: type(record).__name__)
def test_a_record_that_kafka_has_a_schema_for_is_kafkas_alone(record: records.Record) -> None:
    [value] = KafkaValues().encode(batch_of(record), ())
    assert not value.endswith(b"LSTD")
    assert MetadataRecordDecoder().decode(value) == record


KINDS = tuple(
    kind for kind in records.Record.__args__ if kind not in (records.ControlRecord, records.FeatureLevelRecord)
)


@given(st.lists(st.one_of(*map(structs, KINDS)), min_size=1, max_size=4))
@settings(max_examples=300)
def test_any_record_is_read_back(of: list[records.Record]) -> None:
    assert read_back(*of, described=(EVENT,)) == of


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_bytes_that_are_no_record_are_refused(content: bytes) -> None:
    for value in (content, b"\x01" + content, b"\x01\x03" + content, content + b"\x00\x00\x00\x08LSTD"):
        try:
            KafkaValues().decode(value)
        except FieldError:
            continue


def test_a_record_of_the_quorum_is_no_value() -> None:
    with pytest.raises(InvariantError, match="control batch"):
        KafkaValues().encode(batch_of(records.ControlRecord(name="LeaderChange")), ())


def test_a_topic_is_named_where_its_elr_is_cleared() -> None:
    codec = KafkaValues()
    codec.encode(batch_of(records.TopicRecord(name="orders", topic_id=TOPIC)), ())
    [value] = codec.encode(batch_of(records.ClearElrRecord(topic_id=TOPIC)), ())
    assert value.startswith(b"\x01\x1c\x00\x07orders")


def write_log(directory: Path) -> None:
    """A log of three controllers, with a record of every kind."""
    directory.mkdir(parents=True)
    log = MetadataLog(OsFileSystem(ledger_folder=str(directory.parent / "ledger")), str(directory))
    voters = [Voter(key=ReplicaKey(NodeId(each), initial_directory_id("some", NodeId(each)))) for each in (100, 101)]
    named = [*voters, msgspec.structs.replace(voters[0], key=ReplicaKey(NodeId(102)), listener="localhost:9093")]
    control = (
        LeaderChange(leader_id=NodeId(100), voters=(NodeId(100), NodeId(101)), granting_voters=(NodeId(101),)),
        KRaftVersion(level=1),
        KRaftVoters(voters=VoterSet.of(named)),
    )
    log.append(QuorumBatch(base_offset=MetadataOffset(0), leader_epoch=LeaderEpoch(1), control=control))
    of = (*BY_KAFKA, *BESIDE_KAFKA)
    written = KafkaValues().encode(batch_of(*of, base_offset=3), (EVENT,))
    log.append(QuorumBatch(base_offset=MetadataOffset(3), leader_epoch=LeaderEpoch(1), values=written))
    log.sync()
    log.close()


def test_the_reader_of_kafkas_logs_reads_ours(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    _, batch = MetadataLogReader(tmp_path / "log").read_new()
    assert batch.records == (*BY_KAFKA, *BESIDE_KAFKA)
    copy = read_metadata_copy(tmp_path / "log")
    of_transactions = 4  # two begin one, and what ends the other is no record of the copy either
    counted = len(batch.records) - of_transactions
    assert (copy.problem, copy.end_offset, len(copy.records)) == (None, 3 + len(batch.records), counted)
