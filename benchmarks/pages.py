"""The cost of pages: looks of the live view, and the report on a run of a million records.

``view_cpu``: the demo is played with a page that is watched, and without one; the figure is how much more processor
time the harness takes, as a part of one core. ``page_1m_*``: size of ``report.html``, how long it takes to draw it, and
to its first paint and until its first screen is whole in a browser (Chromium, the first of several loads left out).
Needs aiohttp, Playwright, a browser.
"""

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil

from benchmarks.cluster import BenchmarkError
from benchmarks.figure import Figure
from laststand.emulator.module_command import source_environment
from laststand.emulator.parent_death import die_with_parent

REPETITIONS: Final = 3
LOADS: Final = 5

_DEMO: Final = "kip-966/last-replica-standing"
_MILLION: Final = Path(__file__).with_name("million.yaml")
_ADDRESS: Final = re.compile(rb"live view: (\S+)")
_MEGABYTE: Final = 1_000_000
FIRST_PAINT: Final = """() => new Promise((resolve) => {
  const told = (list) => list.getEntriesByName("first-contentful-paint").map((entry) => resolve(entry.startTime));
  new PerformanceObserver(told).observe({ type: "paint", buffered: true });
})"""
"""A script that returns after how many ms a page had painted something."""

_ALL_PAINTED: Final = """() => new Promise((resolve) => {
  requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())));
})"""
"""A script that returns after how many ms a page that is loaded had painted all of its first screen."""


def measure() -> Iterator[Figure]:
    """Yields the figures.

    Raises:
        BenchmarkError: a run failed, or there is no browser.
    """
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
        shares = []
        for number in range(REPETITIONS):
            watched = asyncio.run(_demo(Path(directory) / f"watched-{number}", is_viewed=True))
            alone = asyncio.run(_demo(Path(directory) / f"alone-{number}", is_viewed=False))
            shares.append(100 * (watched - alone))
        yield Figure(name="view_cpu", unit="% of a core", values=tuple(shares))
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
        yield from _million(Path(directory))


async def _demo(out: Path, *, is_viewed: bool) -> float:
    """Returns the processor time of the harness, as a part of a core, while it plays the demo."""
    options = ["--no-verify", *(["--view"] if is_viewed else [])]
    harness = await _laststand("run", _DEMO, "--era", "kip-966", "--out", str(out), *options)
    begun_s, used_s = time.monotonic(), 0.0
    watching = None
    process = psutil.Process(harness.pid)
    async with asyncio.TaskGroup() as tasks:
        assert harness.stderr is not None
        reading = tasks.create_task(_address_in(harness.stderr))
        if is_viewed:
            watching = tasks.create_task(_watch(await reading))
        while harness.returncode is None:
            try:
                times = process.cpu_times()
            except psutil.Error:
                break
            used_s, seconds = times.user + times.system, time.monotonic() - begun_s
            await asyncio.sleep(0.1)
        if await harness.wait() != 0:
            raise BenchmarkError(f"the demo ended with {harness.returncode}")
        if watching is not None and await watching < 2:
            raise BenchmarkError("the page had no looks")
        reading.cancel()
    return used_s / seconds


async def _laststand(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *die_with_parent((sys.executable, "-m", "laststand.cli", *arguments)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **source_environment()},
    )


async def _address_in(lines: asyncio.StreamReader) -> str:
    """Returns the address that is printed; what is printed after it is read by nobody, and fits into the pipe."""
    async for line in lines:
        found = _ADDRESS.search(line)
        if found is not None:
            return found[1].decode()
    return ""


async def _watch(address: str) -> int:
    """Reads what a page is told until it is over; returns how many looks there were."""
    from aiohttp import ClientSession, ClientTimeout

    looks = 0
    async with (
        ClientSession(timeout=ClientTimeout(total=None), read_bufsize=1 << 24) as session,
        session.get(address.replace("/?", "/stream?")) as stream,
    ):
        while line := await stream.content.readline():
            looks += line.startswith(b"event: look")
    return looks


def _million(out: Path) -> Iterator[Figure]:
    begun_s = time.monotonic()
    asyncio.run(_run_million(out))
    yield Figure(name="page_1m_run_s", unit="s", values=(time.monotonic() - begun_s,))
    [run] = {path.parent.resolve() for path in out.rglob("verdict.json")}
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    acked = sum(counts["acked"] for counts in verdict["counts"])
    yield Figure(name="page_1m_records", unit="records acked", values=(float(acked),))
    drawn = []
    from laststand.emulator.report.page import write_report

    page = run / "report.html"
    for _ in range(REPETITIONS):
        begun_s = time.monotonic()
        write_report(run, page)
        drawn.append(time.monotonic() - begun_s)
    yield Figure(name="page_1m_draw_s", unit="s", values=tuple(drawn))
    yield Figure(name="page_1m_size", unit="MB", values=(page.stat().st_size / _MEGABYTE,))
    loads = list(page_loads(page))
    yield Figure(name="page_1m_first_paint_s", unit="s", values=tuple(first for first, _ in loads))
    yield Figure(name="page_1m_all_painted_s", unit="s", values=tuple(whole for _, whole in loads))


async def _run_million(out: Path) -> None:
    run = await _laststand("run", str(_MILLION), "--era", "kip-966", "--out", str(out))
    assert run.stderr is not None
    try:
        said = await run.stderr.read()
    finally:
        if run.returncode is None:
            run.send_signal(signal.SIGTERM)
    if await run.wait() != 0:
        raise BenchmarkError(f"the run ended with {run.returncode}: {said.decode()[-500:]}")


def page_loads(page: Path) -> Iterator[tuple[float, float]]:
    """Yields how many seconds each load of a page takes to its first paint, and until its first screen is whole.

    The load that warms up is left out.

    Raises:
        BenchmarkError: there is no browser.
    """
    from playwright.sync_api import sync_playwright

    from docs.screenshots import browser_program

    program = browser_program()
    if program is None:
        raise BenchmarkError("no browser: see docs/screenshots.py")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for load in range(LOADS + 1):
            tab = browser.new_page(viewport={"width": 1440, "height": 900})
            tab.goto(page.as_uri())
            whole_ms, first_ms = (float(tab.evaluate(script)) for script in (_ALL_PAINTED, FIRST_PAINT))
            tab.close()
            if load:
                yield first_ms / 1000, whole_ms / 1000
        browser.close()
