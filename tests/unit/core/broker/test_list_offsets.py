"""ListOffsets: which check answers first (Kafka's ``Partition.fetchOffsetForTimestamp``, KIP-207, KIP-320)."""

import pytest

from emulator.core.broker.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, list_offsets
from emulator.core.errors import ErrorCode
from emulator.core.messages import ListOffsetsPosition, ListOffsetsRequest, ListOffsetsResult
from emulator.core.types import BrokerId, LeaderEpoch
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, Hosting


def look_up(
    hosting: Hosting, timestamp: int, *, leader_epoch: int | None = None, replica: BrokerId | None = None
) -> ListOffsetsResult:
    epoch = None if leader_epoch is None else LeaderEpoch(leader_epoch)
    position = ListOffsetsPosition(
        topic=NAME.topic, partition=NAME.partition, timestamp=timestamp, current_leader_epoch=epoch
    )
    request = ListOffsetsRequest(partitions=(position,), replica_id=replica)
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


def test_a_new_leader_tells_clients_no_latest_offset_until_its_epoch_is_committed() -> None:
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
