"""Alarms that are findings; and every promise that the simulator judges has a test in which its check fires."""

from laststand.emulator.core.promises import PROMISES, JudgedBy, is_promised_by_all
from laststand.emulator.core.switches import MaximalIsr, Switches, switch_texts
from laststand.emulator.core.types import StrayCleanup
from laststand.emulator.simulator.oracle.finding import Alarm, Guarantee, is_finding
from tests.unit.simulator.oracle import (
    test_clients,
    test_controller_rules,
    test_durability,
    test_leader_rules,
    test_liveness,
    test_logs,
    test_metadata,
    test_promptness,
    test_resumed_readers,
    test_transactions,
    test_zookeeper_checks,
)
from tests.unit.simulator.quorum import test_oracle

FIRING = (
    *test_clients.CASES,
    *test_controller_rules.CASES,
    *test_leader_rules.CASES,
    *test_liveness.CASES,
    *test_liveness.MISSING,
    *test_logs.CASES,
    *test_metadata.CASES,
    *test_promptness.CASES,
    *test_resumed_readers.CASES,
    *test_durability.CASES,
    *test_transactions.CASES,
    *test_transactions.OF_GROUPS,
    *test_zookeeper_checks.CASES,
    *test_oracle.CASES,
)


def test_every_check_has_a_test_in_which_it_fires() -> None:
    assert {check_id for check_id, _ in FIRING} == {
        check_id for check_id, promise in PROMISES.items() if promise.judged_by is not JudgedBy.VERIFICATION
    }


def counts(check_id: str, guarantee: Guarantee, *members: Switches) -> bool:
    kind = PROMISES[check_id].kind
    alarm = Alarm(check_id=check_id, kind=kind, partition=None, guarantee=guarantee, sentence="", step=1)
    texts = [switch_texts(switches) for switches in members]
    return is_finding(alarm, lambda each: is_promised_by_all(each, texts))


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
