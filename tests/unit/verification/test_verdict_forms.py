"""The verdict's rules and its three forms."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec
import pytest

from laststand.emulator.core.promises import PromiseKind
from laststand.emulator.verification.doubts.doubt import Doubt
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.verdict.forms import summary, write_verdict
from laststand.emulator.verification.verdict.junit import Case, junit
from laststand.emulator.verification.verdict.report import (
    CheckResult,
    CheckStatus,
    Expected,
    RecordCounts,
    Verdict,
    VerdictReport,
    decide,
    expected_of,
)
from tests.unit.verification.some_loss import some_loss


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
    doubts = tuple(Doubt(about=None, sentence=reason) for reason in unknown_reasons)
    loss = some_loss(story=tuple(f"sentence {n}" for n in range(story)))
    return VerdictReport(
        run="/runs/1",
        scenario="kip-966/story",
        era="kip-966",
        switches={"elr": "on"},
        verdict=decide(checks, doubts),
        guarantee=Guarantee.BROKEN if story else None,
        doubts=doubts,
        checks=checks,
        counts=(RecordCounts(acks=-1, sent=10, acked=10, lost=0, never_acked=0),),
        partitions=(),
        losses=(loss,) if story else (),
        leaders=(),
        outcome=expected_of(decide(checks, doubts)),
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


def case_of(written: VerdictReport) -> ElementTree.Element:
    root = ElementTree.fromstring(junit((Case.of(written),)))
    ((case,),) = root
    return case


@pytest.mark.parametrize(
    ("statuses", "outcome", "verdict_tags"),
    [
        ((CheckStatus.OK,), Expected.MET, set()),
        ((CheckStatus.OK,), Expected.MISSED, {"failure"}),
        ((CheckStatus.VIOLATED,), Expected.MET, set()),
        ((CheckStatus.VIOLATED,), Expected.MISSED, {"failure"}),
        ((CheckStatus.UNKNOWN,), Expected.UNDECIDED, {"error"}),
    ],
)
def test_junit_passes_a_run_that_came_to_what_was_expected(
    statuses: tuple[CheckStatus, ...], outcome: Expected, verdict_tags: set[str]
) -> None:
    written = msgspec.structs.replace(report(*statuses, story=2), outcome=outcome)
    root = ElementTree.fromstring(junit((Case.of(written),)))
    assert {each.tag for each in case_of(written)} == {"properties", *verdict_tags}
    for element in (root, root[0]):
        counts = {key: int(element.get(key, "-1")) for key in ("tests", "failures", "errors")}
        assert counts == {
            "tests": 1,
            "failures": int("failure" in verdict_tags),
            "errors": int("error" in verdict_tags),
        }


def test_a_failure_in_junit_reports_what_was_missed_and_the_story_of_the_first_loss() -> None:
    missed = msgspec.structs.replace(
        report(CheckStatus.VIOLATED, story=2), outcome=Expected.MISSED, misses=("1 record lost, expected ==0",)
    )
    failure = case_of(missed).find("failure")
    assert failure is not None
    assert failure.get("message") == "1 record lost, expected ==0"
    assert failure.text == "sentence 0\nsentence 1"


def test_a_failure_without_lost_records_shows_the_checks_that_fired() -> None:
    failure = case_of(report(CheckStatus.VIOLATED)).find("failure")
    assert failure is not None
    assert failure.text == "D0 Name: orders-0 offset 7 <gone>\ufffd"


def test_an_error_in_junit_reports_the_doubt() -> None:
    error = case_of(report(CheckStatus.UNKNOWN, unknown_reasons=("a gap",))).find("error")
    assert error is not None
    assert error.get("message") == "a gap"
    assert error.text == "a gap\nD0 Name: the evidence for this check is not whole"


def test_junit_has_the_properties_that_people_search_for_and_times() -> None:
    written = msgspec.structs.replace(
        report(CheckStatus.OK, CheckStatus.NOT_PROMISED),
        seed=7,
        started="2026-11-22T12:00:00.000+00:00",
        duration_s=2.5,
    )
    case = case_of(written)
    found = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert found == {
        "run": written.run,
        "era": written.era_label,
        "seed": "7",
        "verdict": written.verdict.value,
        "guarantee": "kept",
        "lost acks=all records": "0",
    }
    assert case.get("time") == "2.500"
    assert ElementTree.fromstring(junit((Case.of(written),)))[0].get("timestamp") == written.started


def test_junit_counts_the_runs_of_a_scenario_together() -> None:
    met = msgspec.structs.replace(report(CheckStatus.OK), duration_s=2.0, started="2026-11-22T12:00:01.000+00:00")
    missed = msgspec.structs.replace(
        report(CheckStatus.VIOLATED), duration_s=1.5, started="2026-11-22T12:00:00.000+00:00"
    )
    root = ElementTree.fromstring(
        junit(
            (
                Case(suite="first", name="kip-966 #1", report=met),
                Case(suite="second", name="kip-966", report=report(CheckStatus.UNKNOWN)),
                Case(suite="first", name="kip-966 #2", report=missed),
                Case(suite="first", name="kafka-0.10", report=None, skipped="no ELR <here>"),
            )
        )
    )
    first, second = root
    assert [case.get("name") for case in first] == ["kip-966 #1", "kip-966 #2", "kafka-0.10"]
    counts = {key: first.get(key) for key in ("tests", "failures", "errors", "skipped", "time", "timestamp")}
    assert counts == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
        "time": "3.500",
        "timestamp": missed.started,
    }
    assert (second.get("errors"), root.get("tests"), root.get("skipped")) == ("1", "4", "1")
    skipped = first[2].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "no ELR <here>"


def test_summary_says_in_words_what_became_of_the_checks() -> None:
    lines = summary(report(*CheckStatus)).splitlines()
    checks = "1 held, 1 violated (D1 Name), 1 exempt, 1 unknown (D5 Name), 1 not promised in this era"
    assert f"  checks: {checks}, 1 not asked" in lines


@pytest.mark.parametrize("story", [0, 5, 50])
def test_summary_has_twelve_lines_at_most(story: int) -> None:
    lines = summary(report(CheckStatus.VIOLATED, unknown_reasons=("a gap",), story=story)).splitlines()
    assert len(lines) <= 12
    assert lines[0].startswith("VIOLATION")
    if story == 50:
        assert lines[-1].endswith("more lines in verdict.json")
