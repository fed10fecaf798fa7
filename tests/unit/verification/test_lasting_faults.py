"""Faults of nodes that last until they are mended, and what mends them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from laststand.emulator.core import events
from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from tests.verification.run_builder import HARNESS, RunBuilder

Mend = Callable[[RunBuilder], object]


def doubts(run: RunBuilder) -> list[str]:
    report = judge(plan_run(0, open_run_directory(run.finish()))).report
    return [doubt.sentence for doubt in report.doubts if "mended" in doubt.sentence or "settle" in doubt.sentence]


def begun(path: Path, *, ending: str | None = None) -> RunBuilder:
    run = RunBuilder(path / "1", ending=ending).start_brokers(0, 1, 2)
    run.create_topic()
    run.poll([run.send()])
    return run


def killed_and_back(run: RunBuilder) -> None:
    run.end(1, events.IncarnationEnd.KILLED)
    run.restart(1)
    run.unfence(1)


def links(*names: str) -> Mend:
    def mend(run: RunBuilder) -> None:
        for name in names:
            run.heal("heal", name)

    return mend


def nothing(_: RunBuilder) -> None:
    """Nobody mends it."""


@pytest.mark.parametrize(
    ("fault", "mend", "is_mended"),
    [
        ("isolate", nothing, False),
        ("isolate", links("all"), True),
        ("isolate", links("1"), True),
        ("isolate", links("0"), False),
        ("isolate", links("1->0"), False),
        ("isolate", links("1->0", "2->1"), True),
        ("isolate", killed_and_back, False),
        ("pause", nothing, False),
        ("pause", lambda run: run.heal("pause", "1"), True),
        ("pause", killed_and_back, True),
        ("disconnect", nothing, False),
        ("disconnect", lambda run: run.heal("disconnect", "1"), True),
        ("disconnect", killed_and_back, True),
        ("kill", nothing, True),
    ],
)
def test_a_cluster_settles_once_its_nodes_are_mended(
    fault: str, mend: Mend, *, is_mended: bool, tmp_path: Path
) -> None:
    run = begun(tmp_path)
    run.fault(fault, "1")
    mend(run)
    run.settle()
    assert doubts(run) == ([] if is_mended else [f"the cluster settled, and fault {fault} on 1 was not mended"])


@pytest.mark.parametrize("fault", ["isolate", "pause", "disconnect", "cut"])
def test_the_faults_of_a_harness_end_with_it(fault: str, tmp_path: Path) -> None:
    """A standing cluster whose supervisor died has new processes and proxies."""
    run = begun(tmp_path)
    run.fault(fault, "1->0" if fault == "cut" else "1")
    run.start(HARNESS, role="harness")
    run.settle()
    assert doubts(run) == []


@pytest.mark.parametrize("ending", [None, "as_is"])
def test_a_run_that_restores_nothing_may_end_with_faults(ending: str | None, tmp_path: Path) -> None:
    run = begun(tmp_path, ending=ending)
    run.fault("isolate", "1")
    assert doubts(run) == []


def test_a_run_that_restores_its_cluster_sees_it_settle(tmp_path: Path) -> None:
    run = begun(tmp_path, ending="restore")
    assert doubts(run) == ["the harness restored the cluster at the end, and did not see it settle"]
