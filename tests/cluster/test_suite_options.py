"""Options that decide how much of a suite is played, as a user types them; a program's own loop."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from laststand.chaos.suite.player import BATCH
from laststand.chaos.suite.results import read_report
from tests.cluster.test_standing import ROOT, Terminal, open_terminal

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(300)]

SCENARIO: Final = """\
name: {name}
cluster: {{brokers: 1}}
topics: [{{name: orders, replicas: [[0]]}}]
workload: {{producers: [{{acks: all, rate: 200}}]}}
steps:
  - until: {{acked: 50}}
expect:
  kip-966: {{verdict: valid, lost: "{lost}"}}
"""

PROGRAM: Final = """\
import asyncio
import laststand

async def main():
    beside = asyncio.create_task(asyncio.sleep(0, "the loop goes on"))
    report = await laststand.run_async("kept.yaml", driver="simulator", store="store")
    print(report.verdict.value, report.outcome.value, await beside)

asyncio.run(main())
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """With a scenario that passes, one that does not, and a program."""
    (tmp_path / "kept.yaml").write_text(SCENARIO.format(name="kept", lost="0"))
    (tmp_path / "lost.yaml").write_text(SCENARIO.format(name="lost", lost=">0"))
    with open_terminal(tmp_path) as terminal:
        yield terminal


def test_until_failure_ends_with_the_first_cell_that_does_not_pass_or_with_the_repetitions(terminal: Terminal) -> None:
    common = ("--driver", "simulator", "--judge", "here", "--until-failure", "--jobs", "1", "--no-report")
    said = terminal.type("run", "lost.yaml", *common, "--results", "r.json", code=1)
    assert "failed: lost kip-966 #1" in said
    assert 1 <= len(read_report(terminal.directory / "r.json").cells) <= 1 + BATCH
    said = terminal.type("run", "kept.yaml", *common, "--repeat", "2", "--seed", "7")
    assert "2 cells: 2 as expected" in said
    assert "seeds: 7 (#1), 8 (#2)" in said


def test_a_program_plays_in_its_own_loop(terminal: Terminal) -> None:
    played = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=terminal.directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert played.stdout == "valid met the loop goes on\n", played.stderr
