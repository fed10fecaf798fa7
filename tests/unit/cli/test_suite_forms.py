"""Results of a suite, written for JUnit and for GitHub."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec
import pytest

from laststand.chaos.suite.results import CellStatus, SuiteReport, judged_result, unplayed_result
from laststand.cli.options.suite import Forms
from laststand.cli.runs.suite import write_forms
from laststand.emulator.verification.verdict.report import Verdict
from tests.unit.chaos.suite.suites import cell, report

NOWHERE = Forms(junit=None, summary=None, results=None)
VERDICTS = {cell("a").name: report(Path("a kip-966 #1"), Verdict.VIOLATION)}
PICTURE = ("orders-0", "leader    0001111", "copies 0  3332000")
SUITE = SuiteReport(
    driver="process",
    settings=(),
    started="2026-11-22T12:00:00.000+00:00",
    duration_s=1.0,
    cells=(
        judged_result(cell("a"), VERDICTS[cell("a").name], directory=Path("a kip-966 #1"), picture=PICTURE),
        unplayed_result(cell("b"), status=CellStatus.SKIPPED, reason="no such fault"),
    ),
)


def test_junit_has_a_case_per_cell(tmp_path: Path) -> None:
    write_forms(SUITE, VERDICTS, forms=Forms(junit=tmp_path / "j.xml", summary=tmp_path / "s.md", results=None))
    (failed,), (skipped,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (failed.get("classname"), failed.get("name")) == ("a", "kip-966 #1")
    told = failed.findtext("failure")
    assert told is not None
    assert told.splitlines()[-4:] == ["", *PICTURE]
    reason = skipped.find("skipped")
    assert reason is not None
    assert reason.get("message") == "no such fault"
    summary = (tmp_path / "s.md").read_text()
    assert "| a | ✗ violation" in summary
    assert "".join(f"  {line}\n" for line in PICTURE) in summary.partition("```")[2]


def test_junit_distinguishes_columns_and_what_was_not_played_from_what_is_skipped(tmp_path: Path) -> None:
    passed = unplayed_result(cell("a"), status=CellStatus.SKIPPED, reason="no such fault")
    cut_short = unplayed_result(cell("a"), status=CellStatus.NOT_PLAYED, reason="the suite ended before")
    cells = (
        msgspec.structs.replace(passed, driver="process"),
        msgspec.structs.replace(cut_short, driver="simulator"),
    )
    forms = Forms(junit=tmp_path / "j.xml", summary=None, results=None)
    write_forms(msgspec.structs.replace(SUITE, cells=cells), {}, forms=forms)
    root = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert [(case.get("name"), [kind.tag for kind in case]) for case in root.iter("testcase")] == [
        ("kip-966 on process #1", ["skipped"]),
        ("kip-966 on simulator #1", ["error"]),
    ]
    assert (root.get("skipped"), root.get("errors")) == ("1", "1")
    assert next(root.iter("error")).get("message") == "the suite ended before"


def test_github_gets_the_matrix_and_an_annotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    write_forms(SUITE, VERDICTS, forms=NOWHERE)
    assert summary.read_text().startswith("before\n| scenario | kip-966 |\n")
    assert capsys.readouterr().err.startswith("::error file=a.yaml,line=9,title=a kip-966 #1::VIOLATION")


def test_nothing_is_written_without_a_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    write_forms(SUITE, VERDICTS, forms=NOWHERE)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
