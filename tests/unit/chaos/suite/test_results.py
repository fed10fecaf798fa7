"""A suite's results and their forms."""

from pathlib import Path

import msgspec
import pytest

from laststand.chaos.suite.annotations import annotations
from laststand.chaos.suite.matrix import details, markdown, matrix, seeds, totals
from laststand.chaos.suite.results import (
    CellResult,
    CellStatus,
    SuiteReport,
    judged_result,
    read_report,
    to_play_again,
    unplayed_result,
    write_report,
)
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.verification.verdict.report import Expected, Verdict
from tests.unit.chaos.suite.suites import cell, report

PASSED = unplayed_result(cell("a"), status=CellStatus.PASSED)
BASE = msgspec.structs.replace(PASSED, verdict="valid", lost=0, duration_s=2.0, directory="store/a/1")
FAILED = msgspec.structs.replace(
    BASE,
    scenario="b",
    path="b:1,.yaml",
    era="kafka-3.9",
    status=CellStatus.FAILED,
    verdict="violation",
    guarantee="broken",
    lost=12,
    reasons=("12 acks=all records lost, expected ==0",),
    story=("100% of them <b|c>", "are gone"),
)


def suite(*cells: CellResult) -> SuiteReport:
    return SuiteReport(
        driver="process",
        settings=("elr=off",),
        started="2026-11-22T12:00:00.000+00:00",
        duration_s=3.25,
        cells=cells,
    )


def status(status: CellStatus) -> CellResult:
    return msgspec.structs.replace(PASSED, status=status)


@pytest.mark.parametrize(
    ("statuses", "outcome"),
    [
        ((CellStatus.PASSED, CellStatus.SKIPPED), Expected.MET),
        ((CellStatus.PASSED, CellStatus.UNKNOWN), Expected.UNDECIDED),
        ((CellStatus.PASSED, CellStatus.NOT_PLAYED), Expected.UNDECIDED),
        ((CellStatus.SKIPPED,), Expected.UNDECIDED),
        ((), Expected.UNDECIDED),
        ((CellStatus.UNKNOWN, CellStatus.FAILED, CellStatus.PASSED), Expected.MISSED),
    ],
)
def test_the_outcome_is_that_of_the_worst_cell(statuses: tuple[CellStatus, ...], outcome: Expected) -> None:
    assert suite(*(status(each) for each in statuses)).outcome is outcome


@pytest.mark.parametrize(
    ("verdict", "expected", "reasons"),
    [
        (Verdict.VALID, CellStatus.PASSED, ()),
        (Verdict.VIOLATION, CellStatus.FAILED, ("VIOLATION: a, era kip-966",)),
        (Verdict.UNKNOWN, CellStatus.UNKNOWN, ("a gap",)),
    ],
)
def test_a_result_says_why_a_cell_did_not_pass(
    verdict: Verdict, expected: CellStatus, reasons: tuple[str, ...]
) -> None:
    directory = Path("a kip-966 #1")
    result = judged_result(cell("a"), report(directory, verdict), directory=directory)
    assert (result.status, result.reasons, result.line, result.seed) == (expected, reasons, 9, 7)


def test_results_can_be_read_back(tmp_path: Path) -> None:
    written = suite(BASE, FAILED)
    write_report(written, tmp_path / "results.json")
    assert read_report(tmp_path / "results.json") == written
    assert to_play_again(written) == [FAILED]


@pytest.mark.parametrize("content", ["{", "{}", '{"version": 99}'])
def test_what_is_no_results_file_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(ConfigError, match=r"--rerun"):
        read_report(tmp_path / "results.json")


def test_results_of_another_version_are_refused(tmp_path: Path) -> None:
    write_report(msgspec.structs.replace(suite(BASE), version=99), tmp_path / "results.json")
    with pytest.raises(ConfigError, match="results of version 1"):
        read_report(tmp_path / "results.json")


def test_the_matrix_has_a_row_per_scenario_and_a_column_per_era() -> None:
    skipped = msgspec.structs.replace(status(CellStatus.SKIPPED), scenario="c", era="kafka-3.9")
    table = matrix(suite(BASE, FAILED, skipped))
    assert table.columns == ("kip-966", "kafka-3.9")
    assert table.rows == (
        ("a", ("✓ valid, 2.0 s", "")),
        ("b", ("", "✗ violation, broken, 12 lost, 2.0 s")),
        ("c", ("", "- skipped")),
    )


def test_a_summary_says_which_part_of_the_suite_it_is_and_why_cells_are_skipped() -> None:
    skipped = [
        msgspec.structs.replace(status(CellStatus.SKIPPED), scenario=name, reasons=("no such fault",))
        for name in ("c", "d", "e", "f")
    ]
    part = msgspec.structs.replace(suite(BASE, *skipped), shard="2/4")
    assert totals(part).startswith("shard 2/4: 5 cells: 1 as expected, 4 skipped")
    assert "- skipped 4: no such fault (c, d, e, and 1 more)" in markdown(part).splitlines()
    assert "shard" not in totals(suite(BASE))


def test_repetitions_share_a_place_with_the_worst_of_them() -> None:
    again = [msgspec.structs.replace(BASE, repetition=number, duration_s=float(number)) for number in (2, 3)]
    bad = msgspec.structs.replace(FAILED, scenario="a", era="kip-966", repetition=4, duration_s=4.0)
    assert matrix(suite(BASE, *again)).rows == (("a", ("✓ 3/3 valid, 2.0 s",)),)
    waits = [msgspec.structs.replace(each, unavailable_s=each.duration_s) for each in again]
    assert matrix(suite(BASE, *waits)).rows == (("a", ("✓ 3/3 valid, 2.0 s, no ack for 3.0 s",)),)
    assert matrix(suite(BASE, *again, bad)).rows == (("a", ("✗ 3/4 violation, broken, 12 lost, 2.5 s",)),)
    assert matrix(suite(BASE, *again, bad), has_times=False).rows == (("a", ("✗ 3/4 12 lost",)),)


def test_a_place_reports_for_how_long_a_partition_was_not_available() -> None:
    waits = msgspec.structs.replace(
        BASE, unavailable_s=4.2, leaderless_s=0.04, below_min_isr_s=2.25, fault_to_ack_s=4.18
    )
    again = msgspec.structs.replace(waits, repetition=2, leaderless_s=0.3, fault_to_ack_s=None)
    told = "valid, 2.0 s, no ack for 4.2 s, below min ISR for 2.2 s, ack 4.2 s after a fault"
    assert matrix(suite(waits)).rows == (("a", (f"✓ {told}",)),)
    told = "valid, 2.0 s, no ack for 4.2 s, no leader for 0.3 s, below min ISR for 2.2 s, ack 4.2 s after a fault"
    assert matrix(suite(waits, again)).rows == (("a", (f"✓ 2/2 {told}",)),)


def test_the_seeds_of_repetitions_are_reported_though_they_pass() -> None:
    assert seeds(suite(BASE)) is None
    again = msgspec.structs.replace(BASE, repetition=2, seed=8)
    assert seeds(suite(BASE, again)) == "seeds: 7 (#1), 8 (#2)"
    assert "\nseeds: 7 (#1), 8 (#2)\n" in markdown(suite(BASE, again))


def test_totals_count_what_there_is() -> None:
    assert totals(suite(BASE)) == "1 cell: 1 as expected, in 3.2 s"
    everything = suite(*(status(each) for each in CellStatus))
    assert totals(everything) == (
        "5 cells: 1 as expected, 1 not as expected, 1 unknown, 1 skipped, 1 not played, in 3.2 s"
    )


def test_details_name_seed_reason_story_and_directory() -> None:
    assert details(suite(BASE, FAILED)) == [
        "failed: b kafka-3.9 #1, seed 7: 12 acks=all records lost, expected ==0",
        "  100% of them <b|c>",
        "  are gone",
        "  run directory: store/a/1",
    ]


def test_markdown_escapes_what_would_end_a_place() -> None:
    text = markdown(suite(msgspec.structs.replace(BASE, scenario="a|<b>")))
    assert text.splitlines()[2] == "| a\\|&lt;b> | ✓ valid, 2.0 s |"


def test_annotations_are_commands_of_github() -> None:
    assert annotations(suite(BASE, FAILED)) == [
        "::error file=b%3A1%2C.yaml,line=9,title=b kafka-3.9 #1::12 acks=all records lost, expected ==0"
        "%0A100%25 of them <b|c>%0Aare gone"
    ]
