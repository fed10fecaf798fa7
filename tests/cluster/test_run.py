"""Short runs from start to end on real processes: what they leave, and how they fail."""

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from laststand.chaos.drivers import make_driver
from laststand.chaos.play.run_directory import create_run_directory
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.runner import Run, RunStatus
from laststand.chaos.play.waiting import StepError
from laststand.chaos.scenario.scenario_file import load_scenario, read_scenario
from laststand.emulator.client.history import HISTORY_FILE, read_history
from laststand.emulator.core.events import (
    AnyEvent,
    FaultInjected,
    FileSealed,
    IncarnationEnd,
    IncarnationEnded,
    NodeStarted,
    NodeStopped,
    RunEnded,
    StepReached,
)
from laststand.emulator.core.history import FinalReadOperation, HistoryLine, OperationType, SendOperation
from laststand.emulator.core.switches import Switches
from laststand.emulator.storage.line_file import read_lines
from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.verdict.report import CheckStatus
from tests.verification.resealing import reseal

pytestmark = pytest.mark.cluster

HEAD = """\
name: test/short
cluster:
  brokers: 2
  properties: {broker.session.timeout.ms: 2000, broker.heartbeat.interval.ms: 250, replica.lag.time.max.ms: 1500}
topics: [{name: orders, replicas: [[0, 1], [1, 0]], min.insync.replicas: 1}]
workload: {producers: [{acks: all, rate: 200}, {acks: 0, rate: 20}, {acks: 1, rate: 20}], consumers: [{}]}
"""

_EVENT: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


class Played:
    """A run that is over, and what it left."""

    def __init__(self, directory: Path, run: Run) -> None:
        self.directory = directory
        self.problem = run.problem

    def events(self, name: str) -> list[AnyEvent]:
        return _EVENT.decode_lines(read_lines(self.directory / "events" / name))

    def history(self) -> list[HistoryLine]:
        return read_history(self.directory / HISTORY_FILE)


def run_of(store: Path, steps: str, *, on_status: Callable[[RunStatus], None], head: str = HEAD) -> Run:
    scenario = read_scenario(store / "short.yaml", f"{head}steps:\n{steps}")
    directory = create_run_directory(store / "store", scenario, now=datetime.now(UTC))
    order = RunOrder(
        scenario=scenario,
        directory=directory,
        era="kip-966",
        switches=Switches(),
        properties=scenario.properties,
        seed=1,
        toxiproxy=None,
    )
    return Run(order, make_driver=make_driver, on_status=on_status)


async def play(store: Path, steps: str, *, head: str = HEAD) -> Played:
    told: list[RunStatus] = []
    run = run_of(store, steps, on_status=told.append, head=head)
    await run.play()
    assert told
    return Played(run.order.directory, run)


async def test_clients_work_with_the_topic_that_a_step_makes(tmp_path: Path) -> None:
    head = re.sub(r"topics: .*", "topics: []", HEAD)
    steps = "  - create_topic: {name: refunds, replicas: [[0, 1]]}\n  - until: {acked: 20}\n  - until: {consumed: 20}\n"
    run = run_of(tmp_path, steps, on_status=lambda _: None, head=head)
    await run.play()
    assert run.problem is None
    finals = [line for line in Played(run.order.directory, run).history() if isinstance(line, FinalReadOperation)]
    assert [(line.topic, line.partition, line.error) for line in finals] == [("refunds", 0, None)]
    assert finals[0].end_offset is not None
    assert finals[0].end_offset >= 20


async def test_actions_of_a_user_during_a_barrier_are_in_the_plan(tmp_path: Path) -> None:
    steps = "  - until: {acked: 50, acks: all, per: partition}\n  - until: {partition: orders-1, leader: 0}\n"
    is_waiting = asyncio.Event()
    run = run_of(tmp_path, steps, on_status=lambda status: is_waiting.set() if status.step == 2 else None)
    [kill] = read_scenario(tmp_path / "asked.yaml", f"{HEAD}steps: [{{kill: {{node: 1}}}}]\n").steps
    with pytest.raises(StepError, match="not being played"):
        await run.play_beside(kill)
    playing = asyncio.create_task(run.play())
    async with asyncio.timeout(60):
        await is_waiting.wait()
        played = await run.play_beside(kill)
        await playing
    assert run.problem is None
    assert "was killed" in played.outcome.seen
    listed = (run.order.directory / "plan.yaml").read_text().partition("steps:\n")[2].splitlines()
    assert [line.split(":")[0].removeprefix("  - {") for line in listed] == ["until", "kill", "until"]
    events = Played(run.order.directory, run).events("harness-0.jsonl")
    assert [event.cause_id for event in events if isinstance(event, FaultInjected)] == ["step-3"]
    assert [event.step for event in events if isinstance(event, StepReached)] == [1, 3, 2]
    with pytest.raises(StepError, match="not being played"):
        await run.play_beside(kill)


def without_lines(name: str, kind: str) -> Callable[[Path], None]:
    """Events of a kind are gone, and all seals are renewed."""

    def alter(directory: Path) -> None:
        path = directory / "events" / name
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if json.loads(line)["type"] != kind))
        reseal(directory)

    return alter


def end_of_the_killed(directory: Path) -> None:
    path = directory / "events/1-0.packed"
    path.write_bytes(path.read_bytes()[:-5_000])


def metadata_log_and_plan(directory: Path) -> None:
    next(directory.glob("nodes/100/data/__cluster_metadata-0/*.log")).unlink()
    (directory / "cluster.yaml").unlink()


ALTERED: Mapping[str, Callable[[Path], None]] = {
    "a fencing": without_lines("100-0.jsonl", "BrokerFenced"),
    "the settling": without_lines("harness-0.jsonl", "ClusterSettled"),
    "the end of a killed process": end_of_the_killed,
    "the metadata log and the plan": metadata_log_and_plan,
}
"""Alterations of a run's evidence, by what somebody took out of it."""


def doubts_about(directory: Path) -> list[str]:
    report = judge(plan_run(0, open_run_directory(directory))).report
    assert [check.check_id for check in report.checks if check.status is CheckStatus.VIOLATED] == []
    return list(report.unknown_reasons)


async def test_a_run_leaves_its_whole_directory(tmp_path: Path) -> None:
    played = await play(
        tmp_path,
        "  - until: {acked: 50, acks: all, per: partition}\n"
        "  - kill: {node: leader(orders-1), as: victim}\n"
        "  - until: {partition: orders-1, leader: 0}\n"
        "  - start: {node: victim}\n"
        "  - until: {partition: all, isr: [0, 1]}\n",
    )
    assert played.problem is None
    present = {path.name for path in played.directory.iterdir()}
    assert present >= {"scenario.yaml", "plan.yaml", "cluster.yaml", "events", "history.packed", "nodes", "run.log"}
    assert (played.directory.parent / "latest").resolve() == played.directory
    files = {path.name for path in (played.directory / "events").iterdir()}
    assert files == {"harness-0.jsonl", "100-0.jsonl", "0-0.packed", "1-0.packed", "1-1.packed"}
    for name in files - {"1-0.packed"}:
        assert isinstance(played.events(name)[0], NodeStarted)
        assert [type(event) for event in played.events(name)[-2:]] == [NodeStopped, FileSealed], name
    ends = [event for event in played.events("harness-0.jsonl") if isinstance(event, IncarnationEnded)]
    assert [(int(end.ended_node), end.ended_incarnation, end.end) for end in ends] == [
        (1, 0, IncarnationEnd.KILLED),
        (0, 0, IncarnationEnd.STOPPED),
        (1, 1, IncarnationEnd.STOPPED),
        (100, 0, IncarnationEnd.STOPPED),
    ]
    assert all(end.metadata_offset for end in ends)
    plan = load_scenario(played.directory / "plan.yaml")
    assert [step.text.split(":")[0].strip("{") for step in plan.steps] == ["until", "kill", "until", "start", "until"]
    assert [step.text for step in plan.steps[1::2]] == ["{kill: {node: 1}}", "{start: {node: 1}}"]
    assert doubts_about(played.directory) == []
    for name, tamper in ALTERED.items():
        copy = Path(shutil.copytree(played.directory, tmp_path / name / "1"))
        tamper(copy)
        assert doubts_about(copy) != [], name


async def test_the_history_is_whole_and_says_what_became_of_every_record(tmp_path: Path) -> None:
    played = await play(tmp_path, "  - until: {acked: 100, acks: all}\n  - until: {acked: 10, acks: 1}\n")
    history = played.history()
    assert [operation.index for operation in history] == list(range(len(history)))
    sends = [operation for operation in history if isinstance(operation, SendOperation)]
    invoked = [send.operation_id for send in sends if send.type is OperationType.INVOKE]
    completed = [send.operation_id for send in sends if send.type is not OperationType.INVOKE]
    assert len(set(invoked)) == len(invoked)
    assert sorted(invoked) == sorted(completed)
    assert {send.acks for send in sends} == {-1, 0, 1}
    acked = [send for send in sends if send.type is OperationType.OK]
    assert all((send.base_offset is None) == (send.acks == 0) for send in acked)
    reads = [operation for operation in history if isinstance(operation, FinalReadOperation)]
    assert {(read.partition, read.type) for read in reads} == {(0, OperationType.OK), (1, OperationType.OK)}


async def test_a_missed_barrier_is_the_runs_problem_and_the_rest_is_still_played(tmp_path: Path) -> None:
    played = await play(
        tmp_path, "  - until: {partition: orders-0, leader: none, within: 200 ms}\n  - kill: {node: 0}\n"
    )
    assert played.problem is not None
    assert "not reached within 0.2 s; seen: orders-0 leader=0" in played.problem
    events = played.events("harness-0.jsonl")
    assert [event.problem for event in events if isinstance(event, RunEnded)] == [played.problem]
    assert not any(isinstance(event, FaultInjected) for event in events)
    assert any(isinstance(operation, FinalReadOperation) for operation in played.history())


async def test_a_fault_that_breaks_nothing_is_on_record_as_a_no_op(tmp_path: Path) -> None:
    played = await play(tmp_path, "  - stop: {node: 1}\n  - kill: {node: 1}\n")
    faults = [event for event in played.events("harness-0.jsonl") if isinstance(event, FaultInjected)]
    assert [(fault.fault, fault.effect is None) for fault in faults] == [("stop", False), ("kill", True)]
