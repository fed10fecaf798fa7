"""Lines that brokers of Kafka 3.9.1, 4.2.0 and 4.4.0 print about their replicas."""

from collections.abc import Callable
from pathlib import Path

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicId,
    TruncationReason,
)
from laststand.emulator.kafka.broker_log_lines import BrokerLogLines, BrokerLogReader

CAUSE = CauseId("kafka")
TOPIC_ID = TopicId("fPU6AY78SxC_QxogLOK0YQ")
ZERO, ONE = BrokerId(NodeId(0)), BrokerId(NodeId(1))

_STATE = "13:02:45.136 [kafka-0-metadata-loader-event-handler] INFO state.change.logger - [Broker id=0] "
_FETCHER = (
    "13:02:48.323 [ReplicaFetcherThread-0-1] INFO kafka.server.ReplicaFetcherThread - "
    "[ReplicaFetcher replicaId=0, leaderId=1, fetcherId=0] "
)
_LOG_3_9 = "13:02:48.323 [ReplicaFetcherThread-0-1] INFO kafka.log.UnifiedLog - "
_LOG = "13:00:18.170 [ReplicaFetcherThread-0-1] INFO org.apache.kafka.storage.internals.log.UnifiedLog - "
_OF_LOG = "[UnifiedLog partition=orders-0, dir=/runs/a run/nodes/0/data] "

CREATING = f"{_STATE}Creating new partition orders-0 with topic id {TOPIC_ID}."
LEADER = (
    f"{_STATE}Leader orders-0 with topic id Some({TOPIC_ID}) starts at leader epoch 1 from offset 110 with partition "
    "epoch 2, high watermark 100, ISR [0,1], adding replicas [] and removing replicas [] . Previous leader Some(0) and "
    "previous leader epoch was 0."
)
FOLLOWER = (
    f"{_STATE}Follower orders-0 starts at leader epoch 2 from offset 110 with partition epoch 5 and high watermark "
    "100. Current leader is 1. Previous leader None and previous leader epoch was -1."
)
NO_LEADER = FOLLOWER.replace("Current leader is 1", "Current leader is -1")
BELOW_HIGH_WATERMARK = (
    f"{_FETCHER}Truncating partition orders-0 with TruncationState(offset=100, completed=true) due to local high "
    "watermark 100"
)
DIVERGING = (
    f"{_FETCHER}Truncating partition orders-0 with TruncationState(offset=50, completed=true) due to leader epoch and "
    "offset EpochEndOffset(errorCode=0, partition=0, leaderEpoch=0, endOffset=50)"
)
LOADED = (
    "13:01:50.532 [log-recovery-/runs/a run/nodes/0/data-0] INFO kafka.log.LogManager - Completed load of "
    f"Log(dir=/runs/a run/nodes/0/data/orders-0, topicId={TOPIC_ID}, topic=orders, partition=0, highWatermark=100, "
    "lastStableOffset=100, logStartOffset=40, logEndOffset=110) with 1 segments, local-log-start-offset 40 and "
    "log-end-offset 110 in 193ms (1/1 completed in /runs/a run/nodes/0/data)"
)
NO_EFFECT = f"{_LOG}{_OF_LOG}Truncating to 110 has no effect as the largest offset in the log is 109"


def cut_to(offset: int, *, log: str = _LOG) -> str:
    return f"{log}{_OF_LOG}Truncating to offset {offset}"


def raised_to(offset: int, *, reason: str = "client delete records request", log: str = _LOG) -> str:
    return f"{log}{_OF_LOG}Incremented log start offset to {offset} due to {reason}"


def raised(old: int, new: int) -> events.LogStartOffsetRaised:
    return events.LogStartOffsetRaised(
        cause_id=CAUSE, topic="orders", partition=0, topic_id=TOPIC_ID, old=Offset(old), new=Offset(new)
    )


def told(*lines: str) -> list[events.PartitionEvent]:
    return list(BrokerLogLines(CAUSE).events([CREATING, *lines]))


def cut(old: int, new: int, *, high_watermark: int = 100, reason: TruncationReason) -> events.LogTruncated:
    return events.LogTruncated(
        cause_id=CAUSE,
        topic="orders",
        partition=0,
        topic_id=TOPIC_ID,
        reason=reason,
        old_end_offset=Offset(old),
        new_end_offset=Offset(new),
        high_watermark=Offset(high_watermark),
        leader=ONE,
        leader_epoch=LeaderEpoch(2),
    )


def cuts(*lines: str) -> list[events.PartitionEvent]:
    return [event for event in told(*lines) if isinstance(event, events.LogTruncated)]


def test_a_leader_records_where_its_log_ends() -> None:
    assert told(LEADER) == [
        events.BecameLeader(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=TOPIC_ID,
            leader_epoch=LeaderEpoch(1),
            partition_epoch=PartitionEpoch(2),
            epoch_start_offset=Offset(110),
            high_watermark=Offset(100),
            isr=(ZERO, ONE),
        )
    ]


@pytest.mark.parametrize(("line", "leader"), [(FOLLOWER, ONE), (NO_LEADER, None)])
def test_a_follower_names_its_leader(line: str, leader: BrokerId | None) -> None:
    assert told(line) == [
        events.BecameFollower(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=TOPIC_ID,
            leader=leader,
            leader_epoch=LeaderEpoch(2),
            partition_epoch=PartitionEpoch(5),
            log_end_offset=Offset(110),
            high_watermark=Offset(100),
        )
    ]


@pytest.mark.parametrize("log", [_LOG_3_9, _LOG])
@pytest.mark.parametrize(
    ("why", "end", "reason"),
    [
        (DIVERGING, 50, TruncationReason.DIVERGING_EPOCH),
        (BELOW_HIGH_WATERMARK, 100, TruncationReason.HIGH_WATERMARK),
    ],
)
def test_a_cut_begins_where_the_follower_said_that_its_log_ends(
    why: str, end: int, reason: TruncationReason, log: str
) -> None:
    assert cuts(FOLLOWER, why, cut_to(end, log=log)) == [cut(110, end, reason=reason)]


def test_the_second_cut_begins_where_the_first_one_ended() -> None:
    reason = TruncationReason.DIVERGING_EPOCH
    assert cuts(FOLLOWER, DIVERGING, cut_to(50), DIVERGING, cut_to(20)) == [
        cut(110, 50, reason=reason),
        cut(50, 20, high_watermark=50, reason=reason),
    ]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param((FOLLOWER, cut_to(50)), id="no reason"),
        pytest.param((DIVERGING, cut_to(50)), id="no old end"),
        pytest.param((FOLLOWER, LEADER, DIVERGING, cut_to(50)), id="the old end of another role"),
        pytest.param((FOLLOWER, DIVERGING, cut_to(120)), id="beyond the end that was told"),
        pytest.param((FOLLOWER, BELOW_HIGH_WATERMARK, NO_EFFECT), id="no effect"),
    ],
)
def test_a_cut_of_which_something_is_not_known_is_left_out(lines: tuple[str, ...]) -> None:
    assert cuts(*lines) == []


@pytest.mark.parametrize("log", [_LOG_3_9, _LOG])
@pytest.mark.parametrize("reason", ["client delete records request", "leader offset increment", "segment deletion"])
def test_a_rise_of_a_log_start_is_reported_whatever_its_reason(reason: str, log: str) -> None:
    assert told(raised_to(50, reason=reason, log=log)) == [raised(0, 50)]


def test_a_log_start_rises_from_where_the_process_last_reported_it() -> None:
    lines = [LOADED, CREATING, raised_to(50), raised_to(60)]
    assert list(BrokerLogLines(CAUSE).events(lines)) == [raised(40, 50), raised(50, 60)]


def test_a_partition_whose_topic_id_was_not_sent_is_left_out() -> None:
    assert list(BrokerLogLines(CAUSE).events([LEADER, FOLLOWER, DIVERGING, cut_to(50), raised_to(9)])) == []


@pytest.fixture
def append(tmp_path: Path) -> Callable[[str], None]:
    def write(text: str) -> None:
        with (tmp_path / "node.log").open("a") as file:
            file.write(text)

    return write


def test_a_reader_begins_after_the_process_before_and_takes_whole_lines(
    tmp_path: Path, append: Callable[[str], None]
) -> None:
    append(f"{CREATING}\n{LEADER}\n")
    reader = BrokerLogReader(tmp_path / "node.log", cause_id=CAUSE)
    append(f"{CREATING}\n{FOLLOWER[:50]}")
    assert reader.read_new() == []
    append(f"{FOLLOWER[50:]}\n")
    assert [type(event) for event in reader.read_new()] == [events.BecameFollower]
    assert reader.read_new() == []


def test_a_reader_waits_for_its_file(tmp_path: Path, append: Callable[[str], None]) -> None:
    reader = BrokerLogReader(tmp_path / "node.log", cause_id=CAUSE)
    assert reader.read_new() == []
    append(f"{CREATING}\n{LEADER}\n")
    assert [type(event) for event in reader.read_new()] == [events.BecameLeader]
