"""The command that has both judges judge the same schedules."""

from pathlib import Path
from typing import Final

import pytest

import tests.simulation
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import SweepOptions
from laststand.emulator.verification.judge_here import judge_here
from tests.verification import agreement
from tests.verification.agreement import Compared, compare, judged_twice

PLANS: Final = sorted(Path(tests.simulation.__path__[0], "regressions").glob("*.txt"))


def differs_at_seed_2(seed: int, options: SweepOptions) -> Compared:
    found = ("simulate says one thing, verify another",) if seed == 2 else ()
    return Compared(seed=seed, profile="steady", verdict="valid", disagreements=found)


def test_the_judges_agree_on_what_a_leader_lacks_that_leads_again() -> None:
    options = SweepOptions(era="kafka-3.9", profiles=("recovery",), properties=(("min.insync.replicas", "2"),))
    assert compare(212, options) == Compared(seed=212, profile="recovery", verdict="violation", disagreements=())


def test_the_judges_agree_on_a_deletion_by_a_broker_that_had_cut_off_what_was_acknowledged() -> None:
    assert compare(37, SweepOptions(era="kafka-0.10")).disagreements == ()


def test_the_judges_agree_on_a_gap_in_the_log_of_a_topic_that_had_the_name_before() -> None:
    assert compare(941, SweepOptions(era="kafka-0.10")).disagreements == ()


def test_counts_close_each_era(capsys: pytest.CaptureFixture[str]) -> None:
    assert agreement.main(["--seeds", "1..2", "--era", "kip-966"]) == 0
    assert capsys.readouterr().out == "kip-966: 2 runs (2 valid, 0 violation, 0 unknown), 0 disagreements\n"


def test_a_disagreement_is_printed_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(agreement, "compare", differs_at_seed_2)
    assert agreement.main(["--seeds", "1..3", "--era", "kip-966", "--jobs", "1"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "kip-966 seed 2 (steady): simulate says one thing, verify another",
        "kip-966: 3 runs (3 valid, 0 violation, 0 unknown), 1 disagreements",
    ]


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_the_judges_agree_on_every_plan_that_is_kept(file: Path) -> None:
    _, disagreements = judged_twice(parse_plan(file.read_text()))
    assert disagreements == ()


def test_a_deletion_of_other_records_excuses_no_consumer_that_is_sent_back(tmp_path: Path) -> None:
    plan = next(file for file in PLANS if file.stem == "others-are-deleted-at-a-lost-offset")
    write_run(parse_plan(plan.read_text()), tmp_path / "run", name="run")
    assert "C3" in {check.check_id for check in judge_here(tmp_path / "run").report.violated()}
