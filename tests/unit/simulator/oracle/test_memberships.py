"""R7 and R8, each on the history of a group that is doctored until it must fire."""

import msgspec

from laststand.emulator.core.client.steps import GroupMemberRecorded, GroupReadRecorded
from laststand.emulator.core.history import MemberStep
from laststand.emulator.core.types import CauseId, Offset, TopicPartition
from tests.unit.simulator.oracle.world import Doctor, World, firing

PLAN = """\
cluster brokers=3
topic orders replicas=(0,1,2);(0,1,2) min.insync.replicas=2
topic __consumer_offsets replicas=(1,2,0) min.insync.replicas=2
produce orders-0 acks=all records=1
wait 300
member group=readers number=0 does=join
member group=readers number=1 does=join
wait 8000
"""
FIRST = TopicPartition("orders", 0)


def step(world: World, client: str, step: MemberStep, generation: int, *, overdue_ms: int = 0) -> None:
    record = GroupMemberRecorded(
        group_id="readers",
        step=step,
        member_id=client,
        instance_id=None,
        generation_id=generation,
        partitions=(FIRST,) if step is MemberStep.ASSIGNED else (),
        overdue_ms=overdue_ms,
    )
    world.oracle.recorded(client, record, now_ms=world.cluster.now_ms)


def comes_into_a_former_generation(world: World) -> None:
    step(world, "another", MemberStep.JOINING, -1)
    step(world, "another", MemberStep.ASSIGNED, 0)


def owns_what_another_owns(world: World) -> None:
    step(world, "another", MemberStep.ASSIGNED, 1)
    world.oracle.finish()


def begins_before_a_position(world: World) -> None:
    reads = [each.record for each in world.journal.history if isinstance(each.record, GroupReadRecorded)]
    step(world, "another", MemberStep.ASSIGNED, 2)
    again = msgspec.structs.replace(reads[0], operation_id=CauseId("again"), committed=None, position=Offset(0))
    world.oracle.recorded("another", again, now_ms=world.cluster.now_ms)
    world.oracle.finish()


CASES: tuple[tuple[str, Doctor], ...] = (
    ("R7", comes_into_a_former_generation),
    ("R8", owns_what_another_owns),
    ("X9", begins_before_a_position),
)


@firing(CASES)
def test_it_fires(check_id: str, doctor: Doctor) -> None:
    world = World(PLAN)
    doctor(world)
    assert check_id in {finding.check_id for finding in world.simulation.findings()}


def test_one_that_asked_before_may_be_in_the_generation_before() -> None:
    world = World(PLAN)
    step(world, "late", MemberStep.JOINING, -1)
    step(world, "early", MemberStep.JOINING, -1)
    step(world, "early", MemberStep.ASSIGNED, 3)
    step(world, "early", MemberStep.LEFT, 3)
    step(world, "late", MemberStep.ASSIGNED, 2)
    world.oracle.finish()
    assert world.fired == set()


def test_a_session_that_is_over_owns_nothing_when_its_member_notices_late() -> None:
    world = World(PLAN)
    since_ms = world.cluster.now_ms
    step(world, "asleep", MemberStep.ASSIGNED, 2)
    world.cluster.run(500)
    step(world, "awake", MemberStep.ASSIGNED, 2)
    world.cluster.run(500)
    step(world, "asleep", MemberStep.EXPIRED, 2, overdue_ms=world.cluster.now_ms - since_ms - 400)
    world.oracle.finish()
    assert world.fired == set()


def test_members_that_come_and_go_are_in_order() -> None:
    more = [
        "member group=readers number=1 does=pause",
        "wait 14000",
        "member group=readers number=1 does=go-on",
        "wait 8000",
        "kill 1",
        "wait 4000",
        "member group=readers number=0 does=leave",
        "wait 8000",
        "",
    ]
    world = World(PLAN + "\n".join(more))
    world.simulation.finish()
    assert world.oracle.alarms == []
    lines = [each.record for each in world.journal.history if isinstance(each.record, GroupMemberRecorded)]
    assert {MemberStep.EXPIRED, MemberStep.LEFT, MemberStep.DIED} <= {line.step for line in lines}
    assert max(line.generation_id for line in lines) >= 3
