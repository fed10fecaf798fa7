"""Properties that a healed cluster must come to: each where it is missing, and each excuse."""

import re

import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ConfigError, InvariantError
from laststand.emulator.core.types import BrokerId, NodeId, Offset, PartitionEpoch, RequestId
from laststand.emulator.plan.fields import PRODUCER_ALL
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.network.wire import Parked
from laststand.emulator.simulator.oracle.liveness import PARKED_MS, excused
from tests.unit.simulator.oracle.world import CLUSTER, FOLLOWER, LEADER, NAME, Doctor, World, assert_fires, firing


def missing(world: World) -> set[str]:
    return {check_id for check_id, _, _ in world.oracle.missing()}


def plays(world: World, *lines: str) -> None:
    for action in parse_plan(CLUSTER + "\n".join(lines) + "\n").actions:
        world.simulation.play(action)


def is_behind(world: World) -> None:
    plays(world, "hold 1->100 Stream response", "expire 2", "wait 1")


def is_down(world: World) -> None:
    plays(world, "kill 1")


def is_leaderless(world: World) -> None:
    plays(world, "kill 0,1,2", "expire 2", "wait 700")


def is_out_of_sync(world: World) -> None:
    plays(world, "expire 1", "wait 1")


def waits_for_an_answer(world: World) -> None:
    world.cluster.clients.produce(world.cluster.clients.producers[PRODUCER_ALL], NAME, 1)


def is_forgotten(world: World) -> None:
    world.cluster.wire.parked[RequestId(9_999)] = Parked(LEADER, "Fetch", 0)
    world.cluster.queue.now_ms += PARKED_MS + 1


def copies_differ(world: World) -> None:
    world.shorten(FOLLOWER)


def copies_start_elsewhere(world: World) -> None:
    world.node(LEADER).disk.logs[NAME].log_start_offset = Offset(2)


def is_kept_where_it_is_not_assigned(world: World) -> None:
    world.commits(replicas=(LEADER, FOLLOWER), isr=(LEADER, FOLLOWER), partition_epoch=PartitionEpoch(1))


def is_being_reassigned(world: World) -> None:
    world.commits(adding_replicas=(BrokerId(NodeId(2)),))


MISSING = (
    ("L1", is_behind),
    ("L2", is_down),
    ("L3", is_leaderless),
    ("L4", is_out_of_sync),
    ("L5", waits_for_an_answer),
    ("L5", is_forgotten),
    ("L6", copies_differ),
    ("L6", copies_start_elsewhere),
    ("L7", is_kept_where_it_is_not_assigned),
    ("L8", is_being_reassigned),
)


@firing(MISSING)
def test_it_is_missing(check_id: str, doctor: Doctor) -> None:
    world = World()
    assert missing(world) == set()
    doctor(world)
    assert check_id in missing(world)


def goes_on_changing(world: World) -> None:
    def tick() -> None:
        world.oracle.tally.fetch_errors += 1
        world.cluster.queue.after(100, tick)

    tick()
    world.simulation.finish()


def does_not_heal(world: World) -> None:
    world.commits(adding_replicas=(BrokerId(NodeId(2)),))
    world.simulation.finish()


def contradicts_itself(world: World) -> None:
    world.oracle.crashed(InvariantError("M9: a bug"))


def raises(world: World) -> None:
    world.oracle.crashed(KeyError("a bug"))


def test_an_exception_is_reported_with_its_place_in_the_program() -> None:
    world = World()
    try:
        parse_plan("explode 1\n")
    except ConfigError as error:
        world.oracle.crashed(error)
    (alarm,) = world.oracle.alarms
    assert re.search(r"expected .* \(at emulator/plan/plan\.py:\d+, in parse_numbered\)$", alarm.sentence)


CASES = (
    ("L8", does_not_heal),
    ("L9", goes_on_changing),
    ("InvariantError", contradicts_itself),
    ("Exception", raises),
)


@firing(CASES)
def test_it_fires(check_id: str, doctor: Doctor) -> None:
    assert_fires(check_id, doctor)


@pytest.mark.parametrize(
    ("elr", "killed", "is_missing"), [((), "1,2", False), ((), "1", True), ((FOLLOWER,), "1,2", True)]
)
def test_only_a_partition_without_candidate_is_excused_and_only_beyond_the_guarantee(
    elr: tuple[BrokerId, ...], killed: str, *, is_missing: bool
) -> None:
    world = World()
    plays(world, f"kill {killed}")
    world.commits(leader=None, isr=(), elr=elr)
    assert excused(world.cluster) == (() if elr else (NAME,))
    assert ("L3" in missing(world)) is is_missing


def test_a_request_that_is_answered_is_not_parked() -> None:
    world = World()
    world.cluster.clients.ask(LEADER, messages.MetadataRequest(topics=("orders",)), cause="test")
    world.cluster.run(1)
    assert "Metadata" not in {parked.api for parked in world.cluster.wire.parked.values()}


def test_a_follower_may_keep_more_of_what_was_deleted_or_begin_later_than_its_leader() -> None:
    world = World()
    leader, follower, other = (node.disk.logs[NAME] for node in world.cluster.nodes.values())
    leader.segments[0].base_offset = Offset(1)
    leader.segments[0].count -= 1
    del leader.batches[0]
    leader.log_start_offset = follower.log_start_offset = other.log_start_offset = Offset(1)
    assert missing(world) == set()
    follower.log_start_offset = Offset(2)
    assert missing(world) == set()
