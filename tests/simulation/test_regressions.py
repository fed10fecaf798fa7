"""Plays every plan of ``regressions`` and compares which checks fire with what its comment expects.

A plan that switches a rule off is there because of that rule: with every rule on it must find nothing.
"""

from pathlib import Path

import msgspec
import pytest

from emulator.simulator.plan import Plan, parse_plan
from emulator.simulator.simulation import Simulation

PLANS = sorted((Path(__file__).parent / "regressions").glob("*.txt"))


WITHOUT_A_RULE = [file for file in PLANS if parse_plan(file.read_text()).switches]


def findings(plan: Plan) -> set[str]:
    """Returns which checks a plan leads to."""
    simulation = Simulation(plan)
    simulation.play_plan()
    return {finding.check_id for finding in simulation.findings()}


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_plan(file: Path) -> None:
    text = file.read_text()
    (expectation,) = (line for line in text.splitlines() if line.startswith("# expect:"))
    expected = set(expectation.removeprefix("# expect:").split()) - {"nothing"}
    found = findings(parse_plan(text))
    assert expected <= found
    assert expected or not found


@pytest.mark.parametrize("file", WITHOUT_A_RULE, ids=lambda file: file.stem)
def test_plan_with_every_rule_on(file: Path) -> None:
    plan = msgspec.structs.replace(parse_plan(file.read_text()), switches=())
    assert findings(plan) == set()
