"""Rules whose work no event tells: each mark where the rule is at work, and none where it is not."""

from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.types import IsrAnswer, LeaderEpoch, Offset, PartitionEpoch, TruncationReason
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.simulation import Simulation
from tests.unit.simulator.oracle.world import CAUSE, FOLLOWER, LEADER, NAME, TOPIC, World

_CUT: Final = events.LogTruncated(
    cause_id=CAUSE,
    topic=NAME.topic,
    partition=NAME.partition,
    topic_id=TOPIC,
    reason=TruncationReason.DIVERGING_EPOCH,
    old_end_offset=Offset(3),
    new_end_offset=Offset(3),
    high_watermark=Offset(3),
    leader=LEADER,
    leader_epoch=LeaderEpoch(0),
)
_LOST: Final = events.PowerLost(
    cause_id=CAUSE,
    topic=NAME.topic,
    partition=NAME.partition,
    topic_id=TOPIC,
    lost_node=FOLLOWER,
    lost_incarnation=0,
    keep="none",
    old_end_offset=Offset(3),
    new_end_offset=Offset(3),
)
_ANSWERED: Final = events.AlterPartitionAnswered(
    cause_id=CAUSE,
    topic=NAME.topic,
    partition=NAME.partition,
    topic_id=TOPIC,
    error="NONE",
    outcome=IsrAnswer.COMMITTED,
    committed_isr=(LEADER, FOLLOWER),
    partition_epoch=PartitionEpoch(1),
)
_STARTS_BEFORE_IT_IS_MISSED: Final = """\
cluster brokers=3 roles_after_registration={rule}
topic orders replicas=(0,1,2) min.insync.replicas=2
wait 50
kill 0
start 0
wait 3000
"""


def test_a_power_loss_after_a_cut() -> None:
    world = World()
    world.happens(_CUT, node=FOLLOWER)
    world.happens(_LOST)
    assert world.oracle.tally.marks["power_loss:after_truncation"] == 1


def test_a_power_loss_of_another_process_than_the_one_that_cut() -> None:
    world = World()
    world.happens(_LOST)
    world.happens(_CUT, node=FOLLOWER)
    world.happens(world.last(events.LogOpened), node=FOLLOWER)
    world.happens(_LOST)
    assert "power_loss:after_truncation" not in world.oracle.tally.marks


def test_an_answer_that_waits_for_metadata() -> None:
    world = World()
    world.happens(world.last(events.MetadataApplied), node=LEADER)
    world.happens(_ANSWERED, node=LEADER)
    assert world.oracle.tally.marks["answered:held_back"] == 1


def test_an_answer_that_is_acted_on_at_once() -> None:
    world = World()
    world.happens(_ANSWERED, node=LEADER)
    assert "answered:held_back" not in world.oracle.tally.marks


def marks(rule: str) -> dict[str, int]:
    simulation = Simulation(parse_plan(_STARTS_BEFORE_IT_IS_MISSED.format(rule=rule)))
    simulation.play_plan()
    return simulation.oracle.tally.marks


def test_a_broker_that_waits_for_its_registration() -> None:
    assert marks("on")["roles:held_back"] == 1


def test_a_broker_that_takes_the_roles_of_the_process_before() -> None:
    assert "roles:held_back" not in marks("off")
