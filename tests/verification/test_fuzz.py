"""``laststand fuzz`` judges what it draws; what is not as expected is shrunk and kept as a plan."""

import sys
from pathlib import Path

import pytest

from laststand.chaos.suite.results import CellStatus, read_report
from laststand.cli.main import main
from laststand.emulator.plan.plan import parse_plan

pytestmark = pytest.mark.spark


def fuzz(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["laststand", "fuzz", "--driver", "simulator", *arguments])
    return main()


@pytest.mark.usefixtures("one_session")
def test_plans_are_drawn_played_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--plans", "2", "--seed", "4", "--profile", "last-standing", "--results", "results.json")
    assert fuzz(*options, monkeypatch=monkeypatch) == 0
    report = read_report(tmp_path / "results.json")
    assert [cell.status for cell in report.cells] == [CellStatus.PASSED] * 2
    assert all(Path(cell.path).is_file() for cell in report.cells)


@pytest.mark.usefixtures("one_session")
def test_random_chaos_beyond_the_budget_for_some_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--budget", "beyond", "--duration", "2m", "--plans", "1", "--seed", "1", "--results", "results.json")
    assert fuzz(*options, monkeypatch=monkeypatch) == 0
    (cell,) = read_report(tmp_path / "results.json").cells
    assert "valid_or_exceeded" in Path(cell.path).read_text()


@pytest.mark.usefixtures("one_session")
def test_a_plan_that_fails_is_shrunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--plans", "1", "--seed", "17", "--profile", "reassignment", "--profile", "administrator")
    rule = ("--set", "min_isr_per_partition=off")
    assert fuzz(*options, *rule, "--results", "results.json", monkeypatch=monkeypatch) == 1
    (cell,) = read_report(tmp_path / "results.json").cells
    assert cell.status is CellStatus.FAILED
    drawn, shrunk = (Path(cell.path).with_suffix(suffix) for suffix in (".plan.txt", ".shrunk.txt"))
    assert parse_plan(shrunk.read_text()).length < parse_plan(drawn.read_text()).length
    assert f"{shrunk}: " in capsys.readouterr().err


@pytest.mark.usefixtures("one_session")
def test_a_long_run_has_one_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--one-run", "--duration", "1m", "--rate", "50", "--seed", "3", "--results", "results.json")
    assert fuzz(*options, monkeypatch=monkeypatch) == 0
    (cell,) = read_report(tmp_path / "results.json").cells
    assert (cell.scenario, cell.status) == ("fuzz/long-3", CellStatus.PASSED)
    assert "log.retention.bytes" in Path(cell.path).read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--duration 10", "'10' is no duration, expected a number and a unit, such as 90s, 10m or 2h"),
        ("--duration 0s", "is no duration"),
        ("--plans 0", "--plans"),
        ("--profile nothing", "--profile nothing: expected one of"),
        ("--profile unclean", "--profile unclean: its budget is beyond, not within"),
        ("--era kafka-99", "kafka-99"),
        ("--set elr=perhaps", "elr"),
        ("--set log.flush.interval.ms=5", "--set log.flush.interval.ms: "),
        ("--junit no/such/folder.xml", "--junit no/such/folder.xml: cannot be written"),
        ("--rate 50", "--rate: only with --one-run"),
        ("--one-run --plans 2", "--plans: not with --one-run"),
        ("--one-run --profile elections", "--profile: not with --one-run"),
        ("--one-run --budget beyond", "--budget beyond: not with --one-run"),
        ("--one-run --duration 59s", "--duration: a minute at least"),
    ],
)
def test_a_mistake_is_reported_in_a_line(
    arguments: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fuzz(*arguments.split(), monkeypatch=monkeypatch) == 254
    shown = capfd.readouterr()
    assert said in shown.err
    assert "Traceback" not in shown.err
    assert list(tmp_path.iterdir()) == []
