"""The command line, killed or interrupted at several moments: nothing is left running, and what was written is kept."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec
import psutil
import pytest

from laststand.chaos.scenario.scenario_file import load_scenario
from laststand.emulator.client.history import history_of, read_history
from laststand.emulator.core.events import AnyEvent, FileSealed, NodeStopped, RunEnded
from tests.cluster.survivors import DEADLINE_S, MARK, await_descendants, await_end, survivors

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

ROOT = Path(__file__).parents[2]

SCENARIO = """\
name: test/interrupted
cluster:
  brokers: 2
  properties: {broker.session.timeout.ms: 2000, broker.heartbeat.interval.ms: 250}
topics: [{name: orders, replicas: [[0, 1]], min.insync.replicas: 1}]
workload: {producers: [{acks: all, rate: 200}], consumers: [{}]}
steps:
  - until: {acked: 50, acks: all}
  - cut: {from: client, to: 1}
"""
HOLD = """\
  - pause: {node: follower}
  - until: {partition: orders-0, isr: [], within: 100 s}
"""

NODES_START = "start the cluster"
NODE_IS_PAUSED = "pause: {node: follower}} ->"
SPARK_IS_AWAITED = "] verify"

MOMENTS = [
    pytest.param(NODES_START, "", "spark", id="nodes start"),
    pytest.param(NODE_IS_PAUSED, HOLD, "here", id="a node is paused"),
    pytest.param(SPARK_IS_AWAITED, "", "spark", id="spark is awaited"),
]
"""Moments: the words of the program then, the steps that the scenario needs to get there and stay, and the judge."""


class Campaign:
    """A running ``laststand run``."""

    def __init__(self, process: "subprocess.Popen[str]", stderr: IO[str], mark: str, store: Path) -> None:
        self.process = process
        self.mark = mark
        self._stderr = stderr
        self._store = store
        self._told: list[str] = []

    @property
    def run(self) -> Path:
        return self._store / "test/interrupted/latest"

    @property
    def descendants(self) -> list[psutil.Process]:
        return [process for process in survivors(self.mark) if process.pid != self.process.pid]

    def read_until(self, text: str) -> None:
        for line in self._stderr:
            self._told.append(line)
            if text in line:
                return
        pytest.fail(f"the program ended with {self.process.wait()} and never said {text!r}:\n{''.join(self._told)}")

    def read_rest(self) -> str:
        return self._stderr.read()


@contextmanager
def campaign(
    directory: Path, more_steps: str, *, judge: str = "spark", ctrl_c: signal.Handlers = signal.SIG_DFL
) -> Iterator[Campaign]:
    path, store, mark = directory / "scenario.yaml", directory / "store", uuid.uuid4().hex
    path.write_text(SCENARIO + more_steps)
    command = [sys.executable, "-m", "laststand.cli", "run", str(path), "--out", str(store), "--judge", judge]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), MARK: mark}
    # What a program does with a signal at first, it has from its parent.
    before = signal.signal(signal.SIGINT, ctrl_c)
    hangup_before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
        )
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGHUP, hangup_before)
    with process:
        assert process.stderr is not None
        try:
            yield Campaign(process, process.stderr, mark, store)
        finally:
            process.kill()


@pytest.mark.parametrize(("moment", "more_steps", "judge"), MOMENTS)
def test_nothing_outlives_a_program_that_is_killed(moment: str, more_steps: str, judge: str, tmp_path: Path) -> None:
    with campaign(tmp_path, more_steps, judge=judge) as played:
        played.read_until(moment)
        assert await_descendants(played.mark, of=played.process.pid), "nobody could be left behind"
        played.process.kill()
        played.process.wait()
        assert await_end(played.mark) == []


@pytest.mark.parametrize(
    ("moment", "more_steps", "signal_number", "judge"),
    [
        pytest.param(NODES_START, "", signal.SIGINT, "spark", id="nodes start"),
        pytest.param(NODE_IS_PAUSED, HOLD, signal.SIGINT, "here", id="a node is paused"),
        pytest.param(SPARK_IS_AWAITED, "", signal.SIGINT, "spark", id="spark is awaited"),
        # What a signal does is the same at every moment.
        pytest.param(NODE_IS_PAUSED, HOLD, signal.SIGTERM, "here", id="terminated"),
        pytest.param(NODE_IS_PAUSED, HOLD, signal.SIGHUP, "here", id="hung up"),
    ],
)
def test_an_interrupted_program_ends_its_processes_first(
    moment: str, more_steps: str, signal_number: signal.Signals, judge: str, tmp_path: Path
) -> None:
    with campaign(tmp_path, more_steps, judge=judge) as played:
        played.read_until(moment)
        assert await_descendants(played.mark, of=played.process.pid), "nobody could be left behind"
        played.process.send_signal(signal_number)
        assert played.process.wait(DEADLINE_S) == 128 + signal_number
        assert played.descendants == []
        told = played.read_rest()
        assert told.endswith("interrupted\n")
        assert f"not judged: {played.run.resolve()}" in told
        assert "Traceback" not in told
        check_kept(played.run, interrupted=moment != SPARK_IS_AWAITED, has_played=bool(more_steps))


def test_a_job_in_the_background_is_ended_in_order_too(tmp_path: Path) -> None:
    with campaign(tmp_path, HOLD, judge="here", ctrl_c=signal.SIG_IGN) as played:
        played.read_until(NODE_IS_PAUSED)
        played.process.send_signal(signal.SIGINT)
        played.process.send_signal(signal.SIGTERM)
        assert played.process.wait(DEADLINE_S) == 128 + signal.SIGTERM
        assert played.descendants == []
        told = played.read_rest()
        assert told.endswith("interrupted\n")
        assert "Traceback" not in told
        check_kept(played.run, interrupted=True, has_played=True)


def check_kept(run: Path, *, interrupted: bool, has_played: bool) -> None:
    events = msgspec.json.Decoder(AnyEvent).decode_lines((run / "events/harness-0.jsonl").read_bytes())
    problem = next(event.problem for event in events if isinstance(event, RunEnded))
    assert problem == ("interrupted" if interrupted else None)
    assert [type(event) for event in events[-2:]] == [NodeStopped, FileSealed]
    assert not (run / "verdict.json").exists()
    if has_played:
        played = [step.text for step in load_scenario(run / "plan.yaml").steps]
        assert played[1:] == ["{cut: {from: client, to: 1}}", "{pause: {node: 1}}"]
        assert read_history(history_of(run))
