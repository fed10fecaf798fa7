"""Two oracles judge the same runs, independently: one while they go on, one by what they left. They answer alike.

A promise that both judge is promised to both or to neither. What verification finds, the simulator's oracle found too,
and the other way round where the guarantee held. Beyond the guarantee a finding may be excused: D2 and D15 promise
nothing after an unclean election. What else one of them cannot see is listed in ``agreement``, with the reason.
"""

from pathlib import Path

import pytest

from laststand.chaos.scenario.scenario_file import scenario_names
from laststand.emulator.core.eras import rule_texts
from laststand.emulator.core.switches import ERAS, era_switches
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from laststand.emulator.verification.verdict.report import CheckStatus
from tests.library import Library, eras_of, is_watched, scenario_of
from tests.verification.agreement import Played, different_findings, found_by
from tests.verification.conftest import Judge

SEEDS = range(2)


def test_both_oracles_answer_alike_about_schedules(tmp_path: Path, judge: Judge) -> None:
    played = {}
    for era in ERAS:
        for seed in SEEDS:
            directory = tmp_path / f"{era}-{seed}"
            simulation = write_run(explore(seed, SweepOptions(era=era)).plan, directory, name=directory.name)
            played[directory.name] = Played(switches=rule_texts(era_switches(era)), found=found_by(simulation.oracle))
    reports = judge({name: tmp_path / name for name in played})
    wrong = [f"{name}: {line}" for name in played for line in different_findings(played[name], reports[name])]
    assert wrong == [], "\n".join(wrong)
    statuses = [check.status for report in reports.values() for check in report.checks]
    assert {CheckStatus.VIOLATED, CheckStatus.NOT_PROMISED, CheckStatus.NOT_ASKED} <= set(statuses)


@pytest.mark.parametrize("name", scenario_names())
def test_both_oracles_answer_alike_about_a_scenario(name: str, library: Library) -> None:
    for era in eras_of(name) if is_watched(scenario_of(name)) else ():
        run = library.run(name, era)
        assert run.played is not None
        assert list(different_findings(run.played, run.report)) == [], era
