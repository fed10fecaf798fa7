"""A page on paper: what is closed on the screen is printed, and dark is light."""

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from laststand.emulator.report.page import render
from laststand.emulator.report.run_files import ReportedRun
from tests.browser.test_report_page import background, opened


def test_what_is_closed_is_printed(browser: Browser, runs: dict[str, ReportedRun], tmp_path: Path) -> None:
    run = runs["lost"]
    page = tmp_path / "planned.html"
    plan = "name: a\n"
    page.write_text(render(ReportedRun(directory=run.directory, verdict=run.verdict, story=run.story, plan=plan)))
    heights = "[...document.querySelectorAll('details > :not(summary)')].map(e => e.getBoundingClientRect().height)"
    with opened(browser, page) as tab:
        assert tab.locator("#plan-text").is_hidden()
        tab.emulate_media(media="print")
        found = tab.evaluate(heights)
        assert len(found) > 4
        assert min(found) > 10
        assert tab.locator("#plan-text").is_visible()
        assert tab.locator("details.loss ol").first.is_visible()
        assert tab.locator("#theme").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_is_light(scheme: Literal["light", "dark"], browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["lost"], color_scheme="light") as tab:
        light = background(tab)
    with opened(browser, pages["lost"], color_scheme=scheme) as tab:
        tab.emulate_media(media="print", color_scheme=scheme)
        assert background(tab) == light
        tab.emulate_media(media="screen", color_scheme=scheme)
        tab.locator("#theme").click()
        tab.emulate_media(media="print", color_scheme=scheme)
        assert background(tab) == light


def test_what_a_check_is_about_is_reached_by_keyboard(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["lost"]) as tab:
        held = tab.locator("details.checks.ok")
        assert held.locator("table").is_hidden()
        held.locator("summary").focus()
        tab.keyboard.press("Enter")
        row = held.locator("tr", has_text="D9 Bounds")
        assert row.is_visible()
        assert "Log start offset <= high watermark <= log end offset" in row.inner_text()
        assert "UnifiedLog" in row.inner_text()
        assert tab.locator("details.checks.violated table").is_visible()
