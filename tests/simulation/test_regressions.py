"""Plays every plan of ``regressions`` and compares what it leads to with what its comment expects.

``# expect:`` names checks that must be among the findings, or nothing. ``# shows:`` names symptoms of a rule that loses
nothing within the guarantee: an alarm of whatever kind, a partition that ends without a leader, a log that stays where
it does not belong. A plan that switches a rule off is there because of that rule: with every rule on it must find
nothing, and show none of its symptoms. ``# does not happen in:`` names an era in which a plan finds nothing.
"""

from pathlib import Path

import msgspec
import pytest

from laststand.emulator.plan.plan import Plan, parse_plan
from laststand.emulator.simulator.run.simulation import Simulation

PLANS = sorted((Path(__file__).parent / "regressions").glob("*.txt"))


OF_AN_ERA = [file for file in PLANS if "# does not happen in:" in file.read_text()]
WITHOUT_A_RULE = [file for file in PLANS if parse_plan(file.read_text()).switches]


def played(plan: Plan) -> Simulation:
    """Returns the run of a plan."""
    simulation = Simulation(plan)
    simulation.play_plan()
    return simulation


def findings(simulation: Simulation) -> set[str]:
    """Returns which checks a run led to."""
    return {finding.check_id for finding in simulation.findings()}


def symptoms(simulation: Simulation) -> set[str]:
    """Returns every check that fired, within the guarantee or not, and what is not in order at the end."""
    outcome = simulation.outcome()
    seen = {alarm.check_id for alarm in outcome.alarms}
    if outcome.excuses:
        seen.add("leaderless")
    if any(node.disk.strays for node in simulation.cluster.nodes.values()):
        seen.add("stray")
    return seen


def words(text: str, title: str) -> set[str]:
    """Returns what a comment line of a plan names."""
    return {word for line in text.splitlines() if line.startswith(title) for word in line.removeprefix(title).split()}


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_plan(file: Path) -> None:
    text = file.read_text()
    expected, shown = words(text, "# expect:"), words(text, "# shows:")
    assert expected or shown
    simulation = played(parse_plan(text))
    assert expected - {"nothing"} <= findings(simulation)
    assert expected != {"nothing"} or not findings(simulation)
    assert shown <= symptoms(simulation)


@pytest.mark.parametrize("file", OF_AN_ERA, ids=lambda file: file.stem)
def test_plan_in_an_era_in_which_it_does_not_happen(file: Path) -> None:
    text = file.read_text()
    [era] = words(text, "# does not happen in:")
    assert findings(played(msgspec.structs.replace(parse_plan(text), era=era))) == set()


@pytest.mark.parametrize("file", WITHOUT_A_RULE, ids=lambda file: file.stem)
def test_plan_with_every_rule_on(file: Path) -> None:
    text = file.read_text()
    simulation = played(msgspec.structs.replace(parse_plan(text), switches=()))
    assert findings(simulation) == set()
    assert not words(text, "# shows:") & symptoms(simulation)
