"""Mistakes of a user about a suite: one line and exit code 254, before anything starts."""

import os
import sys
from pathlib import Path

import pytest

from laststand.chaos.suite.results import SuiteReport, write_report
from laststand.cli.main import main

SUITE = "suite: own\nscenarios: [own]\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run", "expected a SCENARIO"),
        ("run empty", "a folder with scenarios"),
        ("run own", "own.yaml:2: scenarios: own leads back to this suite"),
        ("run nothing --repeat 2", "nothing"),
        ("run kip-966 --shard 6/5", "'6/5' is no part"),
        ("run kip-966 --shard 0/5", "'0/5' is no part"),
        ("run kip-497/answer-lost --shard 1/99 --era kip-966", "a part of the suite that has a cell"),
        ("run kip-966 --no-verify", "--no-verify plays one scenario"),
        ("run kip-966 --era kafka-1.0", "kafka-1.0"),
        ("run kip-966 --jobs 0", "--jobs"),
        ("run kip-966 --timeout 0", "--timeout"),
        ("run kip-966 --keep some", "--keep"),
        ("run kip-966 --junit no/such/folder.xml", "--junit no/such/folder.xml: cannot be written"),
        ("run kip-966 --out file --repeat 2", "--out"),
        ("run --rerun none.json", "none.json"),
        ("run --rerun file", "--rerun"),
        ("run --rerun passed.json", "results of which a cell did not pass"),
        ("run kip-966 --rerun passed.json", "--rerun excludes"),
    ],
)
def test_a_mistake_is_reported_in_a_line(
    command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "own.yaml").write_text(SUITE)
    (tmp_path / "file").write_text("no results")
    write_report(
        SuiteReport(driver="simulator", settings=(), started="2026-11-22", duration_s=0.0, cells=()),
        tmp_path / "passed.json",
    )
    before = sorted(os.listdir(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["laststand", *command.split()])
    assert main() == 254
    shown = capfd.readouterr()
    assert said in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""
    assert sorted(os.listdir(tmp_path)) == before
