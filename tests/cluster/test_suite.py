"""A suite on real processes that is stopped: by its limit, and by Ctrl-C."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from laststand.chaos.suite.results import CellStatus, SuiteReport
from tests.cluster.survivors import await_end
from tests.cluster.test_standing import DEADLINE_S, Terminal, open_terminal

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(300)]

ENDLESS = """\
name: {name}
cluster: {{brokers: 1}}
topics: [{{name: orders, replicas: [[0]]}}]
workload: {{producers: [{{acks: all, rate: 20}}]}}
steps:
  - until: {{acked: 1000000, within: 600 s}}
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """With three scenarios that have no end."""
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text(ENDLESS.format(name=name))
    with open_terminal(tmp_path) as terminal:
        yield terminal


def results(terminal: Terminal) -> SuiteReport:
    return msgspec.json.decode((terminal.directory / "results.json").read_bytes(), type=SuiteReport)


def test_a_cell_that_takes_too_long_is_unknown_and_leaves_nothing(terminal: Terminal) -> None:
    said = terminal.type("run", "a.yaml", "--judge", "here", "--timeout", "5", "--results", "results.json", code=2)
    assert "1 cell: 0 as expected, 1 unknown" in said
    (cell,) = results(terminal).cells
    assert cell.status is CellStatus.UNKNOWN
    assert any("stopped after 5 s" in reason for reason in cell.reasons)
    assert cell.directory is not None
    assert await_end(terminal.mark) == []


def test_an_interrupted_suite_reports_what_it_has(terminal: Terminal) -> None:
    store = terminal.directory / "store"
    options = ("--judge", "here", "--jobs", "2", "--results", "results.json")
    with terminal.start("run", "a.yaml", "b.yaml", "c.yaml", *options) as suite:
        deadline = time.monotonic() + DEADLINE_S
        while len(list(store.glob("*/2*/history.packed"))) < 2:  # both have producers at work
            assert time.monotonic() < deadline
            assert suite.poll() is None
        suite.send_signal(signal.SIGINT)
        out, err = suite.communicate(timeout=DEADLINE_S)
    assert suite.returncode == 128 + signal.SIGINT, err
    assert "Traceback" not in err
    assert "3 cells: 0 as expected, 3 not played" in out
    assert [cell.status for cell in results(terminal).cells] == [CellStatus.NOT_PLAYED] * 3
    assert await_end(terminal.mark) == []
