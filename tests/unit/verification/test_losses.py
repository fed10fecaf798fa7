"""Acknowledged records of a partition that nobody leads in the end, by what is left of them."""

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    ChangeReason,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    PartitionEpoch,
    TopicId,
)
from laststand.emulator.verification.facts.losses import LossClass, classify_unsettled

LEADERLESS = events.PartitionChanged(
    cause_id=CauseId("test"),
    topic="orders",
    partition=0,
    topic_id=TopicId("orders-id"),
    metadata_offset=MetadataOffset(9),
    reason=ChangeReason.BROKER_FENCED,
    election=events.Election.NO_CANDIDATE,
    broker_id=None,
    effective_min_isr=2,
    leader=None,
    leader_epoch=LeaderEpoch(4),
    partition_epoch=PartitionEpoch(4),
    replicas=(BrokerId(NodeId(0)), BrokerId(NodeId(1)), BrokerId(NodeId(2))),
    isr=(),
    elr=(BrokerId(NodeId(0)),),
    last_known_elr=(),
    last_known_leader=BrokerId(NodeId(1)),
    leader_recovery_state=LeaderRecoveryState.RECOVERED,
    adding_replicas=(),
    removing_replicas=(),
)


@pytest.mark.parametrize(
    ("holders", "was_lacking", "loss_class"),
    [
        (set(), False, LossClass.GONE_EVERYWHERE),
        ({2}, False, LossClass.ONLY_UNELECTABLE),
        ({2}, True, LossClass.ONLY_UNELECTABLE),
        ({0}, False, None),
        ({0}, True, LossClass.GONE_FOR_A_TIME),
        ({1}, False, None),
        ({1}, True, LossClass.GONE_FOR_A_TIME),
    ],
)
def test_a_record_that_a_leader_lacked_is_lost_for_a_time_though_a_candidate_or_the_last_leader_has_it(
    *, holders: set[int], was_lacking: bool, loss_class: LossClass | None
) -> None:
    assert classify_unsettled(state=LEADERLESS, holders=holders, was_lacking=was_lacking) is loss_class
