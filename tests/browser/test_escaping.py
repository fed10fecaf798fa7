"""Text that comes from a run stays text in a real browser: nothing of it is run, and no element is made of it."""

from pathlib import Path

import msgspec
from playwright.sync_api import Browser

from laststand.emulator.report.page import render
from laststand.emulator.report.run_files import ReportedRun
from tests.browser.test_report_page import opened

EVIL = "</script><script>alert('run')</script><img src=x onerror=alert(1)>"


def test_names_and_plans_are_text(browser: Browser, runs: dict[str, ReportedRun], tmp_path: Path) -> None:
    run = runs["lost"]
    [partition] = run.story.partitions
    story = msgspec.structs.replace(run.story, partitions=(msgspec.structs.replace(partition, topic=EVIL),))
    verdict = msgspec.structs.replace(
        run.verdict,
        scenario=EVIL,
        losses=tuple(msgspec.structs.replace(loss, topic=EVIL) for loss in run.verdict.losses),
        partitions=tuple(msgspec.structs.replace(counts, topic=EVIL) for counts in run.verdict.partitions),
    )
    page = tmp_path / "evil.html"
    page.write_text(render(ReportedRun(directory=run.directory, verdict=verdict, story=story, plan=EVIL)))
    with opened(browser, page) as tab:
        assert tab.locator(".where strong").inner_text() == EVIL
        assert tab.locator("#plan-text").text_content() == EVIL
        assert tab.locator("img").count() == 0
        assert tab.locator("script").count() == 2
        tab.locator("svg.figure").hover(position={"x": 400, "y": 200})
        assert "log ends at" in tab.locator("#box").inner_text()
