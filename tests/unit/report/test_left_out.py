"""A page says what it leaves out: decisions of the shutdown, rows of a comparison, losses, actions, epochs."""

from pathlib import Path

import msgspec
import pytest

from laststand.emulator.report.comparison import compare_decisions
from laststand.emulator.report.page import render
from laststand.emulator.report.run_files import ReportedRun
from laststand.emulator.report.text_picture import text_picture
from laststand.emulator.verification.story.run import PartitionStory, RunStory
from tests.unit.report.judged_runs import kept, lost
from tests.unit.report.test_page import Page


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> ReportedRun:
    return lost(tmp_path_factory.mktemp("lost") / "story" / "1")


def with_story(run: ReportedRun, story: RunStory) -> ReportedRun:
    return ReportedRun(directory=run.directory, verdict=run.verdict, story=story, plan=None)


def with_partition(run: ReportedRun, partition: PartitionStory) -> ReportedRun:
    return with_story(run, msgspec.structs.replace(run.story, partitions=(partition,)))


def test_decisions_of_the_shutdown_are_counted_and_not_shown(loss: ReportedRun) -> None:
    [partition] = loss.story.partitions
    stop = msgspec.structs.replace(
        partition.changes[-1],
        time_us=loss.story.end_us + 1,
        leader=None,
        metadata_offset=partition.changes[-1].metadata_offset + 1,
    )
    run = with_partition(loss, msgspec.structs.replace(partition, changes=(*partition.changes, stop)))
    rows = Page(render(loss)).text, Page(render(run)).text
    assert "of the shutdown" not in rows[0]
    assert "1 of the shutdown, after the end of the picture, are not shown." in rows[1]
    assert rows[0].count(" none ") == rows[1].count(" none ")


def test_a_long_comparison_shows_what_is_around_the_first_difference(loss: ReportedRun, tmp_path: Path) -> None:
    [partition] = loss.story.partitions
    long = msgspec.structs.replace(partition, changes=tuple(partition.changes[0] for _ in range(1000)))
    other = msgspec.structs.replace(partition.changes[0], isr=(0,))
    parted = msgspec.structs.replace(long, changes=(*long.changes[:900], other, *long.changes[901:]))
    found = compare_decisions(with_partition(loss, long), with_partition(loss, parted))
    assert (found.before, len(found.rows), found.after) == (800, 200, 0)
    assert [place for place, row in enumerate(found.rows) if row.is_first] == [100]
    early = msgspec.structs.replace(long, changes=(*long.changes[:300], other, *long.changes[301:]))
    found = compare_decisions(with_partition(loss, long), with_partition(loss, early))
    assert (found.before, len(found.rows), found.after) == (250, 200, 550)
    page = Page(render(with_partition(loss, long), against=found)).text
    assert "250 decisions before these are alike, and not shown." in page
    assert "550 after these are not shown." in page
    short = compare_decisions(loss, kept(tmp_path / "kept" / "1"))
    assert (short.before, short.after) == (0, 0)


def test_losses_beyond_those_that_are_reported_are_counted(loss: ReportedRun) -> None:
    losses = loss.verdict.losses
    many = msgspec.structs.replace(loss.verdict, losses=tuple(losses[0] for _ in range(203)))
    run = ReportedRun(directory=loss.directory, verdict=many, story=loss.story, plan=None)
    assert "3 more are in verdict.json" in Page(render(run)).text


def test_a_text_picture_counts_deeds_without_a_letter(loss: ReportedRun) -> None:
    [first, *_] = loss.story.faults
    faults = tuple(msgspec.structs.replace(first, begun_us=place * 1000) for place in range(40))
    story = msgspec.structs.replace(loss.story, faults=faults)
    [partition] = story.partitions
    assert "later actions not marked" in text_picture(loss.verdict, partition, story)
    assert "not marked" not in text_picture(loss.verdict, partition, loss.story)


def test_a_partition_that_is_not_drawn_can_be_opened(loss: ReportedRun) -> None:
    [partition] = loss.story.partitions
    others = [msgspec.structs.replace(partition, partition=number) for number in range(1, 9)]
    run = with_story(loss, msgspec.structs.replace(loss.story, partitions=(*others, partition)))
    page = Page(render(run))
    assert "The picture of orders-8 as text" in set(page.values("aria-label"))
    assert page.text.count("Only broker 2 is in sync") >= 9
