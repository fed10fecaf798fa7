"""The verdict's rules and its three forms."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec
import pytest

from emulator.core.promises import PromiseKind
from emulator.verification.guarantee import Guarantee
from emulator.verification.losses import LossClass
from emulator.verification.verdict import (
    CheckResult,
    CheckStatus,
    Loss,
    OffsetRange,
    RecordCounts,
    Verdict,
    VerdictReport,
    decide,
    junit,
    summary,
    write_verdict,
)


def result(status: CheckStatus, check_id: str = "D1") -> CheckResult:
    examples = ("orders-0 offset 7 <gone>\x00",) if status is CheckStatus.VIOLATED else ()
    return CheckResult(
        check_id=check_id,
        name="Name",
        kind=PromiseKind.OUTCOME,
        statement="It holds.",
        status=status,
        count=len(examples),
        examples=examples,
        not_asked_because="no log was truncated" if status is CheckStatus.NOT_ASKED else None,
    )


def report(*statuses: CheckStatus, unknown_reasons: tuple[str, ...] = (), story: int = 0) -> VerdictReport:
    checks = tuple(result(status, f"D{number}") for number, status in enumerate(statuses))
    loss = Loss(
        topic="orders",
        partition=0,
        records=10,
        offsets=(OffsetRange(first=0, last=9),),
        loss_class=LossClass.GONE_EVERYWHERE,
        guarantee=Guarantee.BROKEN,
        reason="because",
        story=tuple(f"sentence {n}" for n in range(story)),
    )
    return VerdictReport(
        run="/runs/1",
        scenario="kip-966/story",
        era="kip-966",
        switches={"elr": "on"},
        verdict=decide(checks, unknown_reasons),
        guarantee=Guarantee.BROKEN if story else None,
        unknown_reasons=unknown_reasons,
        checks=checks,
        counts=(RecordCounts(acks=-1, sent=10, acked=10, lost=0, never_acked=0),),
        losses=(loss,) if story else (),
        leaders=(),
    )


@pytest.mark.parametrize(
    ("statuses", "reasons", "verdict"),
    [
        ((CheckStatus.OK, CheckStatus.NOT_PROMISED), (), Verdict.VALID),
        ((CheckStatus.OK, CheckStatus.NOT_ASKED), (), Verdict.VALID),
        ((CheckStatus.OK,), ("a gap",), Verdict.UNKNOWN),
        ((CheckStatus.OK, CheckStatus.UNKNOWN), (), Verdict.UNKNOWN),
        ((CheckStatus.VIOLATED, CheckStatus.OK), (), Verdict.VIOLATION),
        ((CheckStatus.VIOLATED, CheckStatus.UNKNOWN), ("a gap",), Verdict.VIOLATION),
    ],
)
def test_decide(statuses: tuple[CheckStatus, ...], reasons: tuple[str, ...], verdict: Verdict) -> None:
    assert report(*statuses, unknown_reasons=reasons).verdict is verdict


def test_files_can_be_read_back(tmp_path: Path) -> None:
    written = report(CheckStatus.VIOLATED, story=3)
    write_verdict(written, tmp_path)
    assert msgspec.json.decode((tmp_path / "verdict.json").read_bytes(), type=VerdictReport) == written
    assert (tmp_path / "junit.xml").is_file()


def test_junit_has_a_suite_per_scenario_and_a_case_per_check() -> None:
    root = ElementTree.fromstring(junit((report(*CheckStatus, unknown_reasons=("a gap",)),)))
    (suite,) = root
    assert suite.get("name") == "kip-966/story [kip-966]"
    assert [case.get("name") for case in suite] == [*(f"D{n} Name" for n in range(5)), "evidence"]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "1",
        "errors": "2",
        "skipped": "2",
    }
    assert root.get("failures") == "1"
    assert [skipped.get("message") for skipped in suite.iter("skipped")] == [
        "not promised by the run's switches",
        "not asked: no log was truncated",
    ]


def test_summary_names_the_checks_that_were_not_asked() -> None:
    assert "  checks: ok D0, not asked D1" in summary(report(CheckStatus.OK, CheckStatus.NOT_ASKED)).splitlines()


@pytest.mark.parametrize("story", [0, 5, 50])
def test_summary_has_twelve_lines_at_most(story: int) -> None:
    lines = summary(report(CheckStatus.VIOLATED, unknown_reasons=("a gap",), story=story)).splitlines()
    assert len(lines) <= 12
    assert lines[0].startswith("VIOLATION")
    if story == 50:
        assert lines[-1].endswith("more lines in verdict.json")
