"""The live page of a run on processes: who may click, and that the plan has what was clicked."""

import asyncio
import json
import re
import subprocess
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from aiohttp import ClientSession, ClientTimeout

from laststand.chaos.scenario.scenario_file import read_scenario
from tests.cluster.test_standing import Terminal, open_terminal

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SCENARIO = """\
name: test/clicked
cluster:
  brokers: 2
  properties: {broker.session.timeout.ms: 4000, broker.heartbeat.interval.ms: 250, replica.lag.time.max.ms: 2000}
topics: [{name: orders, replicas: [[0, 1]], min.insync.replicas: 1}]
workload: {producers: [{acks: all, rate: 100}]}
steps:
  - until: {acked: 50, acks: all, per: partition}
  - until: {partition: orders-0, leader: 0, isr: [0], within: 150 s}
"""
PAUSE = "{pause: {node: 1}}"
PAUSED = '{"seen": "all threads stand still"}'
DEADLINE_S = 120.0
ADDRESS = re.compile(r"live view: (http://\S+)/\?token=(\S+)")


class Viewed:
    """A run with a page that is being played: the lines that it prints, and the address among them."""

    def __init__(self, run: subprocess.Popen[str]) -> None:
        self.run = run
        self.printed: list[str] = []
        self.is_waiting = threading.Event()
        assert run.stderr is not None
        self._reader = threading.Thread(target=self._read, args=(run.stderr,), daemon=True)
        self._reader.start()

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            self.printed.append(line)
            if " 1/2 " in line:
                self.is_waiting.set()
        self.is_waiting.set()

    @property
    def address(self) -> tuple[str, str]:
        """Origin and token of the page."""
        [found] = [found for line in self.printed if (found := ADDRESS.search(line))]
        return found[1], found[2]

    def end(self) -> None:
        """Waits until the run is over; it must have succeeded."""
        assert self.run.wait(DEADLINE_S) == 0, "".join(self.printed)

    def join(self) -> None:
        """Waits until everything that was printed is read."""
        self._reader.join(DEADLINE_S)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with open_terminal(tmp_path) as terminal:
        yield terminal


@pytest.fixture
def viewed(terminal: Terminal) -> Iterator[Viewed]:
    """A run that has played its first step, and waits for a click."""
    (terminal.directory / "clicked.yaml").write_text(SCENARIO)
    command = ("run", "clicked.yaml", "--era", "kip-966", "--view", "--no-verify", "--out", "store")
    with terminal.start(*command) as run:
        viewed = Viewed(run)
        try:
            assert viewed.is_waiting.wait(DEADLINE_S)
            yield viewed
        finally:
            run.kill()
            viewed.join()


async def click(session: ClientSession, origin: str, **headers: str) -> tuple[int, str]:
    body = json.dumps({"stage": 0, "step": PAUSE})
    async with session.post(f"{origin}/actions", data=body, headers=headers) as answer:
        return answer.status, await answer.text()


async def offered(session: ClientSession, origin: str, token: str) -> str:
    """Returns the panel of the first look in which a pause of the follower is offered."""
    async with session.get(f"{origin}/stream", params={"token": token}) as stream:
        async for line in stream.content:
            if line.startswith(b"data: {"):
                panel = str(json.loads(line.removeprefix(b"data: "))["stages"][0]["panel"])
                if PAUSE in panel:
                    return panel
    raise AssertionError("the pause was never offered")


async def test_clicks_during_a_barrier_are_in_the_plan(viewed: Viewed, terminal: Terminal) -> None:
    origin, token = viewed.address
    async with ClientSession(timeout=ClientTimeout(total=DEADLINE_S), read_bufsize=1 << 22) as session:
        for page in ("/", "/stream"):
            async with session.get(f"{origin}{page}", params={"token": f"{token}x"}) as refused:
                assert refused.status == 403, page
        panel = await offered(session, origin, token)
        assert "orders-0" in panel
        for headers in (
            {"Origin": origin, "X-Laststand-Token": uuid.uuid4().hex},
            {"Origin": origin},
            {"Origin": "http://elsewhere.example", "X-Laststand-Token": token},
            {"X-Laststand-Token": token},
        ):
            status, _ = await click(session, origin, **headers)
            assert status == 403, headers
        status, said = await click(session, origin, **{"Origin": origin, "X-Laststand-Token": token})
        assert (status, said) == (200, PAUSED)
    await asyncio.to_thread(viewed.end)
    [plan] = {path.resolve() for path in (terminal.directory / "store").rglob("plan.yaml")}
    steps = [line.strip() for line in plan.read_text().partition("steps:\n")[2].splitlines()]
    assert [step.split(":")[0] for step in steps] == ["- {until", "- {pause", "- {until"]
    assert steps[1].startswith(f"- {PAUSE} #")
    read_scenario(plan, plan.read_text())
