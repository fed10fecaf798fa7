"""Two oracles judge the same runs, independently: one while they go on, one by what they left. They answer alike.

A promise that both judge is promised to both or to neither. What verification finds, the simulator's oracle found too,
and the other way round where the guarantee held. Beyond the guarantee a finding may be excused: D2 and D15 promise
nothing after an unclean election. What else one of them cannot see is listed in ``agreement``, with the reason.
"""

from pathlib import Path
from typing import Final

import pytest

from laststand.chaos.scenario.scenario_file import scenario_names
from laststand.emulator.core.switches import ERAS
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from laststand.emulator.verification.judge_here import judge_here
from tests.library import Library, eras_of, is_watched, scenario_of
from tests.verification.agreement import compare, different_findings, different_verdicts

SEEDS: Final = range(1, 51)
"""Of all profiles, each in the era of its number; ``make soak`` has 1,000 in each era."""

BATCH: Final = 25

OF_TRANSACTIONS: Final = ("transactions", "transactions-restarts", "groups", "members")
"""Profiles with coordinators, which are drawn only where they are named."""


@pytest.mark.parametrize("seeds", [SEEDS[first : first + BATCH] for first in range(0, len(SEEDS), BATCH)], ids=str)
def test_both_oracles_answer_alike_about_schedules(seeds: range) -> None:
    compared = [compare(seed, SweepOptions(era=tuple(ERAS)[seed % len(ERAS)])) for seed in seeds]
    assert [(each.seed, each.disagreements) for each in compared if each.disagreements] == []
    assert {each.verdict for each in compared} >= {"valid", "violation"}


@pytest.mark.parametrize("era", ["kafka-0.11", "kafka-3.9", "kafka-4.2", "kip-966"])
def test_both_oracles_answer_alike_about_schedules_with_coordinators(era: str) -> None:
    compared = [compare(seed, SweepOptions(era=era, profiles=OF_TRANSACTIONS)) for seed in (1, 2)]
    assert [(each.seed, each.disagreements) for each in compared if each.disagreements] == []


def test_a_difference_is_found(tmp_path: Path) -> None:
    plan = explore(9, SweepOptions(era="kip-966")).plan
    simulation = write_run(plan, tmp_path / "run", name="run")
    report = judge_here(tmp_path / "run").report
    assert list(different_verdicts(simulation.judgement(), report)) == []
    assert simulation.judgement().lost_records > 0
    write_run(explore(2, SweepOptions(era="kip-966")).plan, tmp_path / "other", name="other")
    assert list(different_verdicts(simulation.judgement(), judge_here(tmp_path / "other").report)) != []


@pytest.mark.parametrize("name", scenario_names())
def test_both_oracles_answer_alike_about_a_scenario(name: str, library: Library) -> None:
    for era in eras_of(name) if is_watched(scenario_of(name)) else ():
        run = library.run(name, era)
        assert run.played is not None
        assert list(different_findings(run.played, run.report)) == [], era
