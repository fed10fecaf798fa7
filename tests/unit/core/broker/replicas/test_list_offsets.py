"""ListOffsets: which check answers first (Kafka's ``Partition.fetchOffsetForTimestamp``, KIP-207, KIP-320)."""

import msgspec
import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.replicas.list_offsets import list_offsets
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.messages import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from laststand.emulator.core.types import BrokerId, LeaderEpoch, Offset
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, TOPIC_ID, Hosting, batch


def look_up(
    hosting: Hosting, timestamp: int, *, leader_epoch: int | None = None, replica: BrokerId | None = None
) -> messages.ListOffsetsResult:
    epoch = None if leader_epoch is None else LeaderEpoch(leader_epoch)
    position = messages.ListOffsetsPosition(
        topic=NAME.topic, partition=NAME.partition, timestamp=timestamp, current_leader_epoch=epoch
    )
    request = messages.ListOffsetsRequest(partitions=(position,), replica_id=replica)
    (result,) = list_offsets(hosting.hosted, request).partitions
    return result


@pytest.mark.parametrize(
    ("leader_epoch", "error"),
    [
        (None, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_follower_compares_epochs_before_it_says_that_it_does_not_lead(
    leader_epoch: int | None, error: ErrorCode
) -> None:
    hosting = Hosting(records=3)
    hosting.follow(FIRST, leader_epoch=5)
    assert look_up(hosting, EARLIEST_TIMESTAMP, leader_epoch=leader_epoch).error is error


def test_a_new_leader_answers_no_latest_offset_until_its_epoch_is_committed() -> None:
    hosting = Hosting(records=3)
    hosting.lead(OWN, FIRST, leader_epoch=5)
    assert look_up(hosting, LATEST_TIMESTAMP).error is ErrorCode.OFFSET_NOT_AVAILABLE
    assert look_up(hosting, EARLIEST_TIMESTAMP).offset == 0
    assert look_up(hosting, LATEST_TIMESTAMP, replica=FIRST).offset == 3
    hosting.fetch(FIRST, 3)
    assert look_up(hosting, LATEST_TIMESTAMP).offset == 3


def test_a_follower_is_never_under_min_isr() -> None:
    hosting = Hosting(min_insync_replicas=2)
    hosting.lead(OWN)
    assert hosting.partition.is_under_min_isr
    hosting.follow(FIRST, leader_epoch=2, partition_epoch=2)
    assert not hosting.partition.is_under_min_isr


def timed(offset: int) -> BatchDescriptor:
    return msgspec.structs.replace(batch(offset, 5), max_timestamp_ms=1000 + offset)


def test_clients_find_no_record_at_or_above_the_high_watermark_by_its_time() -> None:
    hosting = Hosting()
    hosting.lead(OWN, FIRST, leader_epoch=5)
    for offset in range(3):
        hosting.partition.append_as_leader(hosting.turn(), timed(offset))
    hosting.fetch(FIRST, 1)
    assert hosting.high_watermark == 1
    found = [look_up(hosting, 1000 + offset) for offset in range(3)]
    assert [(result.error, result.offset, result.leader_epoch) for result in found] == [
        (ErrorCode.NONE, 0, 5),
        (ErrorCode.NONE, None, None),
        (ErrorCode.NONE, None, None),
    ]
    assert look_up(hosting, 1002, replica=FIRST).offset == 2
    assert look_up(hosting, EARLIEST_TIMESTAMP).leader_epoch == 5


def test_records_below_the_log_start_are_not_found_by_their_time() -> None:
    # Segments may still hold them when the log is opened (Kafka's ``UnifiedLog.fetchOffsetByTimestamp``).
    log = ReplicaLog(NAME, TOPIC_ID)
    log.load(
        [msgspec.structs.replace(timed(0), leader_epoch=LeaderEpoch(4)), timed(1), timed(2)],
        log_start_offset=Offset(1),
        log_end_offset=Offset(3),
        producers=(),
        producers_offset=Offset(0),
        now_ms=0,
    )
    assert log.offset_for_timestamp(1000) == (1, 5, 1001)
