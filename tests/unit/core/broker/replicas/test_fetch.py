"""Answers of one partition to a fetch (Kafka's ``ReplicaManager.readFromLog``, KIP-74, KIP-595)."""

import msgspec
import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.fetch import (
    Read,
    Reader,
    ReadFailed,
    find_divergence,
    find_readable,
    partition_response,
    read_partition,
)
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import LeaderEpoch, Offset
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, Hosting

BATCH_SIZE = 100
FOLLOWER = Reader(replica_id=FIRST)
CONSUMER = Reader(replica_id=None)


def leading() -> Hosting:
    hosting = Hosting(records=5)
    hosting.lead(OWN, FIRST)
    return hosting


def asked(offset: int) -> messages.FetchPartition:
    return messages.FetchPartition(
        topic=NAME.topic, topic_id=None, partition=NAME.partition, fetch_offset=Offset(offset)
    )


@pytest.mark.parametrize(
    ("bytes_left", "bytes_read", "size"),
    [
        (BATCH_SIZE - 1, 0, BATCH_SIZE),  # the first batch of a response is returned whatever its size
        (BATCH_SIZE - 1, 1, None),
        (BATCH_SIZE, 1, BATCH_SIZE),
        (2 * BATCH_SIZE, 1, 2 * BATCH_SIZE),
    ],
)
def test_only_the_first_batch_of_a_response_may_exceed_the_limit(
    bytes_left: int, bytes_read: int, size: int | None
) -> None:
    hosting = leading()
    read = read_partition(hosting.hosted, asked(0), FOLLOWER, bytes_left=bytes_left, bytes_read=bytes_read)
    assert isinstance(read, Read)
    assert (None if read.span is None else read.span.size) == size


@pytest.mark.parametrize(("offset", "error"), [(1, ErrorCode.OFFSET_OUT_OF_RANGE), (2, ErrorCode.NONE)])
def test_a_follower_at_the_log_start_is_in_range(offset: int, error: ErrorCode) -> None:
    hosting = leading()
    hosting.partition.log.raise_log_start(Offset(2))
    request = msgspec.structs.replace(asked(offset), last_fetched_epoch=LeaderEpoch(0))
    assert find_divergence(hosting.partition, request) is error


@pytest.mark.parametrize(
    ("leader_epoch", "error"), [(1, ErrorCode.FENCED_LEADER_EPOCH), (3, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_a_fetch_under_another_leader_epoch_is_refused(leader_epoch: int, error: ErrorCode) -> None:
    # KIP-320 (S04).
    hosting = Hosting(records=5)
    hosting.lead(OWN, FIRST, leader_epoch=2)
    request = msgspec.structs.replace(asked(5), current_leader_epoch=LeaderEpoch(leader_epoch))
    assert find_readable(hosting.hosted, request, FOLLOWER) is error


def test_an_answer_says_where_the_log_starts() -> None:
    hosting = leading()
    hosting.partition.log.raise_log_start(Offset(2))
    read = read_partition(hosting.hosted, asked(3), FOLLOWER, bytes_left=1000, bytes_read=0)
    answer = partition_response(hosting.hosted, asked(3), read, CONSUMER)
    assert (answer.error, answer.log_start_offset, answer.high_watermark) == (ErrorCode.NONE, 2, 2)


@pytest.mark.parametrize(
    ("error", "leader"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, (FIRST, 4)),
        (ErrorCode.FENCED_LEADER_EPOCH, (FIRST, 4)),
        (ErrorCode.OFFSET_OUT_OF_RANGE, (None, None)),
    ],
)
def test_a_client_that_asks_the_wrong_broker_gets_the_leader(
    error: ErrorCode, leader: tuple[int | None, int | None]
) -> None:
    # KIP-951.
    hosting = leading()
    state = hosting.state(leader=FIRST, isr=(FIRST,), leader_epoch=4, partition_epoch=9)
    hosting.image.partitions[NAME] = state
    answer = partition_response(hosting.hosted, asked(0), ReadFailed(error), CONSUMER)
    assert (answer.error, answer.current_leader, answer.current_leader_epoch) == (error, *leader)
