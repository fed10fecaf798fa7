"""The bundled scenarios in virtual time: each is played and judged once in a run of the tests, by whoever asks first.

All workers share the folder that it is in; a worker that asks while another one plays waits for the end of that.
"""

import fcntl
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from unittest.mock import patch

from laststand.chaos.campaign import play_runs
from laststand.chaos.play.expressible import not_expressible
from laststand.chaos.play.run_directory import create_run_directory_at
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario
from laststand.emulator.core import events
from laststand.emulator.core.client.steps import ClientRecord
from laststand.emulator.core.eras import era_rules
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.observer import Observer
from laststand.emulator.simulator.oracle.oracle import Oracle
from laststand.emulator.simulator.run.kinds import make_checks
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.verdict.report import VerdictReport
from tests.documented_scenarios import STEP_CATALOGUE, documented_scenarios
from tests.verdict_files import check_report
from tests.verification.agreement import Played, found_by

SEED: Final = 966


class LibraryRun(NamedTuple):
    """A run of the library.

    Attributes:
        directory: where it is; it is for all, so leave it as it is.
        scenario: what was played.
        report: the verdict.
        played: what the simulator's oracle found that watched the run; ``None`` where none did.
    """

    directory: Path
    scenario: Scenario
    report: VerdictReport
    played: Played | None


class Library:
    """Runs of scenarios by name and era.

    Args:
        root: the folder that all workers share.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def run(self, name: str, era: str) -> LibraryRun:
        """Returns a run, which is played now if nobody has asked for it before."""
        directory = self._root / era / name
        directory.parent.mkdir(parents=True, exist_ok=True)
        kept = directory.parent / f"{directory.name}.pickle"
        with (directory.parent / f"{directory.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                shutil.rmtree(directory, ignore_errors=True)  # of one who failed, and says why
                kept.write_bytes(pickle.dumps(_play(name, era, directory)))
        run: LibraryRun = pickle.loads(kept.read_bytes())
        return run


@cache
def shown() -> dict[str, Scenario]:
    """Returns the scenarios of README and docs that are meant to be played."""
    return {name: scenario for name, scenario in documented_scenarios().items() if name != STEP_CATALOGUE}


@cache
def scenario_of(name: str) -> Scenario:
    """Returns a scenario of the documents, or of those that come along."""
    return shown().get(name) or load_scenario(find_scenario(name))


def eras_of(name: str) -> tuple[str, ...]:
    """Returns the eras that a scenario expects something of; none where virtual time cannot play it."""
    scenario = scenario_of(name)
    is_expressible = not not_expressible(scenario, (), DriverName.SIMULATOR)
    return tuple(era for era, _ in scenario.expect) if is_expressible else ()


def is_watched(scenario: Scenario) -> bool:
    """Returns whether the simulator's oracle watches the run of a scenario.

    It would take minutes where producers send all the time, which lose in the same ways as others. An oracle that only
    watches does not learn which records steps delete.
    """
    sends_all_the_time = any(producer.rate for producer in scenario.producers)
    is_unseen = any(isinstance(step.action, actions.DeleteRecords) for step in scenario.steps)
    return not sends_all_the_time and not is_unseen


def _play(name: str, era: str, directory: Path) -> LibraryRun:
    scenario = scenario_of(name)
    switches = era_rules(era)
    order = RunOrder(
        scenario=scenario,
        directory=create_run_directory_at(directory, scenario),
        era=era,
        switches=switches,
        properties=scenario.properties,
        seed=SEED,
        toxiproxy=None,
        driver=DriverName.SIMULATOR,
    )
    played = None
    if is_watched(scenario):
        with _watched() as oracles:
            play_runs([order], on_status=lambda _: None)
        (oracle,) = oracles
        oracle.finish()
        for check_id, partition, sentence in oracle.open_transactions():
            guarantee = oracle.guarantee_of(check_id, partition)
            oracle.alarm_log.report(check_id, partition, sentence, guarantee=guarantee)
        played = Played(promised=oracle.promised(), found=found_by(oracle))
    else:
        play_runs([order], on_status=lambda _: None)
    report = judge_here(directory).report
    check_report(report)
    return LibraryRun(directory=directory, scenario=scenario, report=report, played=played)


class _Both:
    """An observer beside an oracle."""

    def __init__(self, observer: Observer, oracle: Oracle) -> None:
        self._observers: tuple[Observer, ...] = (observer, oracle)

    def happened(self, node_id: NodeId, incarnation: int, event: events.Event, *, now_ms: int) -> None:
        for observer in self._observers:
            observer.happened(node_id, incarnation, event, now_ms=now_ms)

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        for observer in self._observers:
            observer.recorded(client, record, now_ms=now_ms)

    def stepped(self, node_id: NodeId) -> None:
        for observer in self._observers:
            observer.stepped(node_id)


@contextmanager
def _watched() -> Iterator[list[Oracle]]:
    """Has an oracle watch each cluster that is built meanwhile."""
    oracles: list[Oracle] = []
    build = SimulatedCluster.__init__

    def build_watched(
        cluster: SimulatedCluster,
        *,
        switches: Switches,
        observer: Observer,
        attach: Callable[[SimulatedCluster], None] | None = None,
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

    with patch.object(SimulatedCluster, "__init__", build_watched):
        yield oracles
