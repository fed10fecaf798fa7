"""The list of all checks: each has a test in which it must fire, and names switches that exist."""

from enum import Enum

import pytest

from emulator.core.switches import ERAS, MaximalIsr, Switches
from emulator.core.types import StrayCleanup
from emulator.simulator.oracle.catalogue import CHECKS, is_finding, is_promised
from emulator.simulator.oracle.finding import Alarm, CheckKind, Guarantee
from tests.unit.simulator.oracle import (
    test_clients,
    test_controller_rules,
    test_leader_rules,
    test_liveness,
    test_logs,
    test_metadata,
    test_promises,
)

FIRING = (
    *test_clients.CASES,
    *test_controller_rules.CASES,
    *test_leader_rules.CASES,
    *test_liveness.CASES,
    *test_liveness.MISSING,
    *test_logs.CASES,
    *test_metadata.CASES,
    *test_promises.CASES,
)


def test_every_check_has_a_test_in_which_it_fires() -> None:
    assert {check_id for check_id, _ in FIRING} == set(CHECKS)


@pytest.mark.parametrize("check_id", CHECKS)
def test_it_names_values_that_its_switches_can_have(check_id: str) -> None:
    for name, value in CHECKS[check_id].switches.items():
        default = getattr(Switches(), name)
        for checked in value if isinstance(value, tuple) else (value,):
            assert type(checked) is type(default)
            assert isinstance(checked, bool | Enum)


@pytest.mark.parametrize("check_id", CHECKS)
def test_every_check_is_judged_in_the_default_era(check_id: str) -> None:
    assert is_promised(check_id, ERAS["kip-966"])


def test_only_rules_and_liveness_depend_on_switches() -> None:
    bound = {check.kind for check in CHECKS.values() if check.switches}
    assert bound <= {CheckKind.RULE, CheckKind.LIVENESS}


def counts(check_id: str, guarantee: Guarantee, switches: Switches) -> bool:
    kind = CHECKS[check_id].kind
    alarm = Alarm(check_id=check_id, kind=kind, partition=None, guarantee=guarantee, sentence="", step=1)
    return is_finding(alarm, switches)


def test_an_outcome_counts_within_the_guarantee() -> None:
    assert counts("D1", Guarantee.HOLDS, Switches(elr=False))
    assert not counts("D1", Guarantee.EXCEEDED, Switches())


def test_a_rule_counts_where_its_switches_have_the_checked_values() -> None:
    assert counts("M3", Guarantee.HOLDS, Switches())
    assert not counts("M3", Guarantee.HOLDS, Switches(elr=False))
    assert not counts("H4", Guarantee.HOLDS, Switches(maximal_isr=MaximalIsr.PROPOSED))
    assert counts("M15", Guarantee.HOLDS, Switches(stray_cleanup=StrayCleanup.RENAME))
    assert not counts("M15", Guarantee.HOLDS, Switches(stray_cleanup=StrayCleanup.OFF))
