"""A picture that is zoomed: nothing is stretched but the picture, and words, ticks and pointer follow."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.test_report_page import box_of, drag, opened

LABELS = """() => [...document.querySelectorAll('svg.figure .leader-label')].filter(e => e.textContent).map(e => {
  const block = e.previousElementSibling.getBoundingClientRect(), label = e.getBoundingClientRect();
  const svg = e.closest('svg'), strip = svg.querySelector('.name-strip').getBoundingClientRect();
  return {words: e.textContent, from: label.left - Math.max(block.left, strip.right), over: label.right - block.right};
})"""
TICKS = """() => [...document.querySelectorAll('svg.figure .zoomed-ticks text')].map(e => {
  const box = e.getBoundingClientRect();
  return {words: e.textContent, at: box.left + box.width / 2, height: box.height};
})"""


@pytest.fixture
def page(browser: Browser, pages: dict[str, Path]) -> Iterator[Page]:
    with opened(browser, pages["lost"]) as tab:
        yield tab


def view(tab: Page) -> tuple[float, float]:
    """Returns begin and width of what is shown."""
    begin, _, width, _ = map(float, str(tab.locator("svg.figure").get_attribute("viewBox")).split())
    return begin, width


def test_patterns_are_not_sheared(page: Page) -> None:
    drag(page)
    _, width = view(page)
    own = page.locator("#p0-figure-gone-pattern")
    scale = re.fullmatch(r"scale\((\S+) 1\)", str(own.get_attribute("patternTransform")))
    assert scale is not None
    assert float(scale[1]) == pytest.approx(width / 985, rel=1e-3)
    fills = page.evaluate("[...document.querySelectorAll('svg.figure .gone')].map(e => getComputedStyle(e).fill)")
    assert set(fills) == {'url("#p0-figure-gone-pattern")'}
    page.locator("svg.figure").dblclick(position={"x": 400, "y": 150})
    fills = page.evaluate("[...document.querySelectorAll('svg.figure .gone')].map(e => getComputedStyle(e).fill)")
    assert set(fills) == {'url("#gone-pattern")'}


def test_the_words_of_a_block_stand_at_its_edge_and_are_as_many_as_have_room(page: Page) -> None:
    whole = [each["words"] for each in page.evaluate(LABELS)]
    drag(page)
    seen = [each for each in page.evaluate(LABELS) if each["over"] < 0 and each["from"] > -1]
    assert seen
    assert all(3 < each["from"] < 15 for each in seen), seen
    assert any("epoch" in each["words"] for each in seen)
    page.locator("svg.figure").dblclick(position={"x": 400, "y": 150})
    assert [each["words"] for each in page.evaluate(LABELS)] == whole


def test_time_is_ticked_anew(page: Page) -> None:
    assert page.evaluate(TICKS) == []
    drag(page)
    ticks = page.evaluate(TICKS)
    times = [float(tick["words"].removesuffix(" s")) for tick in ticks]
    assert 3 <= len(ticks) <= 13
    assert times == sorted(set(times))
    assert all(after["at"] - before["at"] >= 30 for before, after in pairwise(ticks))
    assert page.locator("svg.figure .ticks").is_hidden()
    page.locator("svg.figure").dblclick(position={"x": 400, "y": 150})
    assert page.evaluate(TICKS) == []
    assert page.locator("svg.figure .ticks").is_visible()


def test_drags_zoom_no_nearer_than_words_can_be_laid(page: Page) -> None:
    for _ in range(6):
        drag(page)
    assert view(page)[1] == pytest.approx(2 * 985 / (985 - 92), rel=1e-3)
    assert page.evaluate(TICKS)


def told_time(tab: Page) -> float:
    return float(tab.locator("#box").inner_text().split(" s", 1)[0])


def test_after_a_drag_the_box_reports_the_time_where_the_pointer_is(page: Page) -> None:
    drag(page)
    shown = told_time(page)
    box = box_of(page.locator("svg.figure"))
    page.mouse.move(box["x"] + 501, box["y"] + 150)
    assert told_time(page) == pytest.approx(shown, abs=0.05)


def test_plus_and_minus_zoom_around_the_event_that_is_reported_and_arrows_move_on(page: Page) -> None:
    page.locator("svg.figure").focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    at = float(str(page.locator(".cursor").get_attribute("x1")))
    widths = [view(page)[1]]
    for key in "+++":
        page.keyboard.press(key)
        begin, width = view(page)
        assert begin < at < begin + width
        widths.append(width)
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 4
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    begin, width = view(page)
    assert begin <= float(str(page.locator(".cursor").get_attribute("x1"))) <= begin + width
    for _ in range(4):
        page.keyboard.press("-")
    assert view(page) == (0, widths[0])
