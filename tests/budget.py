"""The seconds of CPU that each folder of tests may take: measured, and printed at the end of a run of several folders.

CPU counts and not time on the clock, because a busy machine stretches the latter. A test counts for the worker process
and its child processes: those that ended, and those that still run, such as the JVM of a Spark session. What a fixture
takes counts for the test that needs it first. A worker measures once after each test: the tree of its processes costs
as much to read as many a test.
"""

import os
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Final, NamedTuple, Protocol

import pytest

_OUTSIDE: Final = "start, collection"

BUDGETS_S: Final[Mapping[str, int]] = {
    "tests/analysis": 65,
    "tests/browser": 35,
    "tests/clients": 15,
    "tests/cluster": 360,
    "tests/conformance": 10,
    "tests/interaction": 10,
    "tests/mutants": 25,
    "tests/packaging": 40,
    "tests/simulation": 145,
    "tests/tla": 15,
    "tests/unit": 170,
    "tests/verification": 260,
    _OUTSIDE: 30,
}
"""By folder, a little more than the dearer of two quiet runs: together 20 minutes, which two cores do in 10.

Tests in containers have none, as not every machine can run them.
"""

SHARE_S: Final = 30
"""Of one test with the fixtures that it is the first to need."""

_WIDTH: Final = 24
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_SECONDS: Final = "cpu_s"


class _Node(Protocol):
    """A worker of pytest-xdist, as the process sees it that hands out the tests."""

    workeroutput: dict[str, float]


class Taken(NamedTuple):
    """Wall time of one phase of a test, and with the last one the CPU of all."""

    nodeid: str
    cpu_s: float
    wall_s: float


def cpu_seconds() -> float:
    """Returns what this process and its descendants have used so far."""
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    return own + sum(map(_of_tree, _children_of(os.getpid())))


def _of_tree(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it ended, and counts for its parent now
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS_PER_S + sum(map(_of_tree, _children_of(pid)))


def _children_of(pid: int) -> Iterator[int]:
    """Yields the children of all threads of a process; threads may end meanwhile, and the process, too."""
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                yield from map(int, (task / "children").read_text().split())


def folder_of(nodeid: str) -> str:
    """Returns the folder of ``BUDGETS_S`` that a test is in."""
    return "/".join(nodeid.partition("::")[0].split("/")[:2])


def table(taken: Sequence[Taken], others_s: float) -> Iterator[str]:
    """Yields a line for each folder, one for all, and one for each test that took more than its share."""
    folders = sorted({folder_of(each.nodeid) for each in taken})
    yield f"{'':{_WIDTH}}{'tests':>7}{'CPU s':>8}{'at most':>9}{'clock s':>9}"
    for folder in folders:
        inside = [each for each in taken if folder_of(each.nodeid) == folder]
        yield _row(folder, inside, sum(each.cpu_s for each in inside), BUDGETS_S.get(folder))
    yield _row(_OUTSIDE, (), others_s, BUDGETS_S.get(_OUTSIDE))
    yield _row("all", taken, others_s + sum(each.cpu_s for each in taken), sum(BUDGETS_S.values()))
    by_test: defaultdict[str, float] = defaultdict(float)
    for each in taken:
        by_test[each.nodeid] += each.cpu_s
    for nodeid, cpu_s in sorted(by_test.items(), key=lambda item: -item[1]):
        if cpu_s > SHARE_S:
            yield f"{nodeid} took {cpu_s:.0f} s, more than the {SHARE_S} s of a test"


def _row(name: str, inside: Sequence[Taken], cpu_s: float, budget_s: int | None) -> str:
    tests, clock_s = len({each.nodeid for each in inside}), sum(each.wall_s for each in inside)
    row = f"{name:{_WIDTH}}{tests:7}{cpu_s:8.0f}{budget_s or '':>9}{clock_s:9.0f}"
    return f"{row}  more than its budget" if budget_s is not None and cpu_s > budget_s else row


class Meter:
    """Measures in each process that runs tests, and sums up in the one that reports."""

    def __init__(self) -> None:
        self._before_s = cpu_seconds()
        self._measured_s = 0.0
        self._others_s = 0.0
        self._taken: list[Taken] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Leaves out what was before the first test."""
        self._before_s = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Has the report of a test's last phase say what it took."""
        report = yield
        if report.when != "teardown":
            return report
        now_s = cpu_seconds()
        setattr(report, _SECONDS, now_s - self._before_s)
        self._measured_s += now_s - self._before_s
        self._before_s = now_s
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes a report, of this process or of a worker."""
        self._taken.append(Taken(report.nodeid, getattr(report, _SECONDS, 0.0), report.duration))

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Has a worker tell what it took beside its tests: the start, the collection, the end."""
        yield
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_SECONDS] = cpu_seconds() - self._measured_s
        elif session.config.getoption("numprocesses", None):
            self._others_s += process_time()  # its children are the workers, which tell for themselves
        else:
            self._others_s += cpu_seconds() - self._measured_s

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: _Node) -> None:
        """Takes what a worker told."""
        self._others_s += getattr(node, "workeroutput", {}).get(_SECONDS, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints a line for each folder, and one for each test that took more than its share."""
        if hasattr(terminalreporter.config, "workerinput"):
            return
        if len({folder_of(taken.nodeid) for taken in self._taken}) > 1:
            terminalreporter.section("seconds of CPU by folder")
            for line in table(self._taken, self._others_s):
                terminalreporter.write_line(line)
