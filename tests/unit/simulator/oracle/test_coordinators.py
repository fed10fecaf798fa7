"""Coordinators and logs of transactions, each doctored until a check of it must fire."""

from collections.abc import MutableMapping
from typing import cast

import msgspec
import pytest

from laststand.emulator.core import events
from laststand.emulator.core.broker.groups.shard import GroupShard
from laststand.emulator.core.broker.kraft.broker import Broker
from laststand.emulator.core.broker.replicas.transaction_index import CompletedTransaction
from laststand.emulator.core.client.steps import CommittedReadRecorded
from laststand.emulator.core.coordinator_records import LoadedRecord
from laststand.emulator.core.group_records import GroupRemoved
from laststand.emulator.core.types import BrokerId, CauseId, NodeId, Offset, ProducerId, TopicPartition
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation
from tests.unit.simulator.oracle.test_transactions import FIRST, GROUPS, PLAN
from tests.unit.simulator.oracle.world import Doctor, World, firing

COORDINATOR = BrokerId(NodeId(1))
POSITIONS = TopicPartition("__consumer_offsets", 0)


def world_of_transactions(end: str = "commit") -> World:
    """Returns a world in which a transaction is over."""
    return World(PLAN.format(end=end))


def world_of_groups() -> World:
    """Returns a world in which groups have committed positions, one in a transaction, and one was told its own."""
    return World(GROUPS.format(end="commit") + "consume orders-0 group=readers records=1\nwait 300\n")


def goes_on_before_it_took_effect(world: World) -> None:
    begun = world.last(events.TransitionBegun)
    for old, new in (("CompleteCommit", "Ongoing"), ("CompleteCommit", "Empty")):
        world.happens(msgspec.structs.replace(begun, old=old, new=new), node=COORDINATOR, incarnation=0)


def takes_a_wrong_transition(world: World) -> None:
    begun = world.last(events.TransitionBegun)
    world.happens(msgspec.structs.replace(begun, old="CompleteCommit", new="CompleteAbort"), node=COORDINATOR)


def goes_on_from_another_state(world: World) -> None:
    begun = world.last(events.TransitionBegun)
    world.happens(msgspec.structs.replace(begun, old="Empty", new="Ongoing"), node=COORDINATOR)


def completes_without_markers(world: World) -> None:
    sent, begun = world.last(events.MarkersSent), world.last(events.TransitionBegun)
    world.happens(msgspec.structs.replace(sent, partitions=("orders-0",), decided_at=Offset(0)), node=COORDINATOR)
    world.happens(begun, node=COORDINATOR)


def completes_what_was_never_ended(world: World) -> None:
    begun = world.last(events.TransitionBegun)
    world.happens(msgspec.structs.replace(begun, transactional_id="other"), node=COORDINATOR)


def forgets_a_partition(world: World) -> None:
    sent, begun = world.last(events.MarkersSent), world.last(events.TransitionBegun)
    later = Offset(sent.decided_at - 1)
    world.happens(
        msgspec.structs.replace(begun, old="Ongoing", new="PrepareCommit", partitions=("refunds-0",), offset=later),
        node=COORDINATOR,
    )
    world.happens(msgspec.structs.replace(sent, partitions=(), decided_at=later), node=COORDINATOR)
    world.happens(begun, node=COORDINATOR)


def sends_markers_too_early(world: World) -> None:
    sent = world.last(events.MarkersSent)
    world.happens(msgspec.structs.replace(sent, decided_at=Offset(99)), node=COORDINATOR)


def tells_what_is_not_committed(world: World) -> None:
    told = world.last(events.PositionReturned)
    world.happens(msgspec.structs.replace(told, counts_from=Offset(99)), node=COORDINATOR)


def _reads(world: World, *, stable_to: int, high_watermark: int = 2, log_start_offset: int = 0) -> None:
    record = CommittedReadRecorded(
        operation_id=CauseId("reader"),
        partition=FIRST,
        topic_id=None,
        node=NodeId(0),
        position=Offset(2),
        next_position=Offset(2),
        seek=True,
        high_watermark=Offset(high_watermark),
        last_stable_offset=Offset(stable_to),
        log_start_offset=Offset(log_start_offset),
    )
    world.oracle.recorded("reader", record, now_ms=0)


def holds_readers_above_the_high_watermark(world: World) -> None:
    _reads(world, stable_to=3)


def holds_readers_below_the_log_start(world: World) -> None:
    _reads(world, stable_to=0, log_start_offset=1)


def believes_that_a_transaction_is_open(world: World) -> None:
    first_offsets = world.partition(BrokerId(NodeId(0))).log.producers.open_transactions
    cast("MutableMapping[ProducerId, Offset]", first_offsets)[ProducerId(77)] = Offset(0)
    world.oracle.scan()


def forgets_what_is_aborted(world: World) -> None:
    log(world).append(
        CompletedTransaction(ProducerId(77), Offset(0), Offset(1), is_aborted=True, last_stable_offset=Offset(2))
    )
    world.oracle.scan()


def log(world: World) -> list[CompletedTransaction]:
    """Returns the aborted transactions that a broker knows of."""
    return world.partition(BrokerId(NodeId(0))).log.producers.aborted.entries


def forgets_a_group(world: World) -> None:
    broker = world.node(COORDINATOR).broker
    assert isinstance(broker, Broker)
    shard = broker._groups.shards.of_partition(POSITIONS)
    assert isinstance(shard, GroupShard)
    shard.offsets.committed.replay(LoadedRecord(GroupRemoved(group_id="readers"), Offset(99)))
    world.oracle.scan()


CASES: tuple[tuple[str, Doctor], ...] = (
    ("R1", goes_on_before_it_took_effect),
    ("R2", completes_without_markers),
    ("R2", completes_what_was_never_ended),
    ("R2", forgets_a_partition),
    ("R4", sends_markers_too_early),
    ("R6", holds_readers_above_the_high_watermark),
    ("R6", holds_readers_below_the_log_start),
    ("R10", takes_a_wrong_transition),
    ("R10", goes_on_from_another_state),
    ("R11", believes_that_a_transaction_is_open),
    ("R11", forgets_what_is_aborted),
)
OF_GROUPS: tuple[tuple[str, Doctor], ...] = (("R9", tells_what_is_not_committed), ("R12", forgets_a_group))


@firing(CASES)
def test_it_fires(check_id: str, doctor: Doctor) -> None:
    world = world_of_transactions()
    doctor(world)
    assert check_id in {finding.check_id for finding in world.simulation.findings()}


@firing(OF_GROUPS)
def test_it_fires_for_groups(check_id: str, doctor: Doctor) -> None:
    world = world_of_groups()
    doctor(world)
    assert check_id in {finding.check_id for finding in world.simulation.findings()}


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_transactions_and_groups_as_they_are_break_nothing(end: str) -> None:
    for world in (world_of_transactions(end), World(GROUPS.format(end=end))):
        world.oracle.finish()
        assert world.oracle.alarms == []
        assert world.last(events.MarkersSent).result == end


def test_a_coordinator_that_acts_on_what_may_be_lost_is_seen(pytestconfig: pytest.Config) -> None:
    path = pytestconfig.rootpath / "tests/simulation/regressions/t07-coordinator-awaits-commit-off.txt"
    simulation = Simulation(parse_plan(path.read_text()), journal=Journal())
    simulation.begin()
    for action in simulation.plan.actions:
        simulation.play(action)
    fired = {alarm.check_id for alarm in simulation.oracle.alarms}
    assert {each for each in fired if each.startswith("R")} == {"R4"}
    assert "R4" not in {finding.check_id for finding in simulation.findings()}  # the rule is switched off


def test_a_transition_that_was_given_up_leaves_the_state_as_it_was() -> None:
    world = world_of_transactions()
    begun, ended = world.last(events.TransitionBegun), world.last(events.TransitionEnded)
    world.happens(msgspec.structs.replace(begun, old="CompleteCommit", new="Ongoing"), node=COORDINATOR)
    world.happens(msgspec.structs.replace(ended, error="COORDINATOR_NOT_AVAILABLE"), node=COORDINATOR)
    world.happens(msgspec.structs.replace(begun, old="CompleteCommit", new="Empty"), node=COORDINATOR)
    assert world.oracle.alarms == []


def test_a_partition_of_a_topic_that_is_deleted_needs_no_marker() -> None:
    world = world_of_transactions()
    world.oracle.checks.coordinators.deleted("orders")
    completes_without_markers(world)
    assert "R2" not in world.fired


def test_what_a_broker_would_answer_readers_leaves_no_evidence_until_it_answers_them() -> None:
    world = world_of_transactions()
    partition = world.partition(BrokerId(NodeId(0)))
    partition.log.high_watermark = Offset(-1)
    world.oracle.checks.transaction_logs.check(world.node(BrokerId(NodeId(0))), partition)
    assert ("R6", False) in {(alarm.check_id, alarm.leaves_evidence) for alarm in world.oracle.alarms}
