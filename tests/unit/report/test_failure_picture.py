"""The picture of a run that was not as expected: there for who asks, and never in the way."""

from pathlib import Path

import msgspec
import pytest

from laststand.emulator.report.failure_picture import failure_picture
from laststand.emulator.report.run_files import ReportedRun
from laststand.emulator.verification.story.story_file import STORY_FILE
from laststand.emulator.verification.verdict.report import Expected
from tests.unit.report.judged_runs import lost


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> ReportedRun:
    return lost(tmp_path_factory.mktemp("lost") / "story" / "1")


def test_it_names_the_worst_partition_and_shows_what_show_prints(loss: ReportedRun) -> None:
    missed = msgspec.structs.replace(loss.verdict, outcome=Expected.MISSED)
    name, faults, *rows = failure_picture(missed, loss.directory)
    assert name == "orders-0"
    assert faults.startswith("faults ")
    assert any(row.startswith("copies ") and row.rstrip().endswith("0") for row in rows)


def test_a_run_as_expected_has_none(loss: ReportedRun) -> None:
    assert failure_picture(msgspec.structs.replace(loss.verdict, outcome=Expected.MET), loss.directory) == ()


@pytest.mark.parametrize("content", [None, "{}", "no story"])
def test_where_nothing_can_be_drawn_there_is_none(loss: ReportedRun, tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / STORY_FILE).write_text(content)
    missed = msgspec.structs.replace(loss.verdict, outcome=Expected.MISSED)
    assert failure_picture(missed, tmp_path) == ()
