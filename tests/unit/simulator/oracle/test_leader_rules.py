"""Checks of what a leader does, each in a cluster in which it must fire."""

import msgspec
import pytest

from laststand.emulator.core import events, messages
from laststand.emulator.core.broker.replicas.isr import PendingExpand, PendingShrink
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.switches import MaximalIsr
from laststand.emulator.core.types import BrokerId, IsrAnswer, LeaderEpoch, LeaderRecoveryState, Offset, PartitionEpoch
from tests.unit.simulator.oracle.world import (
    CAUSE,
    CLUSTER,
    FOLLOWER,
    LEADER,
    NAME,
    OTHER,
    PLAN,
    TOPIC,
    Doctor,
    World,
    assert_fires,
    firing,
)

ISR = (LEADER, FOLLOWER, OTHER)


def advances(world: World, *, ends: tuple[int, int, int] = (3, 3, 3), **fields: object) -> None:
    event = events.HighWatermarkAdvanced(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        old=Offset(2),
        new=Offset(3),
        leader_epoch=LeaderEpoch(0),
        log_end_offset=Offset(3),
        committed_isr=ISR,
        maximal_isr=ISR,
        joiners=(),
        effective_min_isr=2,
        replicas=tuple(
            events.ReplicaProgress(broker_id, Offset(end), LeaderEpoch(0))
            for broker_id, end in zip(ISR, ends, strict=True)
        ),
    )
    world.happens(msgspec.structs.replace(event, **fields), node=LEADER)


def member_is_not_there_yet(world: World) -> None:
    advances(world)
    assert "H1" not in world.fired
    advances(world, ends=(3, 2, 3))


def leads_again(world: World, epoch: int) -> None:
    former = world.last(events.BecameFollower)
    world.happens(msgspec.structs.replace(former, leader_epoch=LeaderEpoch(epoch - 1)), node=LEADER)
    leads = msgspec.structs.replace(world.last(events.BecameLeader), leader_epoch=LeaderEpoch(epoch))
    world.happens(leads, node=LEADER)


def progress_of_an_earlier_leadership(world: World) -> None:
    leads_again(world, 2)
    advances(world, leader_epoch=LeaderEpoch(2))


def progress_from_before_a_term_that_ended_unseen(world: World) -> None:
    """The epochs in between may have had another leader; the broker has heard of all of them at once."""
    leads = msgspec.structs.replace(world.last(events.BecameLeader), leader_epoch=LeaderEpoch(2))
    world.happens(leads, node=LEADER)
    advances(world, leader_epoch=LeaderEpoch(2))


def stays_behind_what_all_hold(world: World) -> None:
    advances(world, new=Offset(2), old=Offset(1))


def isr_too_small(world: World) -> None:
    advances(world, committed_isr=(LEADER,))


def isr_was_never_committed(world: World) -> None:
    advances(world, committed_isr=(LEADER, FOLLOWER))


def high_watermark_falls(world: World) -> None:
    world.oracle.scan()
    world.partition(LEADER).log.high_watermark = Offset(1)
    world.oracle.scan()


def leader_forgets_a_candidate(world: World) -> None:
    world.commits(elr=(BrokerId(FOLLOWER),), isr=(LEADER,), replicas=ISR)
    leader = world.partition(LEADER)
    leader.isr_state = msgspec.structs.replace(leader.isr_state, isr=(LEADER, OTHER))
    world.oracle.scan()


def proposes(world: World) -> None:
    event = events.AlterPartitionProposed(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        committed_isr=ISR,
        proposed_isr=(LEADER, FOLLOWER),
        maximal_isr=ISR,
        broker_epochs=(None, None),
    )
    world.happens(event, node=LEADER)


def proposes_twice(world: World) -> None:
    proposes(world)
    answer = events.AlterPartitionAnswered(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        error="INELIGIBLE_REPLICA",
        outcome=IsrAnswer.REVERTED,
        committed_isr=ISR,
        partition_epoch=PartitionEpoch(0),
    )
    world.happens(answer, node=LEADER)
    proposes(world)
    assert "H5" not in world.fired
    proposes(world)


def reckons_without_who_joins(world: World) -> None:
    leader = world.partition(LEADER)
    leader.isr_state = PendingExpand((LEADER, FOLLOWER), OTHER)
    config = leader._config
    committed_only = msgspec.structs.replace(config.switches, maximal_isr=MaximalIsr.COMMITTED_ONLY)
    leader._config = msgspec.structs.replace(config, switches=committed_only)
    world.oracle.scan()


def leader_is_not_in_its_isr(world: World) -> None:
    world.partition(LEADER).isr_state = PendingShrink((FOLLOWER, OTHER), frozenset((OTHER,)))
    world.oracle.scan()


def recovers(world: World, broker_id: BrokerId) -> None:
    broker = world.node(broker_id).broker
    assert broker is not None
    state = broker.image.partitions[NAME]
    broker.image.partitions[NAME] = msgspec.structs.replace(state, leader_recovery_state=LeaderRecoveryState.RECOVERING)


def serves_a_fetch_while_it_recovers(world: World) -> None:
    recovers(world, LEADER)
    refused = messages.FetchPartitionResponse(topic=NAME.topic, partition=0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.oracle.responded(world.node(LEADER), messages.FetchResponse(partitions=(refused,)))
    assert "M18" not in world.fired
    served = msgspec.structs.replace(refused, error=ErrorCode.NONE)
    world.oracle.responded(world.node(LEADER), messages.FetchResponse(partitions=(served,)))


def follower_serves_while_its_leader_recovers(world: World) -> None:
    recovers(world, FOLLOWER)
    listed = messages.ListOffsetsResult(topic=NAME.topic, partition=0, error=ErrorCode.NONE, offset=Offset(3))
    world.oracle.responded(world.node(FOLLOWER), messages.ListOffsetsResponse(partitions=(listed,)))


def appends_while_it_recovers(world: World) -> None:
    recovers(world, LEADER)
    world.appends()


def two_leaders_in_an_epoch(world: World) -> None:
    world.appends()
    world.appends(broker=FOLLOWER)


CASES = (
    ("H1", member_is_not_there_yet),
    ("H1", progress_of_an_earlier_leadership),
    ("H1", progress_from_before_a_term_that_ended_unseen),
    ("H1", stays_behind_what_all_hold),
    ("H2", isr_too_small),
    ("H2", isr_was_never_committed),
    ("H3", high_watermark_falls),
    ("H4", leader_forgets_a_candidate),
    ("H5", proposes_twice),
    ("H5", reckons_without_who_joins),
    ("H5", leader_is_not_in_its_isr),
    ("M18", serves_a_fetch_while_it_recovers),
    ("M18", follower_serves_while_its_leader_recovers),
    ("M18", appends_while_it_recovers),
    ("M8", two_leaders_in_an_epoch),
)


@firing(CASES)
def test_it_fires(check_id: str, doctor: Doctor) -> None:
    assert_fires(check_id, doctor)


@pytest.mark.parametrize(("lacking", "is_finding"), [(FOLLOWER, True), (LEADER, False)])
def test_a_high_watermark_beside_the_rule_counts_of_a_broker_that_has_it(
    lacking: BrokerId, *, is_finding: bool
) -> None:
    rolled = f"stop {lacking}\nwait 20000\nstart {lacking} era=kip-966,hw_requires_min_isr=off\nwait 20000\n"
    led = "elect_leaders: {type: preferred, partition: orders-0}\nwait 5000\n"
    world = World(f"{CLUSTER}{rolled}{led}{PLAN.removeprefix(CLUSTER)}")
    assert world.cluster.image.partitions[NAME].leader == LEADER
    isr_too_small(world)
    assert "H2" in world.fired
    assert ("H2" in {found.check_id for found in world.simulation.findings()}) is is_finding
