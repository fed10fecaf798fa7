"""The report on the CPU that tests took."""

import subprocess
import sys

import pytest

from tests import budget
from tests.budget import Taken, cpu_seconds, table

TAKEN = (
    Taken("tests/slow/test_a.py::test_one", 40.0, 50.0),
    Taken("tests/slow/test_a.py::test_one", 2.0, 3.0),
    Taken("tests/quick/core/test_b.py::test_two[x::y]", 0.5, 0.6),
)


def test_a_folder_over_its_budget_and_a_test_over_its_share_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "BUDGETS_S", {"tests/slow": 41, "tests/quick": 9})
    assert [" ".join(line.split()) for line in table(TAKEN, others_s=3.0)] == [
        "tests CPU s at most clock s",
        "tests/quick 1 0 9 1",
        "tests/slow 1 42 41 53 more than its budget",
        "start, collection 0 3 0",
        "all 2 46 50 54",
        "tests/slow/test_a.py::test_one took 42 s, more than the 30 s of a test",
    ]


def test_the_cpu_of_processes_that_run_or_ran_counts() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    before = cpu_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        running = cpu_seconds()
        process.communicate("\n")
    assert running - before >= 0.25
    assert cpu_seconds() - before >= 0.25
