"""Processes that play runs in virtual time: a run's record, what stops it, and what becomes of the processes."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from laststand.chaos.play.run_directory import create_run_directory_at
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.chaos.suite.virtual_time import PlayerLostError, VirtualTimePlayers
from laststand.emulator.core.switches import era_switches
from laststand.emulator.plan.drivers import DriverName

SCENARIO = """\
name: test/virtual-time
cluster: {brokers: 1}
topics: [{name: orders, replicas: [[0]]}]
workload: {producers: [{acks: all, rate: 100}]}
steps:
  - until: {acked: RECORDS, within: 1000000 s}
"""
QUICK, ENDLESS = 1, 100_000_000

OWNER = """\
import asyncio, sys
from pathlib import Path
from laststand.chaos.suite.virtual_time import VirtualTimePlayers
from tests.unit.chaos.suite.test_virtual_time import ENDLESS, order

async def main():
    players = VirtualTimePlayers(1)
    playing = asyncio.create_task(players.play(order(Path(sys.argv[1]), ENDLESS), timeout_s=None))
    await asyncio.sleep(0)
    print("playing", flush=True)
    await playing

if __name__ == "__main__":
    asyncio.run(main())
"""


def order(directory: Path, records: int) -> RunOrder:
    scenario = read_scenario(Path("virtual-time.yaml"), SCENARIO.replace("RECORDS", str(records)))
    return RunOrder(
        scenario=scenario,
        directory=create_run_directory_at(directory, scenario),
        era="kip-966",
        switches=era_switches("kip-966"),
        properties=(),
        seed=7,
        toxiproxy=None,
        driver=DriverName.SIMULATOR,
    )


@pytest.fixture
def players() -> Iterator[VirtualTimePlayers]:
    made = VirtualTimePlayers(1)
    yield made
    made.close()


def problem_of(directory: Path) -> str | None:
    """Reads why a run's plan did not reach its end."""
    lines = (directory / "run.log").read_text(encoding="utf-8").splitlines()
    return next((line for line in lines if " ERROR " in line), None)


async def test_a_run_leaves_its_record(players: VirtualTimePlayers, tmp_path: Path) -> None:
    assert await players.play(order(tmp_path / "run", QUICK), timeout_s=60) is None
    plan = yaml.safe_load((tmp_path / "run" / "plan.yaml").read_text(encoding="utf-8"))
    assert plan["name"] == "test/virtual-time"
    assert problem_of(tmp_path / "run") is None


async def test_a_run_that_takes_too_long_is_stopped_and_the_next_one_is_played(
    players: VirtualTimePlayers, tmp_path: Path
) -> None:
    await players.play(order(tmp_path / "late", ENDLESS), timeout_s=0.5)
    assert "stopped after 0.5 s" in (problem_of(tmp_path / "late") or "")
    await players.play(order(tmp_path / "next", QUICK), timeout_s=None)
    assert problem_of(tmp_path / "next") is None


async def test_a_process_that_ends_by_itself_is_reported(players: VirtualTimePlayers, tmp_path: Path) -> None:
    playing = asyncio.create_task(players.play(order(tmp_path / "run", ENDLESS), timeout_s=None))
    await asyncio.sleep(0)
    (worker,) = _workers(os.getpid())
    worker.kill()
    with pytest.raises(PlayerLostError, match="run was to be played"):
        await playing


def test_a_process_ends_with_its_owner(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "playing\n"
        workers = _workers(owner.pid)
        assert workers
        owner.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs(workers, timeout=30)
        assert not alive


def _workers(owner_pid: int) -> list[psutil.Process]:
    children = psutil.Process(owner_pid).children()
    return [child for child in children if any("spawn_main" in part for part in child.cmdline())]
