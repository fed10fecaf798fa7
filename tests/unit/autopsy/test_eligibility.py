"""The rule that lets a replica lead (KIP-966, "Leader election")."""

import pytest

from laststand.emulator.autopsy.eligibility import BrokerEvidence, ElectionRule, judge_eligibility
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import BrokerId, LeaderEpoch, NodeId, PartitionEpoch, TopicId


def brokers(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(NodeId(number)) for number in numbers)


def state(isr: tuple[int, ...], elr: tuple[int, ...] = (), last: int | None = None) -> PartitionState:
    return PartitionState(
        topic_id=TopicId("t"),
        replicas=brokers(1, 2, 3),
        isr=brokers(*isr),
        elr=brokers(*elr),
        leader=None,
        leader_epoch=LeaderEpoch(4),
        partition_epoch=PartitionEpoch(9),
        last_known_leader=None if last is None else BrokerId(NodeId(last)),
    )


CLEAN = BrokerEvidence(registered_epoch=70, clean_epoch=70)
KILLED = BrokerEvidence(registered_epoch=70, clean_epoch=None)
STALE = BrokerEvidence(registered_epoch=70, clean_epoch=40)


@pytest.mark.parametrize(
    ("committed", "evidence", "elr_level", "rule", "survives_restart"),
    [
        (state((1,)), KILLED, 0, ElectionRule.ISR, None),
        (state((1,)), CLEAN, 1, ElectionRule.ISR, True),
        (state((1,)), KILLED, 1, ElectionRule.ISR, False),
        (state((), (1, 2)), CLEAN, 1, ElectionRule.ELR, True),
        (state((), (1, 2)), STALE, 1, ElectionRule.ELR, False),
        (state((3,), (1,)), CLEAN, 1, ElectionRule.UNCLEAN, None),
        (state((), (), 1), KILLED, 1, ElectionRule.LAST_KNOWN_LEADER, None),
        (state((), (), 1), KILLED, 0, ElectionRule.UNCLEAN, None),
        (state((), (2,), 1), KILLED, 1, ElectionRule.UNCLEAN, None),
        (state((2,)), CLEAN, 0, ElectionRule.UNCLEAN, None),
    ],
)
def test_the_first_rule_that_lets_broker_1_lead(
    committed: PartitionState,
    evidence: BrokerEvidence,
    elr_level: int,
    rule: ElectionRule,
    survives_restart: bool | None,  # noqa: FBT001 - a column of the table
) -> None:
    found = judge_eligibility(committed, BrokerId(NodeId(1)), evidence, elr_level=elr_level)
    assert (found.rule, found.survives_restart) == (rule, survives_restart)


def test_a_request_to_a_broker_without_the_partition_gets_the_leader() -> None:
    found = judge_eligibility(state((1,)), BrokerId(NodeId(7)), CLEAN, elr_level=1)
    assert found.rule is ElectionRule.NOT_ASSIGNED
    assert found.reason == "the partition is assigned to 1, 2, 3"
