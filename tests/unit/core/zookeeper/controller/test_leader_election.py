"""Elections without a winner, and what an unclean one leaves in the state node (vectors have the others)."""

import pytest

from laststand.emulator.core.types import LeaderEpoch, LeaderRecoveryState, PartitionEpoch
from laststand.emulator.core.zookeeper.controller.leader_election import (
    ElectionStrategy,
    Electorate,
    RecoveryMark,
    elect_leader,
    offline_leader,
)
from laststand.emulator.core.zookeeper.nodes.partition_state import LeaderAndIsr
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment
from tests.unit.core.zookeeper.controller.controllers import broker


def test_without_a_live_replica_there_is_not_even_an_unclean_leader() -> None:
    replicas = (broker(1), broker(2))
    assert offline_leader(replicas, replicas, frozenset(), is_unclean_allowed=True) is None


@pytest.mark.parametrize(
    ("mark", "state"),
    [
        (RecoveryMark.RECORDED, LeaderRecoveryState.RECOVERING),
        (RecoveryMark.NOT_RECORDED, LeaderRecoveryState.RECOVERED),
    ],
)
def test_an_unclean_election_is_recorded_from_protocol_3_2_on(mark: RecoveryMark, state: LeaderRecoveryState) -> None:
    current = LeaderAndIsr(
        leader=None,
        leader_epoch=LeaderEpoch(4),
        isr=(broker(1),),
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
        partition_epoch=PartitionEpoch(7),
    )
    electorate = Electorate(
        assignment=ReplicaAssignment(replicas=(broker(1), broker(2))),
        current=current,
        online=frozenset({broker(2)}),
        is_unclean_allowed=True,
        recovery_mark=mark,
    )
    elected = elect_leader(ElectionStrategy.OFFLINE, electorate).elected
    assert elected is not None
    assert (elected.leader, elected.isr, elected.leader_epoch) == (broker(2), (broker(2),), 5)
    assert elected.leader_recovery_state is state
