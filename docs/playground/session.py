"""Plays plans for the playground: the simulator as it is, and a picture of the cluster after each action, as JSON.

It runs in a browser (Pyodide) and on the command line alike, and imports nothing that a browser lacks. The verdict is
the simulator's own oracle's.
"""

import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import msgspec

from docs.playground.scenario_play import CountingJournal, plan_of, play_steps, refusal_of
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.emulator.core.eras import ALL_ERAS, era_rules, is_rule, rule_texts
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.plan.lines import format_action
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.plan.plan import PlanLineError, format_plan, parse_numbered
from laststand.emulator.plan.yaml_cursor import ScenarioError
from laststand.emulator.simulator.nodes.nodes import BrokerNode, Node
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from laststand.emulator.simulator.search.shrink import goal_of, shrink

_OF_SCENARIOS: Final = re.compile(r"^steps:", re.MULTILINE)
"""A line that every scenario has, and no plan."""


class EpochSpan(msgspec.Struct, frozen=True, array_like=True):
    """The records of one leader epoch in a log; offsets inclusive."""

    leader_epoch: int
    first: int
    last: int


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's log of a partition; offsets as Kafka counts them.

    Attributes:
        role: ``leader`` or ``follower``, as the broker itself believes; ``None`` without a process or a role.
        leader_epoch: in which it has that role; -1 without one.
        log_start_offset, high_watermark, log_end_offset: of the log; the high watermark is -1 without a process.
        synced_end_offset: below it everything survives a loss of power.
        spans: what it holds, by epoch.
    """

    role: str | None
    leader_epoch: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    synced_end_offset: int
    spans: tuple[EpochSpan, ...]


class PartitionPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A partition as the controller committed it, and its replicas by broker; without a leader where it is deleted.

    Everything below ``promised_end_offset`` was acknowledged with acks=all at some time.
    """

    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    is_recovering: bool
    replicas: dict[str, Replica]
    promised_end_offset: int


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster after an action.

    Attributes:
        text: of the action; ``start`` and ``heal and read`` frame the plan.
        line: of the plan's text, from 1 on; 0 for the two that the plan does not have.
        took_effect: whether it was possible at that moment.
        now_ms: virtual time.
        nodes: by node, ``running``, ``paused``, ``fenced`` or ``down``.
        broken: links that are cut, as ``0->1``.
        partitions: by name.
        acks: batches acknowledged with acks=all so far.
        missing: records acknowledged with acks=all that the leader lacks, or, while nobody leads, every broker.
        alarms: checks that fired during it, as sentences; those that break the guarantee begin with ``!``.
        events: what nodes and the harness recorded during it.
    """

    text: str
    line: int
    took_effect: bool
    now_ms: int
    nodes: dict[str, str]
    broken: tuple[str, ...]
    partitions: dict[str, PartitionPicture]
    acks: int
    missing: int
    alarms: tuple[str, ...]
    events: tuple[str, ...]


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that was played, or why it cannot be.

    Attributes:
        problem: what is wrong with the text; the rest is empty then.
        line: where, from 1 on; 0 if that is no line.
        verdict: in the words of ``laststand replay``.
        digest: of all events, as ``python -m docs.playground.session PLAN`` prints it.
        frames: one for the start, one for each action, one for the end.
    """

    problem: str | None = None
    line: int = 0
    verdict: str = ""
    digest: str = ""
    frames: tuple[Frame, ...] = ()


class _Camera:
    """Takes the pictures of one run."""

    def __init__(self, simulation: Simulation, journal: Journal) -> None:
        self._simulation = simulation
        self._journal = journal
        self._seen_events = 0
        self._seen_alarms = 0

    def frame(self, text: str, *, line: int, took_effect: bool = True) -> Frame:
        """Returns the picture of this moment."""
        simulation, cluster = self._simulation, self._simulation.cluster
        entries = self._journal.entries[self._seen_events :]
        alarms = simulation.oracle.alarms[self._seen_alarms :]
        self._seen_events, self._seen_alarms = len(self._journal.entries), len(simulation.oracle.alarms)
        findings = set(simulation.findings())
        return Frame(
            text=text,
            line=line,
            took_effect=took_effect,
            now_ms=cluster.now_ms,
            nodes=dict(self._nodes()),
            broken=tuple(sorted(map(str, cluster.network.broken))),
            partitions={str(name): self._partition(name) for name in simulation.plan.partitions},
            acks=simulation.oracle.tally.acks,
            missing=sum(map(self._missing, simulation.plan.partitions)),
            alarms=tuple(f"{'!' if alarm in findings else ''}{alarm.check_id}: {alarm.sentence}" for alarm in alarms),
            events=tuple(f"{entry.now_ms} ms  {entry.node_id}  {entry.event.describe()}" for entry in entries),
        )

    def _nodes(self) -> Iterator[tuple[str, str]]:
        cluster = self._simulation.cluster
        yield str(CONTROLLER), _state_of(cluster.metadata_node)
        for node in cluster.nodes.values():
            registration = cluster.image.brokers.get(node.broker_id)
            is_fenced = registration is not None and registration.fenced
            state = _state_of(node)
            yield str(node.node_id), "fenced" if is_fenced and state == "running" else state

    def _missing(self, name: TopicPartition) -> int:
        cluster, truth = self._simulation.cluster, self._simulation.oracle.truths[name]
        state = cluster.state(name)
        leader = None if state is None else state.leader
        asked = cluster.nodes.values() if leader is None else (cluster.nodes[leader],)
        held = {
            (batch.base_offset, batch.crc)
            for node in asked
            if (log := node.disk.logs.get(name)) is not None
            for batch in log.batches
            if batch.last_offset >= log.log_start_offset
        }
        return sum(
            each.last_offset - each.base_offset + 1
            for each in truth.ever_acked.values()
            if (each.base_offset, each.crc) not in held and not truth.is_deleted(each, each.last_offset)
        )

    def _partition(self, name: TopicPartition) -> PartitionPicture:
        cluster = self._simulation.cluster
        state = cluster.state(name)
        promised = self._simulation.oracle.truths[name].ever_acked.values()
        return PartitionPicture(
            leader=None if state is None else state.leader,
            leader_epoch=-1 if state is None else state.leader_epoch,
            isr=() if state is None else state.isr,
            elr=() if state is None else state.elr,
            is_recovering=state is not None and bool(state.leader_recovery_state.value),
            replicas={
                str(node.broker_id): _replica(node, name) for node in cluster.nodes.values() if name in node.disk.logs
            },
            promised_end_offset=max((each.last_offset + 1 for each in promised), default=0),
        )


def _state_of(node: Node[Any]) -> str:
    if node.core is None:
        return "down"
    return "paused" if node.is_paused else "running"


def _replica(node: BrokerNode, name: TopicPartition) -> Replica:
    log = node.disk.logs[name]
    hosted = None if node.broker is None else node.broker.partition(name)
    spans = []
    for leader_epoch, batches in groupby(log.batches, key=lambda batch: batch.leader_epoch):
        held = list(batches)
        spans.append(EpochSpan(leader_epoch, held[0].base_offset, held[-1].last_offset))
    return Replica(
        role=None if hosted is None or hosted.leader_epoch < 0 else "leader" if hosted.is_leader else "follower",
        leader_epoch=-1 if hosted is None else hosted.leader_epoch,
        log_start_offset=log.log_start_offset,
        high_watermark=-1 if hosted is None else hosted.log.high_watermark,
        log_end_offset=log.log_end_offset,
        synced_end_offset=log.batches[log.synced - 1].last_offset + 1 if log.synced else log.log_start_offset,
        spans=tuple(spans),
    )


def play(text: str) -> Played:
    """Returns what a plan leads to, action by action, or a scenario, step by step."""
    return _play_scenario(text) if is_scenario(text) else _play_plan(text)


def is_scenario(text: str) -> bool:
    """Returns whether a text is a scenario, or else a plan."""
    return _OF_SCENARIOS.search(text) is not None


def _play_scenario(text: str) -> Played:
    try:
        scenario = read_scenario(Path("scenario.yaml"), text)
        refused = refusal_of(scenario)
        if refused is not None:
            return Played(problem=refused)
        journal = CountingJournal(scenario)
        simulation = Simulation(plan_of(scenario), journal=journal)
        simulation.begin()
    except ScenarioError as error:
        return Played(problem=str(error), line=error.line)
    except EmulatorError as error:
        return Played(problem=str(error))
    camera = _Camera(simulation, journal)
    frames = [camera.frame("start", line=0)]
    try:
        for step, seen, took_effect in play_steps(simulation, scenario, journal):
            frames.append(camera.frame(f"{step.text}: {seen}", line=step.line, took_effect=took_effect))
    except EmulatorError as error:
        played = _finish(simulation, camera, frames, journal)
        return msgspec.structs.replace(played, verdict=f"unknown: a step did not come to its end: {error}")
    return _finish(simulation, camera, frames, journal)


def _finish(simulation: Simulation, camera: _Camera, frames: list[Frame], journal: Journal) -> Played:
    simulation.finish()
    frames.append(camera.frame("heal and read", line=0))
    simulation.stop()
    return Played(verdict=str(simulation.judgement()), digest=journal.digest(), frames=tuple(frames))


def _play_plan(text: str) -> Played:
    try:
        numbered = parse_numbered(text)
        simulation = Simulation(numbered.plan, journal=(journal := Journal()))
        simulation.begin()
    except PlanLineError as error:
        return Played(problem=str(error), line=error.line)
    except EmulatorError as error:
        return Played(problem=str(error))
    camera = _Camera(simulation, journal)
    frames = [camera.frame("start", line=0)]
    for action, line in zip(numbered.plan.actions, numbered.action_lines, strict=True):
        took_effect = simulation.play(action)
        frames.append(camera.frame(format_action(action), line=line, took_effect=took_effect))
    return _finish(simulation, camera, frames, journal)


def play_as_json(text: str) -> str:
    """Returns ``Played`` as JSON."""
    return msgspec.json.encode(play(text)).decode()


class Explored(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule of one seed: its plan where it broke a promise, shrunk."""

    seed: int
    profile: str
    acks: int
    finding: str | None = None
    plan: str | None = None


def explore_as_json(seed: int, era: str, switches: str) -> str:
    """Plays the schedule of a seed; returns ``Explored`` as JSON.

    Args:
        seed: of the schedule.
        era: whose rules hold.
        switches: rules that differ, as ``elr=off hw_requires_min_isr=off``.
    """
    changed = tuple((name, value) for name, _, value in (word.partition("=") for word in switches.split()))
    schedule = explore(seed, SweepOptions(era=era, switches=changed))
    explored = Explored(seed=seed, profile=schedule.profile, acks=schedule.outcome.acks)
    if schedule.outcome.findings:
        shrunk = shrink(schedule.plan, goal_of(schedule.outcome.findings), trials_max=300)
        plan, finding = (
            (schedule.plan, schedule.outcome.findings[0]) if shrunk is None else (shrunk.plan, shrunk.finding)
        )
        explored = msgspec.structs.replace(explored, finding=str(finding), plan=format_plan(plan))
    return msgspec.json.encode(explored).decode()


def rules_as_json() -> str:
    """Returns the rules of every era, ``{era: {rule: value}}``, as JSON; eras with ZooKeeper have more of them."""
    found = {
        era: {name: value for name, value in rule_texts(era_rules(era)).items() if is_rule(name)} for era in ALL_ERAS
    }
    return msgspec.json.encode(found).decode()


if __name__ == "__main__":
    played = play(Path(sys.argv[1]).read_text())
    sys.stdout.write(f"{played.problem or f'{played.digest} {played.verdict}'}\n")
