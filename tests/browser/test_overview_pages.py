"""Pages with many runs, in a real browser: the overview, and the gallery's index. Each cell can be read and opened."""

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from docs.failures_table import DOCUMENT, failures_of
from docs.gallery import INDEX, write_gallery
from laststand.emulator.report.overview import PlayedCell, UnplayedCell, write_overview
from laststand.emulator.report.run_files import ReportedRun
from tests.browser.axe import run_axe
from tests.browser.test_report_page import opened

REASON = (
    "--driver kafka cannot play step 7 {power_loss: {node: 2, keep: torn}} (line 31): there are no torn writes there"
)


@pytest.fixture(scope="session")
def many(
    runs: dict[str, ReportedRun], pages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Returns both pages, which are made before there is a browser: its event loop admits no other."""
    base = tmp_path_factory.mktemp("many")
    unplayed = [
        UnplayedCell("lost", "kafka-4.2 on kafka", REASON, is_playable=False),
        UnplayedCell("kept", "kafka-3.9", "the suite ended before"),
    ]
    write_overview(
        [PlayedCell(run.directory, pages[name]) for name, run in runs.items()],
        base / "overview.html",
        unplayed=unplayed,
    )
    failures = {failure.id: failure for failure in failures_of(DOCUMENT.read_text(encoding="utf-8"))}
    write_gallery(base / "gallery", [failures["S08"], failures["S04"], failures["S12"]])
    return {"overview": base / "overview.html", "gallery": base / "gallery" / INDEX}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["overview", "gallery"])
def test_axe_finds_nothing(
    name: str, scheme: Literal["light", "dark"], browser: Browser, many: dict[str, Path]
) -> None:
    with opened(browser, many[name], color_scheme=scheme) as tab:
        found = run_axe(tab)
        assert found.violations == []
        assert found.passes > 10


@pytest.mark.parametrize("name", ["overview", "gallery"])
def test_the_keyboard_reaches_every_cell_and_a_cell_opens_its_report(
    name: str, browser: Browser, many: dict[str, Path]
) -> None:
    with opened(browser, many[name]) as tab:
        links = tab.locator("main a").evaluate_all("all => all.map(link => link.href)")
        reached = set()
        for _ in range(len(links) + 3):
            tab.keyboard.press("Tab")
            reached.add(tab.evaluate("document.activeElement.href"))
        assert set(links) <= reached
        assert len(set(links)) == 2
        assert all(Path(link.removeprefix("file://")).is_file() for link in links)


def test_a_reason_is_whole_and_within_its_cell(browser: Browser, many: dict[str, Path]) -> None:
    with opened(browser, many["overview"]) as tab:
        cell = tab.locator(".unplayed", has_text="not playable")
        assert REASON in cell.inner_text()
        sizes = cell.evaluate("e => [e.scrollWidth, e.clientWidth, e.scrollHeight, e.clientHeight]")
        assert (sizes[0], sizes[2]) == (sizes[1], sizes[3])
