"""Each rule that has no switch is missed by a test."""

import subprocess
import sys
from pathlib import Path

import pytest

from laststand.emulator.core.broker.replicas.isr import Committed, PendingExpand, committed_isr, is_isr_eligible
from laststand.emulator.core.types import BrokerId, NodeId
from tests.mutants.removals import Removal, removed

ROOT = Path(__file__).parents[2]
_HARMLESS = """
import sys
from tests.mutants.removals import Removal, main
test = "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_new_leader_enters_its_epoch_before_it_writes"
place = "core/broker/replicas/isr.py::committed_isr"
sys.exit(main([], [Removal("S99", place, "state.isr if", "(*state.isr,) if", test)]))
"""
OWN, FIRST = (BrokerId(NodeId(number)) for number in range(2))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("table", ["removals", "kip_removals"])
def test_without_a_rule_its_test_fails(table: str) -> None:
    tried = subprocess.run(
        [sys.executable, "-m", f"tests.mutants.{table}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0, tried.stdout[-2000:] + tried.stderr


def test_a_function_that_others_have_imported_does_without_the_rule_for_a_while() -> None:
    state = PendingExpand((OWN,), FIRST)
    removal = Removal("S99", "core/broker/replicas/isr.py::committed_isr", "state.committed", "(state.joining,)", "")
    with removed(removal):
        assert committed_isr(state) == (FIRST,)
        assert committed_isr(Committed((OWN,))) == (OWN,)
    assert committed_isr(state) == (OWN,)


def test_an_edit_of_what_is_not_there_is_refused() -> None:
    removal = Removal("S99", "core/broker/replicas/isr.py::is_isr_eligible", "is_shut_down", "", "")
    with pytest.raises(AssertionError, match="does not say once: is_shut_down"), removed(removal):
        is_isr_eligible(OWN, fetch_broker_epoch=None, registrations={})


def test_a_test_that_lets_the_removal_pass_is_named() -> None:
    tried = subprocess.run([sys.executable, "-c", _HARMLESS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert tried.returncode == 1
    assert tried.stdout.endswith(
        "S99: without the rule of core/broker/replicas/isr.py::committed_isr nothing fails in "
        "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_new_leader_enters_its_epoch_before_it_writes\n"
    )
