"""The live page in a real browser: what is escaped, and what is said when nothing new comes."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from emulator.live.server import LiveView, ViewPlace
from tests.unit.live.packed_runs import packed_events
from tests.unit.live.stages import KILL, PlayedStage
from tests.unit.report.judged_runs import lost

DEADLINE_MS = 60_000
DEADLINE_S = DEADLINE_MS / 1000
NAME = "<script>alert(1)</script>"


@contextlib.contextmanager
def opened(browser: Browser, address: str) -> Iterator[tuple[Page, list[str]]]:
    """Opens a page; yields it with what it complained of."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(DEADLINE_MS)
    tab = context.new_page()
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("dialog", lambda dialog: complaints.append(dialog.message))
    tab.goto(address)
    yield tab, complaints
    context.close()


@contextlib.contextmanager
def served(stage: PlayedStage, place: ViewPlace | None = None) -> Iterator[LiveView]:
    """Serves a page from a thread: Playwright has the event loop of this one."""
    started: list[LiveView] = []
    is_started, end = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        async with LiveView([stage], title=NAME, place=place) as view:
            started.append(view)
            loops.append(asyncio.get_running_loop())
            is_started.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_started.wait(DEADLINE_S)
    try:
        yield started[0]
    finally:
        loops[0].call_soon_threadsafe(end.set)
        thread.join(DEADLINE_S)


@pytest.fixture
def stage(tmp_path: Path) -> PlayedStage:
    packed_events(lost(tmp_path / "run" / "1").directory, tmp_path / "live" / "events")
    return PlayedStage(tmp_path / "live", name=NAME)


def test_names_are_escaped_and_axe_finds_nothing(browser: Browser, stage: PlayedStage) -> None:
    with served(stage) as view, opened(browser, view.address) as (tab, complaints):
        expect(tab.locator("#state")).to_have_text("live", timeout=DEADLINE_MS)
        expect(tab.locator(".nodes th")).to_have_text(NAME)
        tab.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
        found = tab.evaluate("axe.run()")
        assert [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found["violations"]] == []
        assert complaints == []


def test_a_page_without_news_says_so_and_finds_the_server_again(
    browser: Browser, stage: PlayedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(_view: LiveView, _words: str) -> None:
        """As if the process had been killed: the pages are told nothing."""

    monkeypatch.setattr(LiveView, "end", die)
    with contextlib.ExitStack() as page:
        with served(stage) as first:
            tab, _ = page.enter_context(opened(browser, first.address))
            expect(tab.locator("#state")).to_have_text("live", timeout=DEADLINE_MS)
        expect(tab.locator("#state")).to_have_class("stale", timeout=DEADLINE_MS)
        stage.played.append(KILL.step)
        with served(stage, first.place):
            expect(tab.locator("#state")).to_have_text("live", timeout=DEADLINE_MS)
            expect(tab.locator(".nodes td").first).to_have_text("down", timeout=DEADLINE_MS)
