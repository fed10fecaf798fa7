"""The oracle's bound of a high watermark, by what a leader knew."""

import pytest

from emulator.core.events import HighWatermarkAdvanced, ReplicaProgress
from emulator.core.types import BrokerId, CauseId, LeaderEpoch, NodeId, Offset, TopicId
from emulator.verification.high_watermark import high_watermark_bound


def bound(*, maximal_isr: tuple[int, ...], ends: dict[int, int | None], log_end_offset: int = 100) -> int:
    """The bound of leader 0."""
    brokers = tuple(BrokerId(NodeId(node)) for node in maximal_isr)
    return high_watermark_bound(
        HighWatermarkAdvanced(
            cause_id=CauseId("test"),
            topic="orders",
            partition=0,
            topic_id=TopicId("id"),
            old=Offset(0),
            new=Offset(100),
            leader_epoch=LeaderEpoch(0),
            log_end_offset=Offset(log_end_offset),
            committed_isr=brokers,
            maximal_isr=brokers,
            joiners=(),
            effective_min_isr=2,
            replicas=tuple(
                ReplicaProgress(
                    broker_id=BrokerId(NodeId(node)),
                    log_end_offset=None if end is None else Offset(end),
                    leader_epoch=LeaderEpoch(0),
                )
                for node, end in ends.items()
            ),
        ),
        leader=0,
    )


@pytest.mark.parametrize(
    ("maximal_isr", "ends", "expected"),
    [
        ((0, 1, 2), {1: 90, 2: 80}, 80),
        ((0, 1), {1: 90, 2: 10}, 90),  # no member, no say
        ((0,), {1: 5}, 100),  # alone: its own log end
        ((0, 1), {1: 120}, 100),  # never past its own
        ((0, 1, 2), {1: 90}, 100),  # nothing was reported of a member
        ((0, 1, 2), {1: 90, 2: None}, 100),  # nothing is known of a member
    ],
)
def test_the_least_log_end_of_the_maximal_isr_bounds_it(
    maximal_isr: tuple[int, ...], ends: dict[int, int | None], expected: int
) -> None:
    assert bound(maximal_isr=maximal_isr, ends=ends) == expected
