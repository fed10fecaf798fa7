"""Many runs at once, some of them broken: each of those is named in a line, and all others are judged."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from laststand.cli.main import cli
from tests.verification.run_builder import healthy

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_session")]

Spoil = Callable[[Path], object]


def replaced(name: str, old: str, new: str) -> Spoil:
    def spoil(run: Path) -> None:
        path = run / name
        path.write_text(path.read_text().replace(old, new))

    return spoil


def being_written(run: Path) -> None:
    """The harness and one broker have not come to their ends."""
    for name, kept in (("events/harness.jsonl", -5), ("events/1-0.jsonl", -3)):
        lines = (run / name).read_text().splitlines(keepends=True)[:kept]
        (run / name).write_text("".join(lines) + lines[-1][:20])


def emptied(run: Path) -> None:
    for path in sorted(run.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def looped(run: Path) -> None:
    (run / "events/7-0.jsonl").symlink_to("7-0.jsonl")


BROKEN: Mapping[str, tuple[Spoil, str]] = {
    "of another version": (replaced("events/1-0.jsonl", "LogOpened", "LogMadeReady"), "events of unknown type"),
    "without a field": (replaced("events/1-0.jsonl", "record_count", "records"), "missing or impossible fields"),
    "being written": (being_written, "the harness did not reach the end of the run"),
    "unreadable": (lambda run: (run / "events/7-0.jsonl").mkdir(), "is a directory; expected a file"),
    "a link to nowhere": (
        lambda run: (run / "events/7-0.jsonl").symlink_to("/no/such"),
        "verification failed: FileNotFoundError",
    ),
    "a link to itself": (looped, "verification failed: OSError"),
    "binary": (lambda run: (run / "history.jsonl").write_bytes(bytes(range(256))), "lines that are no operations"),
    "no YAML": (lambda run: (run / "cluster.yaml").write_text("switches: ["), ""),
    "other YAML": (lambda run: (run / "cluster.yaml").write_text("switches: [1]\nseed: {a: b}\ndriver: 3"), ""),
}
"""Ways to break a run, and what is said of each; nothing is needed of ``cluster.yaml``."""


def verify(*runs: Path) -> Result:
    return CliRunner().invoke(cli, ["verify", "--json", *map(str, runs)], standalone_mode=False)


def said(result: Result) -> list[str]:
    """Returns what stands on stderr, but for how far the work has come."""
    return [line for line in result.stderr.splitlines() if not line.endswith("tasks done")]


@pytest.fixture
def fleet(tmp_path: Path) -> list[Path]:
    return [healthy(tmp_path / f"scenario{number}" / "1").finish() for number in range(20)]


def test_broken_runs_are_named_and_the_others_are_judged(fleet: list[Path]) -> None:
    broken = dict(zip(BROKEN, fleet[1::2], strict=False))
    assert len(broken) == len(BROKEN)
    for name, run in broken.items():
        BROKEN[name][0](run)
    result = verify(*fleet)
    reports = {report["run"]: report for report in json.loads(result.stdout)}
    assert said(result) == []
    assert list(reports) == [str(run) for run in fleet]
    for name, run in broken.items():
        reason = BROKEN[name][1]
        report = reports.pop(str(run))
        doubts = [doubt["sentence"] for doubt in report["doubts"]]
        assert any(reason in doubt for doubt in doubts) == bool(reason), name
        assert all("\n" not in doubt for doubt in doubts), name
        assert report["verdict"] == ("unknown" if reason else "valid"), name
    assert {report["verdict"] for report in reports.values()} == {"valid"}
    assert result.return_value == 2


@pytest.mark.parametrize("spoil", [emptied, lambda run: run.rename(run.with_name("gone"))])
def test_what_is_no_run_is_named_and_the_others_are_judged(spoil: Spoil, fleet: list[Path]) -> None:
    spoil(fleet[7])
    result = verify(*fleet)
    (line,) = said(result)
    assert str(fleet[7]) in line
    assert [report["verdict"] for report in json.loads(result.stdout)] == ["valid"] * 19
    assert result.return_value == 2


def test_a_verdict_that_cannot_be_written_is_named_and_the_others_are(fleet: list[Path]) -> None:
    (fleet[7] / "verdict.json").mkdir()
    result = verify(*fleet)
    assert said(result) == [f"not written: the verdict on {fleet[7]}: Is a directory"]
    assert [report["verdict"] for report in json.loads(result.stdout)] == ["valid"] * 20
    assert [run.name for run in fleet if (run / "verdict.json").is_file()] == ["1"] * 19
    assert result.return_value == 2
    (fleet[7] / "verdict.json").rmdir()
