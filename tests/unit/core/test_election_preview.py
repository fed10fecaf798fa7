"""What electing each live replica would lose, against a twin that knows the logs record by record."""

import random

import pytest

from emulator.core.election_preview import Bounds, LiveReplica, live_replica, preview_elections
from emulator.core.errors import ErrorCode
from emulator.core.messages import ReplicaLogInfo
from emulator.core.types import BrokerId, LeaderEpoch, NodeId, Offset, TopicId


def replica(broker_id: int, *, epoch: int | None, end: int, high_watermark: int = 0) -> LiveReplica:
    return LiveReplica(
        broker_id=BrokerId(NodeId(broker_id)),
        last_written_leader_epoch=None if epoch is None else LeaderEpoch(epoch),
        log_end_offset=Offset(end),
        high_watermark=Offset(high_watermark),
    )


def test_the_first_is_whom_unclean_recovery_would_choose() -> None:
    previews = preview_elections(
        (replica(1, epoch=1, end=500), replica(2, epoch=2, end=50), replica(3, epoch=2, end=60))
    )
    assert [preview.replica.broker_id for preview in previews] == [3, 2, 1]


@pytest.mark.parametrize(
    ("candidate", "other", "lost", "committed_lost"),
    [
        pytest.param((2, 50, 40), (2, 60, 55), Bounds(10, 10), Bounds(5, 5), id="one epoch is exact"),
        pytest.param((2, 60, 55), (2, 50, 40), Bounds(0, 0), Bounds(0, 0), id="the longer one loses nothing"),
        pytest.param((3, 50, 40), (2, 60, 30), Bounds(10, 30), Bounds(0, 0), id="parted above the high watermarks"),
        pytest.param((1, 20, 10), (2, 60, 50), Bounds(40, 50), Bounds(30, 40), id="an older epoch"),
        pytest.param((None, 0, 0), (2, 60, 50), Bounds(60, 60), Bounds(50, 50), id="an empty log"),
        pytest.param((None, 0, 0), (None, 0, 0), Bounds(0, 0), Bounds(0, 0), id="two empty logs"),
    ],
)
def test_a_pair(
    candidate: tuple[int | None, int, int],
    other: tuple[int | None, int, int],
    lost: Bounds,
    committed_lost: Bounds,
) -> None:
    replicas = tuple(
        replica(broker_id, epoch=epoch, end=end, high_watermark=high_watermark)
        for broker_id, (epoch, end, high_watermark) in enumerate((candidate, other))
    )
    [preview] = [found for found in preview_elections(replicas) if found.replica.broker_id == 0]
    assert (preview.lost, preview.committed_lost) == (lost, committed_lost)


def test_alone_it_loses_nothing() -> None:
    [preview] = preview_elections((replica(1, epoch=1, end=5),))
    assert (preview.lost, preview.committed_lost) == (Bounds(0, 0), Bounds(0, 0))


@pytest.mark.parametrize("seed", range(200))
def test_the_truth_lies_within_the_bounds(seed: int) -> None:
    """Logs grow epoch by epoch from whichever replica leads, which keeps the rule of one writer per epoch."""
    rng = random.Random(seed)
    logs: list[list[int]] = [[], [], []]
    committed: list[int] = []
    for epoch in range(rng.randint(1, 5)):
        leader = rng.choice([index for index, log in enumerate(logs) if log[: len(committed)] == committed])
        logs[leader] += [epoch] * rng.randint(0, 4)
        for index in range(3):
            if index != leader and rng.random() < 0.6:
                # A follower takes over a prefix of the leader's log, and never cuts what is committed.
                end = rng.randint(len(committed), len(logs[leader]))
                logs[index] = logs[leader][: max(end, common_end(logs[index], logs[leader]))]
        lengths = sorted((common_end(log, logs[leader]) for log in logs), reverse=True)
        committed = logs[leader][: max(len(committed), lengths[1])]
    replicas = tuple(
        replica(
            index,
            epoch=log[-1] if log else None,
            end=len(log),
            high_watermark=common_end(log, committed) if rng.random() < 0.5 else 0,
        )
        for index, log in enumerate(logs)
    )
    for preview in preview_elections(replicas):
        mine = logs[preview.replica.broker_id]
        lost = max(len(log) - common_end(log, mine) for log in logs)
        assert preview.lost.at_least <= lost <= preview.lost.at_most


def common_end(one: list[int], other: list[int]) -> int:
    for offset, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return offset
    return min(len(one), len(other))


def test_an_answer_without_a_replica_is_none() -> None:
    told = ReplicaLogInfo(topic_id=TopicId("t"), partition=0, error=ErrorCode.UNKNOWN_TOPIC_ID)
    assert live_replica(BrokerId(NodeId(1)), told) is None


def test_an_answer_is_taken_as_it_is() -> None:
    told = ReplicaLogInfo(
        topic_id=TopicId("t"),
        partition=0,
        error=ErrorCode.NONE,
        last_written_leader_epoch=LeaderEpoch(3),
        current_leader_epoch=LeaderEpoch(4),
        log_end_offset=Offset(7),
        high_watermark=Offset(5),
    )
    assert live_replica(BrokerId(NodeId(1)), told) == replica(1, epoch=3, end=7, high_watermark=5)
