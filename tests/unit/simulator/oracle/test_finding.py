"""Alarms that are findings; and every promise that the simulator judges has a test in which its check fires.

For those that it alone judges there is one in which no other check fires: docs/checks.md names it as their evidence.
"""

from collections.abc import Callable, Iterator
from functools import partial

from laststand.emulator.core.promises import PROMISES, JudgedBy, Member, is_promised_by_all
from laststand.emulator.core.switches import MaximalIsr, Switches, switch_texts
from laststand.emulator.core.types import NodeRole, StrayCleanup
from laststand.emulator.simulator.oracle.finding import Alarm, Guarantee, is_finding
from tests.unit.simulator.oracle import (
    test_clients,
    test_controller_rules,
    test_coordinators,
    test_durability,
    test_leader_rules,
    test_liveness,
    test_logs,
    test_memberships,
    test_metadata,
    test_promptness,
    test_resumed_readers,
    test_transactions,
    test_zookeeper_checks,
)
from tests.unit.simulator.oracle.world import World
from tests.unit.simulator.quorum import test_availability, test_oracle

FIRING = (
    *test_clients.CASES,
    *test_controller_rules.CASES,
    *test_coordinators.CASES,
    *test_coordinators.OF_GROUPS,
    *test_leader_rules.CASES,
    *test_liveness.CASES,
    *test_liveness.MISSING,
    *test_logs.CASES,
    *test_memberships.CASES,
    *test_metadata.CASES,
    *test_promptness.CASES,
    *test_resumed_readers.CASES,
    *test_durability.CASES,
    *test_transactions.CASES,
    *test_transactions.OF_GROUPS,
    *test_zookeeper_checks.CASES,
    *test_oracle.CASES,
    *test_availability.CASES,
)


def test_every_check_has_a_test_in_which_it_fires() -> None:
    assert {check_id for check_id, _ in FIRING} == {
        check_id for check_id, promise in PROMISES.items() if promise.judged_by is not JudgedBy.VERIFICATION
    }


OF_THE_SIMULATOR = {check_id for check_id, promise in PROMISES.items() if promise.judged_by is JudgedBy.SIMULATOR}


def _fired_by_its_cases() -> Iterator[tuple[str, Callable[[], set[str]]]]:
    """Yields by case of a check that the simulator alone judges what finds which checks fire in it."""

    def fired(doctor: Callable[[World], None]) -> set[str]:
        world = World()
        doctor(world)
        return world.fired

    def missing(doctor: Callable[[World], None]) -> set[str]:
        world = World()
        doctor(world)
        return test_liveness.missing(world)

    def fired_in(begin: Callable[[], World], doctor: Callable[[World], None]) -> set[str]:
        world = begin()
        doctor(world)
        return world.fired

    def fired_beside_zookeeper(doctor: Callable[[test_zookeeper_checks.World], None]) -> set[str]:
        world = test_zookeeper_checks.World()
        doctor(world)
        return world.fired()

    for cases in (test_leader_rules.CASES, test_liveness.CASES, test_promptness.CASES):
        yield from ((check_id, partial(fired, doctor)) for check_id, doctor in cases)
    of_transactions, of_groups = test_coordinators.world_of_transactions, test_coordinators.world_of_groups
    yield from ((check_id, partial(fired_in, of_transactions, doctor)) for check_id, doctor in test_coordinators.CASES)
    yield from ((check_id, partial(fired_in, of_groups, doctor)) for check_id, doctor in test_coordinators.OF_GROUPS)
    yield from ((check_id, partial(missing, doctor)) for check_id, doctor in test_liveness.MISSING)
    yield from ((check_id, partial(fired_beside_zookeeper, doctor)) for check_id, doctor in test_zookeeper_checks.CASES)


def test_each_check_of_the_simulator_alone_has_a_test_in_which_no_other_fires() -> None:
    # The tests of the quorum's modules ask themselves that nothing else fires.
    alone = {check_id for cases in (test_oracle.CASES, test_availability.CASES) for check_id, _ in cases}
    for check_id, fired in _fired_by_its_cases():
        if check_id in OF_THE_SIMULATOR - alone and fired() == {check_id}:
            alone.add(check_id)
    assert OF_THE_SIMULATOR - alone == set()


def counts(check_id: str, guarantee: Guarantee, *members: Switches) -> bool:
    kind = PROMISES[check_id].kind
    alarm = Alarm(check_id=check_id, kind=kind, partition=None, guarantee=guarantee, sentence="", step=1)
    both = (NodeRole.BROKER, NodeRole.CONTROLLER)
    processes = [Member(role, switch_texts(switches)) for switches in members for role in both]
    return is_finding(alarm, lambda each: is_promised_by_all(each, processes))


def test_an_outcome_counts_within_the_guarantee() -> None:
    assert counts("D1", Guarantee.HOLDS, Switches(elr=False))
    assert not counts("D1", Guarantee.EXCEEDED, Switches())


def test_a_rule_counts_where_its_switches_have_the_checked_values() -> None:
    assert counts("M3", Guarantee.HOLDS, Switches())
    assert not counts("M3", Guarantee.HOLDS, Switches(elr=False))
    assert not counts("H4", Guarantee.HOLDS, Switches(maximal_isr=MaximalIsr.PROPOSED))
    assert counts("M15", Guarantee.HOLDS, Switches(stray_cleanup=StrayCleanup.RENAME))
    assert not counts("M15", Guarantee.HOLDS, Switches(stray_cleanup=StrayCleanup.OFF))


def test_a_mixed_cluster_promises_what_all_of_its_members_do() -> None:
    without, renaming = Switches(elr=False), Switches(stray_cleanup=StrayCleanup.RENAME)
    assert not counts("M3", Guarantee.HOLDS, Switches(), without)
    assert counts("M15", Guarantee.HOLDS, Switches(), without)
    assert counts("M15", Guarantee.HOLDS, Switches(), renaming)
    assert counts("D1", Guarantee.HOLDS, Switches(), without)
