"""The live page in a real browser: a click on a real cluster, what is escaped, what is said when nothing new comes."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from laststand.emulator.live.server import LiveView, ViewPlace
from tests.browser.axe import run_axe
from tests.browser.test_report_page import drag
from tests.cluster.test_standing import Terminal, open_terminal
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
        assert run_axe(tab).violations == []
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


def test_a_picture_that_is_zoomed_stays_so_when_it_is_drawn_again(browser: Browser, stage: PlayedStage) -> None:
    with served(stage) as view, opened(browser, view.address) as (tab, complaints):
        figure = tab.locator("svg.figure").first
        expect(figure).to_be_visible(timeout=DEADLINE_MS)
        whole = figure.get_attribute("viewBox")
        drag(tab)
        zoomed = figure.get_attribute("viewBox")
        assert zoomed != whole
        tab.evaluate("document.querySelector('svg.figure').dataset.old = 'yes'")
        stage.played.append(KILL.step)
        expect(tab.locator("svg.figure[data-old]")).to_have_count(0, timeout=DEADLINE_MS)
        assert figure.get_attribute("viewBox") != whole
        figure.hover(position={"x": 400, "y": 200})
        expect(tab.locator("#box")).to_contain_text("log ends at")
        figure.dblclick(position={"x": 400, "y": 150})
        assert str(figure.get_attribute("viewBox")).startswith("0 0 985 ")
        assert complaints == []


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with open_terminal(tmp_path) as terminal:
        yield terminal


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_a_click_kills_a_broker_which_the_lane_shows_and_the_plan_has(browser: Browser, terminal: Terminal) -> None:
    told = terminal.type("up", "--view", "--no-proxies", "--set", "broker.session.timeout.ms=2000")
    [address] = [line.split()[-1] for line in told.splitlines() if "live view:" in line]
    assert address == terminal.status()["view"]
    terminal.type("topics", "create", "orders", "--replica-assignment", "1:0:2")
    terminal.type("produce", "orders", stdin="".join(f"{number}\n" for number in range(50)))
    with opened(browser, address) as (tab, complaints):
        expect(tab.locator("svg.figure")).to_be_visible()
        row = tab.locator(".nodes tr", has_text="broker 1")
        expect(row.locator("button")).to_have_text(["kill", "stop", "pause", "power loss", "replace disk"])
        row.get_by_role("button", name="kill").click()
        expect(tab.locator("#said")).to_contain_text("was killed", timeout=DEADLINE_MS)
        expect(row).to_contain_text("down (kill)", timeout=DEADLINE_MS)
        expect(row.locator("button")).to_have_text(["start"])
        expect(tab.locator("svg.figure .absent-label")).to_have_text("killed", timeout=DEADLINE_MS)
        expect(tab.locator("svg.figure .fault")).to_have_text("kill broker 1")
        expect(tab.locator(".partitions td").first).not_to_have_text("1", timeout=DEADLINE_MS)
        assert complaints == []
    assert "kill: {node: 1}" in (terminal.latest / "plan.yaml").read_text()
    assert (terminal.latest / "view.json").stat().st_mode & 0o077 == 0
    terminal.type("down")
