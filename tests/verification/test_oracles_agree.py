"""Two oracles judge the same runs, independently: one while they go on, one by what they left. They answer alike.

A promise that both judge is promised to both or to neither. What verification finds, the simulator's oracle found too,
and the other way round where the guarantee held. Beyond the guarantee a finding may be excused: D2 and D15 promise
nothing after an unclean election. What else one of them cannot see is listed in ``agreement``, with the reason.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import pytest

from laststand.chaos.campaign import play_runs
from laststand.chaos.play.run_directory import create_run_directory
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.scenario.scenario_file import SCENARIOS, load_scenario
from laststand.emulator.core.eras import era_rules, rule_texts
from laststand.emulator.core.events import Event
from laststand.emulator.core.switches import ERAS, Switches, era_switches
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.actions import DeleteRecords
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.observer import ClientRecord, Observer
from laststand.emulator.simulator.oracle.oracle import Oracle
from laststand.emulator.simulator.run.kinds import make_checks
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from laststand.emulator.verification.verdict.report import CheckStatus
from tests.verification.agreement import Played, different_findings, found_by
from tests.verification.conftest import Judge

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SEEDS = range(2)
Attach = Callable[[SimulatedCluster], None]


class _Both:
    """A observer beside an oracle."""

    def __init__(self, observer: Observer, oracle: Oracle) -> None:
        self._observers: tuple[Observer, ...] = (observer, oracle)

    def happened(self, node_id: NodeId, incarnation: int, event: Event, *, now_ms: int) -> None:
        for observer in self._observers:
            observer.happened(node_id, incarnation, event, now_ms=now_ms)

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        for observer in self._observers:
            observer.recorded(client, record, now_ms=now_ms)

    def stepped(self, node_id: NodeId) -> None:
        for observer in self._observers:
            observer.stepped(node_id)


def order(scenario: Scenario, era: str, store: Path) -> RunOrder:
    return RunOrder(
        scenario=scenario,
        directory=create_run_directory(store, scenario, now=datetime(2026, 1, 1, tzinfo=UTC)),
        era=era,
        switches=era_rules(era),
        properties=scenario.properties,
        seed=1,
        toxiproxy=None,
        driver=DriverName.SIMULATOR,
    )


def play_scenarios(store: Path, monkeypatch: pytest.MonkeyPatch) -> dict[Path, Played]:
    """Plays bundled scenarios in each era of their expectations, with the simulator's oracle watching.

    Those whose producers send all the time are left out: they take minutes, and lose in the same ways.
    """
    oracles: list[Oracle] = []
    build = SimulatedCluster.__init__

    def build_watched(
        cluster: SimulatedCluster,
        *,
        switches: Switches,
        observer: Observer,
        attach: Attach | None = None,
        **arguments: object,
    ) -> None:
        oracle = Oracle(make_checks(switches, lambda _alarm: None))
        oracles.append(oracle)

        def attach_both(attached: SimulatedCluster) -> None:
            oracle.attach(attached)
            if attach is not None:
                attach(attached)

        watched = _Both(observer, oracle)
        build(cluster, switches=switches, observer=watched, attach=attach_both, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(SimulatedCluster, "__init__", build_watched)
    runs: dict[Path, Played] = {}
    found = (load_scenario(path) for path in sorted(SCENARIOS.glob("*/*.yaml")))
    scenarios = [
        scenario
        for scenario in found
        if not any(producer.rate for producer in scenario.producers)
        # What steps want to be deleted nobody tells an oracle that only watches.
        and not any(isinstance(step.action, DeleteRecords) for step in scenario.steps)
    ]
    for scenario, era in chain.from_iterable(((scenario, era) for era, _ in scenario.expect) for scenario in scenarios):
        played = order(scenario, era, store / era)
        play_runs([played], on_status=lambda _status: None)
        oracle = oracles.pop()
        oracle.finish()
        runs[played.directory] = Played(switches=rule_texts(played.switches), found=found_by(oracle))
    assert not oracles
    return runs


def play_schedules(store: Path) -> dict[Path, Played]:
    """Plays and writes a few random schedules of each era."""
    runs: dict[Path, Played] = {}
    for era in ERAS:
        for seed in SEEDS:
            directory = store / f"{era}-{seed}"
            simulation = write_run(explore(seed, SweepOptions(era=era)).plan, directory, name=directory.name)
            runs[directory] = Played(switches=rule_texts(era_switches(era)), found=found_by(simulation.oracle))
    return runs


def test_both_oracles_answer_alike(tmp_path: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {**play_schedules(tmp_path / "schedules"), **play_scenarios(tmp_path / "scenarios", monkeypatch)}
    reports = judge({str(directory): directory for directory in runs})
    wrong = [
        f"{directory.relative_to(tmp_path)}: {sentence}"
        for directory, played in runs.items()
        for sentence in different_findings(played, reports[str(directory)])
    ]
    assert wrong == [], "\n".join(wrong)
    statuses = [check.status for report in reports.values() for check in report.checks]
    assert {CheckStatus.VIOLATED, CheckStatus.NOT_PROMISED, CheckStatus.NOT_ASKED} <= set(statuses)
