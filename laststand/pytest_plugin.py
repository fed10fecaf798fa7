"""A pytest plugin: scenarios are tests, and tests in Python get a standing cluster.

Each file ``*.laststand.yaml`` is a test per era, which passes if its expectation is met.

All collected scenarios are played when the first of them is due, ``--laststand-jobs`` at a time, and judged in a few
batches, because a Spark session costs more than a verdict; ``--laststand-judge here`` needs none. Under pytest-xdist
each worker plays its own, one after the other, in a session of its own.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from laststand.chaos.suite.cells import Cell
    from laststand.chaos.suite.results import CellResult
    from laststand.standing_cluster import StandingCluster

SUFFIX = ".laststand.yaml"


class NotAsExpectedError(Exception):
    """A cell that did not pass; the text says why."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("laststand", "scenarios of Laststand")
    group.addoption(
        "--laststand-era",
        action="append",
        default=[],
        metavar="ERA",
        help="era to play, may be repeated; those that a scenario has expectations for if not given",
    )
    group.addoption(
        "--laststand-driver",
        choices=("process", "simulator"),
        default="process",
        help="real processes (default), or virtual time",
    )
    group.addoption(
        "--laststand-jobs", type=int, default=max(2, os.cpu_count() or 1), metavar="N", help="scenarios at a time"
    )
    group.addoption(
        "--laststand-judge",
        choices=("spark", "here"),
        default="spark",
        help="who judges: Spark (default), or this process, which needs no Java",
    )
    group.addoption("--laststand-store", default="store", metavar="DIR", help="where run directories go")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker of all scenarios."""
    config.addinivalue_line("markers", "laststand: a scenario of Laststand, from a file *.laststand.yaml")
    config.addinivalue_line(
        "markers",
        "laststand_cluster(brokers=3, era='kip-966', settings={}, seed=None): what laststand_cluster starts",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioFile | None":
    """Collects scenario files."""
    return ScenarioFile.from_parent(parent, path=file_path) if file_path.name.endswith(SUFFIX) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Checks that the names of scenarios are different.

    Raises:
        pytest.UsageError: two files have the same name.
    """
    paths: dict[str, Path] = {}
    for item in _scenarios(items):
        other = paths.setdefault(item.cell.name, item.path)
        if other != item.path:
            raise pytest.UsageError(f"{item.path}: the scenario's name is that of {other}, too")


@pytest.fixture
def laststand_cluster(request: pytest.FixtureRequest) -> "Iterator[StandingCluster]":
    """A standing cluster, which ends with the test.

    Unless the test has requested the verdict itself (``verify``), the verdict has to be valid.
    """
    from laststand.emulator.plan.path_words import as_path_word
    from laststand.emulator.report.failure_picture import failure_picture
    from laststand.emulator.verification.verdict.forms import summary
    from laststand.emulator.verification.verdict.report import Verdict
    from laststand.standing_cluster import StandingCluster

    marker = request.node.get_closest_marker("laststand_cluster")
    with StandingCluster(
        store=request.config.rootpath / request.config.getoption("--laststand-store"),
        name=as_path_word(request.node.nodeid),
        **({} if marker is None else marker.kwargs),
    ) as cluster:
        yield cluster
        if not cluster.is_verified:
            report = cluster.verify(by=request.config.getoption("--laststand-judge"))
            if report.verdict is not Verdict.VALID:
                lines = [summary(report), f"run directory: {report.run}", *failure_picture(report, Path(report.run))]
                pytest.fail("\n".join(lines), pytrace=False)


class ScenarioFile(pytest.File):
    """A scenario: a test per era."""

    def collect(self) -> "Iterator[ScenarioItem]":
        """Yields the tests.

        Raises:
            pytest.Collector.CollectError: the file cannot be played; the text names line and key.
        """
        from laststand.chaos.suite.selection import select
        from laststand.chaos.suite.suite import make_suite
        from laststand.emulator.core.errors import EmulatorError
        from laststand.emulator.plan.drivers import DriverName

        option = self.config.getoption
        try:
            suite = make_suite(
                select([str(self.path)]),
                eras=option("--laststand-era"),
                drivers=(DriverName(option("--laststand-driver")),),
                store=self.config.rootpath / option("--laststand-store"),
            )
        except EmulatorError as error:
            raise self.CollectError(str(error)) from None
        for cell in suite.cells:
            yield ScenarioItem.from_parent(self, name=cell.era_label, cell=cell)


class ScenarioItem(pytest.Item):
    """A scenario under an era."""

    def __init__(self, *, cell: "Cell", **others: object) -> None:
        super().__init__(**others)  # type: ignore[arg-type]
        self.cell = cell
        self.add_marker("laststand")

    def runtest(self) -> None:
        """Plays the scenario, unless it was played already.

        Raises:
            NotAsExpectedError: the cell did not pass.
        """
        if self.cell.skipped is not None:
            pytest.skip(self.cell.skipped)
        _check(_results_of(self.session).of(self))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """Returns the story of the loss, or why the verdict is unknown, without a traceback."""
        if isinstance(excinfo.value, NotAsExpectedError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Returns the place of the expectation, and the name."""
        expectation = self.cell.scenario.expectation(self.cell.era_label)
        return self.path, 0 if expectation is None else expectation.line - 1, self.cell.name


class _Results:
    """The results of a session's scenarios."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._results: dict[str, CellResult] = {}

    def of(self, item: ScenarioItem) -> "CellResult":
        """Returns an item's result; the first call plays all collected scenarios."""
        if item.nodeid not in self._results:
            is_worker = hasattr(self._session.config, "workerinput")
            self._play([item] if is_worker else _scenarios(self._session.items))
        return self._results[item.nodeid]

    def _play(self, items: list[ScenarioItem]) -> None:
        from laststand.chaos.suite.suite import suite_of
        from laststand.emulator.plan.drivers import DriverName
        from laststand.emulator.verification.judges import JudgeName
        from laststand.running import player_of

        option = self._session.config.getoption
        suite = suite_of(
            [item.cell for item in items],
            driver=DriverName(option("--laststand-driver")),
            store=self._session.config.rootpath / option("--laststand-store"),
        )
        player = player_of(suite, jobs=option("--laststand-jobs"), by=JudgeName(option("--laststand-judge")))
        asyncio.run(player.play())
        results = {result.name: result for result in player.all_results()}
        self._results |= {item.nodeid: results[item.cell.name] for item in items}


def _scenarios(items: Iterable[pytest.Item]) -> list[ScenarioItem]:
    return [item for item in items if isinstance(item, ScenarioItem) and item.cell.skipped is None]


_RESULTS = pytest.StashKey[_Results]()


def _results_of(session: pytest.Session) -> _Results:
    return session.stash.setdefault(_RESULTS, _Results(session))


def _check(result: "CellResult") -> None:
    from laststand.chaos.suite.results import CellStatus

    if result.status is not CellStatus.PASSED:
        raise NotAsExpectedError("\n".join([*result.failure_lines(), *result.picture]))
