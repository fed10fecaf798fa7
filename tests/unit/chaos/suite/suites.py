"""Suites for tests: small cells, verdicts as they are wanted, and what a listener heard."""

from collections.abc import Sequence
from pathlib import Path

from laststand.chaos.play.run_directory import create_run_directory_at
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.runner import RunStatus
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.chaos.suite.cells import Cell
from laststand.chaos.suite.player import Listener
from laststand.chaos.suite.results import CellResult
from laststand.emulator.core.switches import era_switches
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.verification.doubts.doubt import Doubt
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport, expected_of

SCENARIO = """\
name: {name}
cluster: {{brokers: 1}}
topics: [{{name: orders, replicas: [[0]]}}]
workload: {{producers: [{{acks: all, rate: 100}}]}}
steps:
  - until: {{acked: 1}}
expect:
  kip-966:
    verdict: valid
"""


def cell(name: str, *, repetition: int = 1, skipped: str | None = None) -> Cell:
    path = Path(f"{name}.yaml")
    scenario = read_scenario(path, SCENARIO.format(name=name))
    return Cell(scenario=scenario, era="kip-966", repetition=repetition, seed=6 + repetition, skipped=skipped)


class Orders:
    """Makes run directories in ``store``, for processes if nothing else is said."""

    def __init__(self, store: Path, *, driver: DriverName = DriverName.PROCESS) -> None:
        self._store = store
        self._driver = driver

    def __call__(self, cell: Cell) -> RunOrder:
        return RunOrder(
            scenario=cell.scenario,
            directory=create_run_directory_at(self._store / cell.name, cell.scenario),
            era=cell.era,
            switches=era_switches(cell.era),
            properties=(),
            seed=cell.seed,
            toxiproxy=None,
            driver=self._driver,
        )


def report(directory: Path, verdict: Verdict) -> VerdictReport:
    return VerdictReport(
        run=str(directory),
        scenario=directory.name.partition(" ")[0],
        era="kip-966",
        switches={},
        verdict=verdict,
        guarantee=None,
        doubts=(Doubt(about=None, sentence="a gap"),) if verdict is Verdict.UNKNOWN else (),
        checks=(),
        counts=(),
        partitions=(),
        losses=(),
        leaders=(),
        duration_s=1.5,
        outcome=expected_of(verdict),
    )


class Judge:
    """Says what it was told to say of a scenario, and ``valid`` of all others."""

    def __init__(self, verdicts: dict[str, Verdict] | None = None) -> None:
        self.batches: list[list[str]] = []
        self._verdicts = verdicts or {}

    def __call__(self, directories: Sequence[Path]) -> list[VerdictReport]:
        self.batches.append([directory.name for directory in directories])
        return [
            report(directory, self._verdicts.get(directory.name.partition(" ")[0], Verdict.VALID))
            for directory in directories
        ]


class Heard(Listener):
    """A listener that keeps what it hears of each cell."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.playing = 0
        self.most_playing = 0

    def began(self, cell: Cell) -> None:
        self.playing += 1
        self.most_playing = max(self.most_playing, self.playing)
        self.events.append((cell.name, "began"))

    def status(self, cell: Cell, status: RunStatus) -> None:
        assert status.run == cell.era

    def played(self, cell: Cell) -> None:
        self.playing -= 1
        self.events.append((cell.name, "played"))

    def judged(self, result: CellResult) -> None:
        self.events.append((result.name, result.status.value))
