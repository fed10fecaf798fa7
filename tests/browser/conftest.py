"""A browser for the tests of pages: Debian's Chromium, driven by Playwright. Without one, these tests are skipped."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from docs.screenshots import PROGRAMS, browser_program
from laststand.emulator.report.page import render
from laststand.emulator.report.run_files import ReportedRun
from tests.unit.report.judged_runs import kept, lost


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Ends with the module: as long as Playwright is there, its event loop runs, and no other can."""
    program = browser_program()
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(PROGRAMS)} is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ReportedRun]:
    base = tmp_path_factory.mktemp("pages")
    return {"lost": lost(base / "lost" / "1"), "kept": kept(base / "kept" / "1")}


@pytest.fixture(scope="session")
def pages(runs: dict[str, ReportedRun], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Returns the pages of a run that lost records, and of one that lost none."""
    base = tmp_path_factory.mktemp("html")
    for name, run in runs.items():
        (base / f"{name}.html").write_text(render(run))
    return {name: base / f"{name}.html" for name in runs}
