"""``make gallery``: every row of ``docs/failures.md`` has a page, or says why it has none."""

import re
from pathlib import Path

import pytest

from docs.failures_table import DOCUMENT, Failure, all_failures_of, reasons_of
from docs.gallery import INDEX, ROOT, Played, Unplayed, played_by, write_gallery
from laststand.emulator.report.run_files import read_reported_run
from laststand.emulator.verification.verdict.report import Verdict

TEXT = DOCUMENT.read_text(encoding="utf-8")
REASONS = reasons_of(TEXT)
FAILURES = {failure.id: failure for failure in all_failures_of(TEXT)}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_failure_is_played_by_what_exists_or_says_why_it_is_not(failure: Failure) -> None:
    match played_by(failure):
        case Played(path=path):
            assert path.is_file()
            assert failure.id not in REASONS
        case Unplayed(reason=reason):
            assert reason == REASONS[failure.id]
            assert all((ROOT / name).is_file() for name in re.findall(r"`(tests/\S+)`", reason))


def test_a_page_shows_the_loss_without_the_rule_beside_the_run_with_it(tmp_path: Path) -> None:
    write_gallery(tmp_path, [FAILURES["S08"], FAILURES["S04"]])
    without, kept = (read_reported_run(tmp_path / "runs" / "S08" / name).verdict for name in ("without", "with"))
    assert (without.verdict, kept.verdict) == (Verdict.VIOLATION, Verdict.VALID)
    page = (tmp_path / "S08.html").read_text()
    assert "kip-966 with maximal_isr=" in page
    assert "1 record is acknowledged with acks=all" in page
    index = (tmp_path / INDEX).read_text()
    assert "1 of 2 records acknowledged with acks=all is gone" in index
    assert "hold broker 1 to the controller (AlterPartition request)" in page
    assert 'href="S08.html"' in index
    assert "The leader epoch is a field of every fetch" in index
    assert not (tmp_path / "S04.html").exists()


def test_a_run_of_the_rule_at_work_is_in_the_column_of_runs_with_it(tmp_path: Path) -> None:
    write_gallery(tmp_path, [FAILURES["S12"]])
    without, kept = re.findall(r"<td>(?!<p>)(.*?)</td>", (tmp_path / INDEX).read_text(), re.DOTALL)
    assert without == ""
    assert "are still there" in kept
    assert "At the worst moment" in (tmp_path / "S12.html").read_text()


def test_a_failure_of_clusters_with_zookeeper_is_shown_by_two_eras(tmp_path: Path) -> None:
    played = played_by(FAILURES["Z13"])
    assert isinstance(played, Played)
    assert played.eras == ("kafka-2.6-zk", "kip-550-zk")
    write_gallery(tmp_path, [FAILURES["Z13"], FAILURES["Z17"], FAILURES["Z02"]])
    without, kept = (read_reported_run(tmp_path / "runs" / "Z13" / name).verdict for name in ("without", "with"))
    assert (without.era, without.verdict) == ("kafka-2.6-zk", Verdict.VIOLATION)
    assert (kept.era, kept.verdict) == ("kip-550-zk", Verdict.VALID)
    assert "gone" in (tmp_path / "Z17.html").read_text()
    assert not (tmp_path / "Z02.html").exists()
