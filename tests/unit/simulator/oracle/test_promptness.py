"""Properties that must come to pass in time although faults are in force: each with its rule, and without it."""

import pytest

from laststand.emulator.core.broker.replicas.delayed_produce import ProduceHandler
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.controller.broker_handler import BrokerHandler
from laststand.emulator.core.controller.heartbeat import BrokerControlState
from laststand.emulator.core.controller.turn import ControllerTurn
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.image import BrokerRegistration
from laststand.emulator.core.types import RecoveryStrategy
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.oracle.promptness import bound_ms, unclean_bound_ms
from tests.unit.simulator.oracle.world import CLUSTER, NAME, PLAN, Doctor, World, assert_fires, firing


def plays(world: World, *lines: str) -> None:
    for action in parse_plan(CLUSTER + "\n".join(lines) + "\n").actions:
        world.simulation.play(action)


def endures(world: World, *lines: str) -> None:
    """Plays lines, and waits until what they call for is overdue."""
    plays(world, *lines, f"wait {bound_ms(world.cluster.properties) * 3 // 2}")


def is_led_by_nobody(world: World) -> None:
    world.has_no_leader()
    endures(world)


def has_no_candidate_within_the_guarantee(world: World) -> None:
    world.commits(leader=None, isr=(), elr=())
    endures(world)


def nobody_joins_the_isr(world: World) -> None:
    with pytest.MonkeyPatch.context() as rules:
        rules.setattr(Partition, "may_join", lambda _self, _replica: False)
        plays(world, "expire 1,2", "wait 100", "produce orders-0 acks=1 records=1")
        endures(world, "cut 2->0")


def high_watermark_stands_still(world: World) -> None:
    with pytest.MonkeyPatch.context() as rules:
        rules.setattr(Partition, "advance_high_watermark", lambda _self, _turn: None)
        plays(world, "produce orders-0 acks=1 records=1")
        endures(world)


def nobody_wakes_what_waits(world: World) -> None:
    with pytest.MonkeyPatch.context() as rules:
        rules.setattr(ProduceHandler, "check", lambda _self, _turn, _name: None)
        endures(world, "produce orders-0 acks=all records=1")


def sessions_never_end(world: World) -> None:
    with pytest.MonkeyPatch.context() as rules:
        rules.setattr(BrokerHandler, "expire", lambda _self, _turn, _key: None)
        endures(world, "cut 2->100")


def is_never_unfenced(world: World) -> None:
    enter = BrokerHandler._enter

    def enter_if_fenced(
        handler: BrokerHandler, turn: ControllerTurn, broker: BrokerRegistration, state: BrokerControlState
    ) -> None:
        if state.is_fenced:
            enter(handler, turn, broker, state)

    with pytest.MonkeyPatch.context() as rules:
        rules.setattr(BrokerHandler, "_enter", enter_if_fenced)
        endures(world, "expire 1")


def isr_never_shrinks(world: World) -> None:
    with pytest.MonkeyPatch.context() as rules:
        rules.setattr(Partition, "out_of_sync_members", lambda _self, *, now_ms: frozenset())
        endures(world, "cut 1->0", "cut 2->0", "produce orders-0 acks=1 records=1")


CASES = (
    ("L10", is_led_by_nobody),
    ("L10", has_no_candidate_within_the_guarantee),
    ("L11", nobody_joins_the_isr),
    ("L11", high_watermark_stands_still),
    ("L11", nobody_wakes_what_waits),
    ("L12", sessions_never_end),
    ("L12", is_never_unfenced),
    ("L13", isr_never_shrinks),
)


@firing(CASES)
def test_it_fires(check_id: str, doctor: Doctor) -> None:
    assert_fires(check_id, doctor)


KEPT = (
    ("cut 2->100",),
    ("cut 2->0", "produce orders-0 acks=1 records=1"),
    ("isolate 0", "produce orders-0 acks=all records=1"),
    ("kill 1", "stop 2", "wait 800", "start 2"),
    ("kill 0", "wait 800", "start 0"),
    ("hold 0->100 AlterPartition request", "cut 2->0", "produce orders-0 acks=all records=1"),
    ("min-isr orders value=1", "hold 0->100 AlterPartition request", "cut 2->0", "produce orders-0 acks=1 records=1"),
    ("pause 100", "cut 2->100"),
    ("lose-responses 2->0", "produce orders-0 acks=all records=1"),
    ("pause 2",),
    ("produce orders-0 acks=all records=1", "wait 2000", "recreate orders"),
)
"""Faults under which each rule is kept."""


@pytest.mark.parametrize("lines", KEPT, ids=" ".join)
def test_it_is_silent(lines: tuple[str, ...]) -> None:
    world = World()
    endures(world, *lines)
    assert not world.fired


@pytest.mark.parametrize(
    ("mark", "lines"),
    [
        ("in_time:L10", ("stop 0", "wait 100", "stop 1", "wait 100", "cut 2->100", "wait 600", "mend 2->100")),
        ("timed_out:uncommitted", ("cut 1->0", "cut 2->0", "produce orders-0 acks=all records=1")),
        ("in_time:L11", ("cut 1->0", "cut 2->0", "produce orders-0 acks=all records=1", "wait 60", "mend 1->0")),
        ("in_time:L12", ("cut 2->100",)),
        ("in_time:L13", ("cut 2->0", "produce orders-0 acks=1 records=1")),
    ],
)
def test_promised_checks_are_asked(mark: str, lines: tuple[str, ...]) -> None:
    world = World()
    endures(world, *lines)
    assert world.oracle.tally.marks[mark] > 0
    assert not world.fired


def test_a_feature_that_goes_takes_the_promise_of_a_candidate_along() -> None:
    world = World()
    assert world.oracle.checks.promptness.keeps_a_candidate(NAME)
    plays(world, "elr-feature level=0", "wait 5")
    assert not world.oracle.checks.promptness.keeps_a_candidate(NAME)


def test_more_failures_than_the_guarantee_covers_take_the_promise_of_a_candidate_along() -> None:
    world = World()
    plays(world, "kill 1")
    assert world.oracle.checks.promptness.keeps_a_candidate(NAME)
    plays(world, "kill 2")
    assert not world.oracle.checks.promptness.keeps_a_candidate(NAME)


LOST = "power-loss 0,1,2 keep=none kept=0 truncation=kept"
AGGRESSIVE = "unclean.recovery.strategy=Aggressive"
MANAGER = "unclean.recovery.manager.enabled=true unclean.recovery.timeout.ms=300"
AT_RISK = (
    (AGGRESSIVE, (LOST, "wait 1500", "start 1")),
    (f"{MANAGER} {AGGRESSIVE}", (LOST, "wait 1500", "start 1")),
    (MANAGER, (LOST, "wait 1500", "start 0,1,2")),
)
"""Properties by which the cluster is at risk, and the lines by which it comes to need an unclean leader."""
at_risk = pytest.mark.parametrize(("properties", "lines"), AT_RISK)


def endures_at_risk(properties: str, lines: tuple[str, ...]) -> World:
    world = World(PLAN.replace("cluster", f"cluster {properties} unclean.leader.election.interval.ms=1000", 1))
    plays(world, *lines, f"wait {unclean_bound_ms(world.cluster.properties) * 3 // 2}")
    return world


@at_risk
def test_it_fires_without_an_unclean_election(properties: str, lines: tuple[str, ...]) -> None:
    with pytest.MonkeyPatch.context() as rules:
        rules.setattr(ClusterView, "recovery_strategy", lambda _self, _topic: RecoveryStrategy.NONE)
        assert endures_at_risk(properties, lines).fired == {"L10"}


@at_risk
def test_it_is_silent_after_an_unclean_election(properties: str, lines: tuple[str, ...]) -> None:
    world = endures_at_risk(properties, lines)
    assert world.cluster.image.partitions[NAME].leader is not None
    assert "L10" not in world.fired


def test_whom_the_controller_cannot_ask_is_not_in_touch() -> None:
    holds = tuple(f"hold 100->{broker} GetReplicaLogInfo request" for broker in range(3))
    world = endures_at_risk(MANAGER, (LOST, "wait 1500", *holds, "start 0,1,2"))
    assert world.cluster.image.partitions[NAME].leader is None
    assert "L10" not in world.fired


def test_strategy_none_elects_no_unclean_leader() -> None:
    world = endures_at_risk("unclean.recovery.strategy=None", (LOST, "wait 1500", "start 1"))
    assert world.cluster.image.partitions[NAME].leader is None
    assert "L10" not in world.fired


def test_an_unclean_leader_that_is_due_is_marked() -> None:
    properties = f"unclean.recovery.manager.enabled=true unclean.recovery.timeout.ms=3000 {AGGRESSIVE}"
    lines = (LOST, "wait 1500", "hold 100->2 GetReplicaLogInfo request", "start 1,2")
    assert endures_at_risk(properties, lines).oracle.tally.marks["in_time:L10_unclean"] > 0
