"""The folders of ``hazards/``, and the page that ``make hazards`` writes from the reports of their tests."""

import re
from pathlib import Path

import pytest

from docs import hazards_by_release
from docs.hazards_by_release import HAZARDS, LOSES, NEVER, SAFE, build_error, hazard_folders, outcome, outcomes, page

_README = (HAZARDS / "README.md").read_text(encoding="utf-8")
_PAGE = Path(hazards_by_release.__file__).with_name("kafka-hazards.md").read_text(encoding="utf-8")


def _report(case: str) -> str:
    return f'<testsuite name="hazards.S37Test" tests="1"><testcase name="a">{case}</testcase></testsuite>'


def test_each_hazard_of_kafka_has_a_folder() -> None:
    hazards = set(re.findall(r"^## ([SQ]\d+): ", _PAGE, flags=re.MULTILINE))
    tested = hazard_folders()
    assert set(tested) == hazards
    for folder in tested.values():
        assert f"({folder.name}/README.md)" in _README


@pytest.mark.parametrize("hazard", hazard_folders())
def test_a_report_has_what_a_tracker_asks_for(hazard: str) -> None:
    folder = hazard_folders()[hazard]
    report = (folder / "README.md").read_text(encoding="utf-8")
    for part in (
        "| Affects versions |",
        "| Impact |",
        "| Known upstream |",
        "## Steps",
        "## Root cause",
        "## Proposed rule",
    ):
        assert part in report
    assert f"-Dtest={hazard}Test" in report
    assert ("[fix.patch](fix.patch)" in report) == (folder / "fix.patch").is_file()
    command = re.search(r"^laststand run .*$", report, flags=re.MULTILINE)
    assert command is not None
    assert f"\n{command[0]}\n" in _PAGE.partition(f"\n## {hazard}: ")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("", SAFE),
        ('<failure message="100 of 100 records are gone" type="AssertionFailedError"/>', LOSES),
        (
            '<error message="not seen within 60 s: leader 1&#10;more" type="E"/>',
            "not testable here: not seen within 60 s: leader 1",
        ),
        ('<error type="java.lang.NoSuchMethodError"/>', "not testable here: java.lang.NoSuchMethodError"),
        (
            '<skipped type="T"><![CDATA[T: Assumption failed: there is no ELR\n\tat S37]]></skipped>',
            "never: there is no ELR",
        ),
    ],
)
def test_a_surefire_report_is_an_outcome(case: str, said: str, tmp_path: Path) -> None:
    report = tmp_path / "TEST-hazards.S37Test.xml"
    report.write_text(_report(case), encoding="utf-8")
    assert outcome(report) == said


def test_a_test_that_did_not_run_has_no_outcome(tmp_path: Path) -> None:
    assert outcome(tmp_path / "none.xml") == "not testable here: the test did not run"


def test_a_release_whose_build_failed_says_why(tmp_path: Path) -> None:
    (tmp_path / "3.9.1").mkdir()
    (tmp_path / "3.9.1" / "build-error.txt").write_text("there is no kit\n", encoding="utf-8")
    assert set(outcomes(["3.9.1"], tmp_path)["3.9.1"].values()) == {"not testable here: there is no kit"}


def test_the_error_of_a_build_names_no_host() -> None:
    missing = "[ERROR] Could not find artifact org.apache.kafka:kit:jar:3.9.1 in central (https://host.example/maven2)"
    assert build_error(missing) == "there is no org.apache.kafka:kit:jar:3.9.1"
    known = "Could not resolve: org.apache.kafka:kit:jar:3.9.1 was not found in https://host.example/maven2 before"
    assert build_error(known) == "there is no org.apache.kafka:kit:jar:3.9.1"
    failed = "[ERROR] Failed to execute goal org.example:maven-compiler-plugin:3.13.0:testCompile (x) on project"
    assert build_error(failed) == "testCompile failed"


def test_a_release_that_loses_nothing_after_one_that_does_is_a_fix() -> None:
    hazards = hazard_folders()
    found = {
        "1.0": dict.fromkeys(hazards, SAFE),
        "2.0": dict.fromkeys(hazards, LOSES),
        "3.0": dict.fromkeys(hazards, "not testable here: there is no kit"),
        "4.0": dict.fromkeys(hazards, SAFE),
    }
    written = page(found)
    assert f"| {NEVER} | {LOSES} | not testable here (1) | fixed in |" in written
    assert "\n(1) there is no kit\n" in written
