"""The playground in headless Chromium, from an empty cache and a server on loopback.

``playground_first_picture_s``: from the request for the page until the first plan's lanes are drawn.
``playground_demo_s``: from the choice of the demo's scenario until its lanes are. Needs npm, Playwright, a browser.
"""

import functools
import http.server
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.cluster import BenchmarkError
from benchmarks.figure import Figure

REPETITIONS: Final = 5
_DEMO: Final = "kip-966/last-replica-standing"
_TIMEOUT_MS: Final = 120_000


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def measure() -> Iterator[Figure]:
    """Yields the figures.

    Raises:
        BenchmarkError: there is no browser, or Pyodide cannot be had.
    """
    from docs.playground.build import build

    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as name:
        site = Path(name)
        try:
            build(site)
        except (OSError, subprocess.CalledProcessError) as error:
            raise BenchmarkError(f"Pyodide cannot be had: {error}") from error
        handler = functools.partial(_Silent, directory=site)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            pictured, played = zip(*_looks(f"http://127.0.0.1:{server.server_port}/"), strict=True)
            server.shutdown()
    yield Figure(name="playground_first_picture_s", unit="s", values=tuple(pictured))
    yield Figure(name="playground_demo_s", unit="s", values=tuple(played))


def _looks(address: str) -> Iterator[tuple[float, float]]:
    """Yields the seconds until the first picture and of the demo, each time with an empty cache."""
    from playwright.sync_api import sync_playwright

    from docs.screenshots import browser_program

    program = browser_program()
    if program is None:
        raise BenchmarkError("no browser")
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=["--no-sandbox"]) as browser,
    ):
        for _ in range(REPETITIONS):
            with browser.new_context() as context:
                page = context.new_page()
                began_s = time.monotonic()
                page.goto(address)
                page.wait_for_selector("#lanes td", timeout=_TIMEOUT_MS)
                pictured_s = time.monotonic()
                page.select_option("#preset", label=_DEMO)
                page.wait_for_selector("thead button:has-text('power_loss')", timeout=_TIMEOUT_MS)
                yield pictured_s - began_s, time.monotonic() - pictured_s
