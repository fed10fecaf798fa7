"""A page stays small: blocks that nobody could tell apart are one, and partitions are drawn while there is room."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laststand.emulator.report import page
from laststand.emulator.report.crowded import APART_MAX, drawn_apart
from laststand.emulator.report.figure import draw
from laststand.emulator.report.page import DRAWN_MAX, PAGE_BYTES_MAX, render
from laststand.emulator.report.run_files import ReportedRun
from laststand.emulator.verification.story.partition import CHANGES_MAX
from tests.unit.report.judged_runs import lost
from tests.unit.report.long_stories import at_all_caps
from tests.unit.report.test_page import Page

WIDTH = 720.0


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> ReportedRun:
    return lost(tmp_path_factory.mktemp("lost") / "story" / "1")


@given(st.lists(st.floats(0, 50), min_size=1, max_size=1000), st.sets(st.integers(0, 999), max_size=20))
def test_blocks_are_drawn_in_order_and_no_more_of_them_than_a_lane_has_room_for(
    widths: list[float], kept: set[int]
) -> None:
    total = sum(widths) or 1.0
    edges = [0.0]
    for width in widths:
        edges.append(edges[-1] + width * WIDTH / total)
    found = drawn_apart(edges, kept=kept)
    assert [place for places in found for place in places] == list(range(len(widths)))
    if len(widths) <= APART_MAX:
        assert all(len(places) == 1 for places in found)
    else:
        assert len(found) <= 2 * APART_MAX + 2 * len(kept) + 1
        assert all(len(places) == 1 for places in found if kept & set(places))


def test_changes_that_are_too_close_together_are_one_block_that_says_how_many(loss: ReportedRun) -> None:
    run = at_all_caps(loss, partitions=1, epochs=1)
    [partition] = run.story.partitions
    marked = msgspec.structs.replace(partition.changes[1000], isr=(0,), time_us=partition.changes[1000].time_us + 1)
    changes = (*partition.changes[:1000], marked, *partition.changes[1001:])
    drawn = draw(run.verdict, msgspec.structs.replace(partition, changes=changes), run.story, prefix="x")
    assert any(step.time_us == marked.time_us for step in drawn.steps)
    lane = re.findall(r'<rect [^>]*class="(leader[^"]*)"[^>]*><title>([^<]*)</title>', drawn.svg)
    joined = [int(found[1]) for class_, words in lane if (found := re.search(r": (\d+) changes, too close", words))]
    assert sum(joined) + len(lane) - len(joined) == CHANGES_MAX
    assert len(lane) < 2 * APART_MAX
    assert [words for class_, words in lane if class_ == "leader few"] == [
        "300.0 s: broker 1 · epoch 1000 · ISR 0; min ISR 2; broker fenced 2; elected as a member of the ISR"
    ]
    assert drawn.svg.count('class="strip crowded"') < 3 * 2 * APART_MAX
    assert Page(render(run)).text.count("too close together to be drawn apart") > len(joined)
    assert "too close together" not in Page(render(loss)).text


def with_partitions(run: ReportedRun, count: int) -> ReportedRun:
    partitions = tuple(msgspec.structs.replace(run.story.partitions[0], partition=number) for number in range(count))
    story = msgspec.structs.replace(run.story, partitions=partitions)
    return ReportedRun(directory=run.directory, verdict=run.verdict, story=story, plan=run.plan)


@pytest.mark.parametrize(("room_for", "all_drawn"), [(0, "no"), (1, "no"), (3, "yes"), (20, "yes")])
def test_partitions_are_drawn_while_the_page_has_room_the_worst_one_always(
    room_for: int, all_drawn: str, loss: ReportedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = with_partitions(loss, 12)
    one = len(render(loss).encode())
    [picture] = re.findall(r'<svg [^>]*class="figure".*?</svg>', render(loss), re.DOTALL)
    monkeypatch.setattr(page, "PAGE_BYTES_MAX", one + room_for * 2 * len(picture))
    drawn = render(run)
    assert room_for == 0 or len(drawn.encode()) <= page.PAGE_BYTES_MAX
    large, small = drawn.count('class="figure"'), drawn.count('class="thumb"')
    assert 1 <= large <= DRAWN_MAX
    assert (large + small == 12) is (all_drawn == "yes")
    told = re.search(r"(\d+) more are not drawn", Page(drawn).text)
    assert (0 if told is None else int(told[1])) == 12 - large - small


def test_two_thousand_partitions_are_drawn_or_lines_of_a_table(loss: ReportedRun) -> None:
    drawn = render(with_partitions(loss, 2000))
    assert len(drawn.encode()) <= PAGE_BYTES_MAX
    large, small = drawn.count('class="figure"'), drawn.count('class="thumb"')
    [table] = re.findall(r'<details class="listed">.*?</details>', drawn, re.DOTALL)
    lines = re.findall(r"<tr><td>([^<]*)</td>", table)
    assert len(set(lines)) == len(lines) == 2000 - large - small
    assert "more are not drawn" not in drawn
    assert small > 100


@pytest.mark.parametrize("partitions", [1, 6])
def test_a_page_has_its_limit_however_much_happened(partitions: int, loss: ReportedRun) -> None:
    drawn = render(at_all_caps(loss, partitions=partitions, epochs=40))
    assert len(drawn.encode()) <= PAGE_BYTES_MAX
    assert "more are not drawn" not in drawn
