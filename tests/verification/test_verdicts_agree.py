"""``simulate`` and ``verify`` come to the same verdict, guarantee and lost records on the same run."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from laststand.emulator.core.switches import ERAS
from laststand.emulator.simulator.run.judgement import Judgement
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from laststand.emulator.verification.verdict.report import VerdictReport
from tests.verification.agreement import different_verdicts
from tests.verification.conftest import Judge

SEEDS: Final = range(1, 51)
"""Of all profiles, each in the era of its number; ``make soak`` has 1,000 in each era."""

BATCH: Final = 25
"""The number of runs that are on the disk at a time."""


def era_of(seed: int) -> str:
    return tuple(ERAS)[seed % len(ERAS)]


def disagreements(judgements: dict[str, Judgement], reports: dict[str, VerdictReport]) -> list[str]:
    return [
        f"{name}: {sentence}"
        for name, judgement in judgements.items()
        for sentence in different_verdicts(judgement, reports[name])
    ]


@pytest.mark.parametrize("seeds", [SEEDS[first : first + BATCH] for first in range(0, len(SEEDS), BATCH)], ids=str)
def test_simulate_and_verify_come_to_the_same_verdict(seeds: range, tmp_path: Path, judge: Judge) -> None:
    judgements, directories = {}, {}
    for seed in seeds:
        era = era_of(seed)
        name = f"{era}-{seed}"
        directories[name] = tmp_path / name
        plan = explore(seed, SweepOptions(era=era)).plan
        judgements[name] = write_run(plan, directories[name], name=name, seed=seed).judgement()
    reports = judge(directories)
    for directory in directories.values():
        shutil.rmtree(directory)
    assert disagreements(judgements, reports) == []
    assert {report.verdict.value for report in reports.values()} >= {"valid", "violation"}
    assert {judgement.guarantee for judgement in judgements.values()} > {None}


def test_a_disagreement_is_found(tmp_path: Path, judge: Judge) -> None:
    plan = explore(9, SweepOptions(era="kip-966")).plan
    simulation = write_run(plan, tmp_path / "run", name="run")
    reports = judge({"run": tmp_path / "run"})
    assert disagreements({"run": simulation.judgement()}, reports) == []
    assert simulation.judgement().lost_records > 0
    other = explore(2, SweepOptions(era="kip-966")).plan
    assert disagreements({"run": write_run(other, tmp_path / "other", name="other").judgement()}, reports) != []
