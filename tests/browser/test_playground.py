"""The playground in a browser: the same events as here, buttons that append actions, no request elsewhere."""

import functools
import http.server
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from docs.playground.build import build
from docs.playground.session import play
from tests.browser.axe import run_axe

LOADED_MS = 120_000


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("npm") is None:
        pytest.skip("no npm, from which Pyodide comes")
    site = tmp_path_factory.mktemp("site")
    try:
        build(site / "under" / "a" / "path")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"Pyodide cannot be had: {error}")
    return site


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/under/a/path/"
        server.shutdown()


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page()
    own = (address, f"blob:{address.partition('/under')[0]}/", "data:")
    page.on("request", lambda request: None if request.url.startswith(own) else pytest.fail(request.url))
    page.goto(address)
    page.wait_for_selector("#lanes td", timeout=LOADED_MS)
    yield page
    page.close()


def test_a_plan_has_the_same_events_as_on_the_command_line(page: Page) -> None:
    played = play(page.input_value("#plan"))
    assert page.get_attribute("#verdict", "data-digest") == played.digest
    assert played.verdict in (page.text_content("#verdict") or "")


def test_a_scenario_has_the_same_events_as_on_the_command_line(page: Page) -> None:
    page.select_option("#preset", label="kip-841/fenced-follower")
    page.wait_for_selector("thead button:has-text('until')", timeout=LOADED_MS)
    assert page.get_attribute("#verdict", "data-digest") == play(page.input_value("#plan")).digest
    assert page.locator("#actions button").first.is_disabled()
    assert "laststand run scenario.yaml" in (page.text_content("#command") or "")
    page.select_option("#preset", index=0)
    page.wait_for_selector("thead button:has-text('power-loss 2')", timeout=LOADED_MS)


def test_an_era_that_keeps_the_records_is_chosen_and_a_button_appends_an_action(page: Page) -> None:
    page.select_option("#era", "kip-966")
    page.wait_for_selector("#verdict:has-text('valid')", timeout=LOADED_MS)
    page.select_option("#broker", "1")
    page.get_by_role("button", name="Power loss", exact=True).click()
    assert page.input_value("#plan").rstrip().endswith("power-loss 1 keep=none kept=0 truncation=kept")
    page.wait_for_selector("thead button:has-text('power-loss 1')", timeout=LOADED_MS)
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("ArrowLeft")
    assert "power-loss 1" in (page.text_content("#moment") or "")


def test_a_scenario_that_virtual_time_cannot_play_says_why(page: Page) -> None:
    page.select_option("#preset", label="faults/flipped-bit")
    page.wait_for_selector("#problem:has-text('a simulated batch has no bits')", timeout=LOADED_MS)
    page.select_option("#preset", index=0)
    page.wait_for_selector("thead button:has-text('power-loss 2')", timeout=LOADED_MS)


def test_the_page_is_accessible(page: Page) -> None:
    found = run_axe(page)
    assert found.violations == []
    assert found.passes > 10


def test_the_page_works_from_disk(browser: Browser, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "under" / "a" / "path" / "index.html").as_uri())
    page.wait_for_selector("#lanes td", timeout=LOADED_MS)
    assert page.get_attribute("#verdict", "data-digest") == play(page.input_value("#plan")).digest
    page.close()


def test_the_pages_files_are_at_most_10_megabytes(site: Path) -> None:
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 10_000_000
