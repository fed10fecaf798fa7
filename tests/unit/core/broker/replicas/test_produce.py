"""Batches that a leader appends or refuses (Kafka's ``LogValidator``, ``UnifiedLog.analyzeAndValidateRecords``)."""

import msgspec
import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.replicas.produce import Appended, Refused, append_batch, check_batch
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from tests.unit.core.broker.hosting import NAME, OWN, Hosting, batch

LIMIT = 1000


def leading() -> Hosting:
    hosting = Hosting(records=5)
    hosting.lead(OWN, leader_epoch=3)
    return hosting


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"size": LIMIT}, ErrorCode.NONE),
        ({"size": LIMIT + 1}, ErrorCode.MESSAGE_TOO_LARGE),
        ({"base_offset": Offset(1)}, ErrorCode.INVALID_RECORD),
        ({"record_count": 0}, ErrorCode.INVALID_RECORD),
        ({"is_control": True}, ErrorCode.INVALID_RECORD),  # markers are not for producers
    ],
)
def test_what_a_producer_may_not_send_is_refused(fields: dict[str, object], error: ErrorCode) -> None:
    partition = leading().partition
    partition.topic_properties = msgspec.structs.replace(partition.topic_properties, max_message_bytes=LIMIT)
    assert check_batch(partition, msgspec.structs.replace(batch(0, 0), **fields)) is error


@pytest.mark.parametrize(("size", "error"), [(LIMIT, ErrorCode.NONE), (LIMIT + 1, ErrorCode.RECORD_LIST_TOO_LARGE)])
def test_a_batch_must_fit_into_a_segment(size: int, error: ErrorCode) -> None:
    partition = leading().partition
    partition.topic_properties = msgspec.structs.replace(partition.topic_properties, segment_bytes=LIMIT)
    assert check_batch(partition, msgspec.structs.replace(batch(0, 0), size=size)) is error


def sequenced(base_sequence: int) -> BatchDescriptor:
    return msgspec.structs.replace(
        batch(0, 0, count=3),
        producer_id=ProducerId(1),
        producer_epoch=ProducerEpoch(0),
        base_sequence=base_sequence,
        max_timestamp_ms=77,
    )


def append(hosting: Hosting, sent: BatchDescriptor) -> Appended | Refused:
    asked = messages.ProducePartition(topic=NAME.topic, partition=NAME.partition, batch=sent)
    return append_batch(hosting.turn(), hosting.hosted, asked, acks=-1)


def test_a_duplicate_is_acknowledged_once_the_first_copy_is_committed() -> None:
    hosting = leading()
    assert append(hosting, sequenced(0)) == Appended(Offset(5), Offset(8))
    assert append(hosting, sequenced(3)) == Appended(Offset(8), Offset(11))
    again = append(hosting, sequenced(0))
    assert again == Appended(Offset(5), Offset(8), duplicate_timestamp_ms=77)
    assert hosting.partition.log.log_end_offset == 11


def test_a_batch_is_stamped_with_its_offsets_and_the_leaders_epoch() -> None:
    hosting = leading()
    append(hosting, sequenced(0))
    log = hosting.partition.log
    assert log.last_written_leader_epoch == LeaderEpoch(3)
    assert log.batch_base_offset(Offset(7)) == 5
    assert log.offset_for_timestamp(77) == (5, 3, 77)
    assert append(hosting, sequenced(7)) == Refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
