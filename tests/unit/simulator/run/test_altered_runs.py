"""A run in virtual time is vouched for as one of processes is, and cannot be altered without a doubt either."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from laststand.emulator.core import events
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.verdict.report import CheckStatus, Verdict, VerdictReport
from tests.verification.resealing import reseal

PLAN = """\
cluster brokers=3
topic orders replicas=(0,1,2)
produce orders-0 acks=all records={records}
wait 500
kill 2
produce orders-0 acks=all records=5
wait 3000
"""
LOG = f"data/orders-0/{0:020}.log"


def change_era(run: Path, _: Path) -> None:
    path = run / "cluster.yaml"
    path.write_text(path.read_text().replace("era: kip-966", "era: kafka-3.9"))


def forget_the_name(run: Path, _: Path) -> None:
    (run / "scenario.yaml").unlink()


def take_over_a_replica(run: Path, other: Path) -> None:
    shutil.copyfile(other / f"nodes/2/{LOG}", run / f"nodes/2/{LOG}")


def shorten_a_replica(run: Path, _: Path) -> None:
    path = run / f"nodes/2/{LOG}"
    path.write_bytes(path.read_bytes()[:-1])


def take_over_all_logs(run: Path, other: Path) -> None:
    shutil.rmtree(run / "nodes")
    shutil.copytree(other / "nodes", run / "nodes")


def add_a_node(run: Path, _: Path) -> None:
    shutil.copytree(run / "nodes/0", run / "nodes/3")


ALTERED: Mapping[str, Callable[[Path, Path], None]] = {
    "the era": change_era,
    "the scenario's name removed": forget_the_name,
    "a replica of another run": take_over_a_replica,
    "a replica cut": shorten_a_replica,
    "all logs of another run": take_over_all_logs,
    "a node twice": add_a_node,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    store = tmp_path_factory.mktemp("simulated")
    for name, records in (("one", 20), ("other", 30)):
        write_run(parse_plan(PLAN.format(records=records)), store / name, name=name)
    return store / "one", store / "other"


def verdict_on(run: Path) -> VerdictReport:
    return judge(plan_run(0, open_run_directory(run))).report


def test_an_unaltered_run_is_valid(runs: tuple[Path, Path]) -> None:
    for run in runs:
        report = verdict_on(run)
        assert (report.unknown_reasons, report.verdict) == ((), Verdict.VALID)


@pytest.mark.parametrize("name", ALTERED)
def test_altered_files_prove_nothing(name: str, runs: tuple[Path, Path], tmp_path: Path) -> None:
    run = Path(shutil.copytree(runs[0], tmp_path / "run"))
    ALTERED[name](run, runs[1])
    report = verdict_on(run)
    assert report.doubts
    assert (report.verdict, report.losses) == (Verdict.UNKNOWN, ())


def test_a_run_of_before_is_judged_without_digests(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """Its harness says that it knew of none, and vouches for lines alone."""
    run = Path(shutil.copytree(runs[0], tmp_path / "run"))
    path = run / "events/harness-0.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    kept = [line.replace(',"evidence_format":2', "") for line in lines if '"lines":null' not in line]
    path.write_text("".join(kept))
    reseal(run)
    change_era(run, runs[1])
    report = verdict_on(run)
    assert (report.unknown_reasons, report.verdict) == ((), Verdict.VALID)


def test_a_run_of_a_later_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows here what its evidence means, though all seals are right."""
    monkeypatch.setattr(events, "EVIDENCE_FORMAT", 3)
    write_run(parse_plan(PLAN.format(records=20)), tmp_path / "later", name="later")
    report = verdict_on(tmp_path / "later")
    assert report.unknown_reasons == ("the evidence has format 3, and this version reads formats up to 2",)
    assert report.verdict is Verdict.UNKNOWN
    assert {check.status for check in report.checks} == {CheckStatus.UNKNOWN}
