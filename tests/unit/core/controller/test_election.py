"""Elections of a leader, by mode: a table over the pure function, and what a draw picks."""

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.controller.election import Candidates, elect_leader
from laststand.emulator.core.controller.recovery import RecoveryAction, decide_recovery
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.switches import LastKnown
from laststand.emulator.core.types import BrokerId, ElectionType, LeaderEpoch, PartitionEpoch, RecoveryStrategy, TopicId
from tests.unit.core.controller.controller_driver import ids


def candidates(
    *, isr: tuple[int, ...] = (), elr: tuple[int, ...] = (), live: tuple[int, ...], draw: int = 0
) -> Candidates:
    return Candidates(
        replicas=ids(1, 2, 3),
        isr=ids(*isr),
        elr=ids(*elr),
        leader=None,
        acceptable=frozenset(ids(*live)),
        last_known_leader=ids(3)[0],
        draw=draw,
    )


@pytest.mark.parametrize(
    ("mode", "last_known", "election"),
    [
        (ElectionType.CLEAN, LastKnown.LEADER, events.Election.NO_CANDIDATE),
        (ElectionType.CLEAN, LastKnown.KIP, events.Election.NO_CANDIDATE),
        (ElectionType.ONLINE, LastKnown.LEADER, events.Election.LAST_KNOWN_LEADER),
        (ElectionType.ONLINE, LastKnown.KIP, events.Election.LAST_KNOWN_LEADER),
        (ElectionType.PREFERRED, LastKnown.LEADER, events.Election.LAST_KNOWN_LEADER),
        (ElectionType.UNCLEAN, LastKnown.LEADER, events.Election.LAST_KNOWN_LEADER),
        (ElectionType.UNCLEAN, LastKnown.KIP, events.Election.UNCLEAN),
    ],
)
def test_nobody_eligible_is_left(mode: ElectionType, last_known: LastKnown, election: events.Election) -> None:
    assert elect_leader(candidates(live=(1, 2, 3)), mode=mode, last_known=last_known).election is election


@pytest.mark.parametrize("mode", list(ElectionType))
def test_every_mode_takes_a_clean_candidate_first(mode: ElectionType) -> None:
    result = elect_leader(candidates(isr=(2, 3), live=(1, 2, 3)), mode=mode, last_known=LastKnown.KIP)
    assert (result.leader, result.election) == (2, events.Election.ISR)


@pytest.mark.parametrize("last_known", list(LastKnown))
@pytest.mark.parametrize("mode", list(ElectionType))
def test_a_last_known_leader_that_is_fenced_is_elected_in_no_mode(mode: ElectionType, last_known: LastKnown) -> None:
    # KAFKA-19522 (S18).
    assert elect_leader(candidates(live=(1, 2)), mode=mode, last_known=last_known).leader != 3


@pytest.mark.parametrize(
    ("live", "draw", "leader"),
    [((1, 2, 3), 0, 1), ((1, 2, 3), 1, 2), ((1, 2, 3), 5, 3), ((1, 3), 1, 3), ((3,), 7, 3), ((), 1, None)],
)
def test_a_draw_picks_among_those_who_live(live: tuple[int, ...], draw: int, leader: BrokerId | None) -> None:
    result = elect_leader(candidates(live=live, draw=draw), mode=ElectionType.UNCLEAN, last_known=LastKnown.KIP)
    assert result.leader == leader


@pytest.mark.parametrize(
    ("strategy", "action"),
    [
        (RecoveryStrategy.AGGRESSIVE, RecoveryAction.UNCLEAN_RECOVERY),
        (RecoveryStrategy.BALANCED, RecoveryAction.WAIT_ISR),
        (RecoveryStrategy.NONE, RecoveryAction.WAIT_ISR),
    ],
)
def test_an_isr_member_that_is_left_is_waited_for(strategy: RecoveryStrategy, action: RecoveryAction) -> None:
    state = PartitionState(
        topic_id=TopicId("t"),
        replicas=ids(1, 2),
        isr=ids(1),
        leader=None,
        leader_epoch=LeaderEpoch(1),
        partition_epoch=PartitionEpoch(1),
    )
    assert decide_recovery(state, active=frozenset(ids(2)), strategy=strategy).action is action


def test_an_elr_member_that_is_no_replica_keeps_nobody_from_a_recovery() -> None:
    # S37: without ``elr_within_replicas`` an ELR may have others, and they are not elected.
    state = PartitionState(
        topic_id=TopicId("t"),
        replicas=ids(2),
        isr=(),
        leader=None,
        leader_epoch=LeaderEpoch(1),
        partition_epoch=PartitionEpoch(1),
        elr=ids(0, 1, 2),
    )
    decision = decide_recovery(state, active=frozenset(ids(0, 1)), strategy=RecoveryStrategy.AGGRESSIVE)
    assert decision.action is RecoveryAction.UNCLEAN_RECOVERY
