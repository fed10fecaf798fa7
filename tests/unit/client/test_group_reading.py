"""The input of an operation: where it begins, and what was read from there on."""

from laststand.emulator.core.client.group_reading import GroupReading
from laststand.emulator.core.client.metadata import PartitionLeader
from laststand.emulator.core.client.steps import RecordsReceived, Source
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import CommittedOffset, OffsetFetchResponse
from laststand.emulator.core.history import PolledBatch
from laststand.emulator.core.messages import FetchPartitionResponse, ListOffsetsResult
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    CorrelationId,
    LeaderEpoch,
    NodeId,
    Offset,
    TopicId,
    TopicPartition,
)

ORDERS = TopicPartition("orders", 0)


def batch(offset: int) -> PolledBatch:
    return PolledBatch(
        base_offset=Offset(offset),
        last_offset=Offset(offset),
        leader_epoch=LeaderEpoch(0),
        crc=offset,
        producer="producer-0",
        first_record_id=offset,
        record_count=1,
    )


def received(
    *batches: PolledBatch, error: ErrorCode = ErrorCode.NONE, marker_at: int | None = None, marker_epoch: int = 0
) -> RecordsReceived:
    """Returns an answer with batches, and with a marker behind them."""
    last = batches[-1].last_offset if batches and marker_at is None else marker_at
    return RecordsReceived(
        cause_id=CauseId("fetch"),
        correlation_id=CorrelationId(0),
        response=FetchPartitionResponse(topic="orders", partition=0, error=error),
        polled=batches,
        next_position=None if last is None else Offset(last + 1),
        next_leader_epoch=None if last is None else LeaderEpoch(marker_epoch),
    )


def listed(offset: int) -> ListOffsetsResult:
    return ListOffsetsResult(topic="orders", partition=0, error=ErrorCode.NONE, offset=Offset(offset))


def test_what_was_read_before_a_reset_is_not_of_the_operation() -> None:
    reading = GroupReading(Source(group_id="readers", partition=ORDERS, records=2))
    reading.positioned(OffsetFetchResponse(error=ErrorCode.NONE))
    reading.listed(listed(0))
    leader = PartitionLeader(topic_id=TopicId("id"), leader=BrokerId(NodeId(0)), leader_epoch=LeaderEpoch(0))
    reading.request(BrokerId(NodeId(0)), leader)
    reading.fetched(received(batch(0)))
    assert reading.fetched(received(error=ErrorCode.OFFSET_OUT_OF_RANGE)) is ErrorCode.OFFSET_OUT_OF_RANGE
    reading.listed(listed(5))
    reading.fetched(received(batch(5)))
    assert not reading.is_over, "it has one of two records"
    reading.fetched(received(batch(6)))
    recorded = reading.recorded(CauseId("operation"))
    assert (recorded.position, recorded.next_position, recorded.batches) == (5, 7, (batch(5), batch(6)))


def test_a_position_has_the_leader_epoch_of_the_batch_before_it_be_that_a_marker() -> None:
    reading = GroupReading(Source(group_id="readers", partition=ORDERS, records=2), Offset(0))
    reading.fetched(received(batch(0), marker_at=1, marker_epoch=2))
    assert reading.to_commit() == CommittedOffset(partition=ORDERS, offset=Offset(2), leader_epoch=LeaderEpoch(2))
    reading.fetched(received(batch(2), batch(3), marker_at=4, marker_epoch=3))
    assert reading.is_over
    assert reading.to_commit() == CommittedOffset(partition=ORDERS, offset=Offset(3), leader_epoch=LeaderEpoch(0))
