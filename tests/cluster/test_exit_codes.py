"""The table of exit codes in docs/runs.md: each code is brought about, for a verdict and on a standing cluster."""

import os
import re
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import psutil
import pytest

from tests.cluster.forked_laststand import laststand_program
from tests.cluster.signals import default_signals
from tests.cluster.survivors import MARK, leave_nothing
from tests.documented_scenarios import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

DEADLINE_S: Final = 120.0

REGRESSIONS: Final = "tests/simulation/regressions"

KEPT: Final = "cluster brokers=2\ntopic orders replicas=(0,1)\nproduce orders-0 acks=all records=1\nkill 0\n"
"""A plan in which a record is acknowledged, and kept."""

NOTHING_PROVED: Final = "cluster brokers=2\ntopic orders replicas=(0,1)\nkill 0\n"
"""A plan in which nothing is acknowledged."""

BUG: Final = """\
import sys
from laststand.cli import main as program
def fail(**_): raise ZeroDivisionError
program.cli.commands[sys.argv[1]].callback = fail
sys.exit(program.main())
"""
"""The program with a bug in one verb."""

WITH_BUG: Final = (sys.executable, "-c", BUG)
OWN: Final = (sys.executable, "-m", "laststand.cli")

CONSUME: Final = ("consume", "orders", "--from-beginning")

LINES: Final = b"".join(b"%d\n" % number for number in range(20_000))
"""More than a pipe holds, so that a consumer has something to write when nobody reads any more."""


class Shell:
    """A shell in which commands are typed, beside a standing cluster of two brokers.

    Args:
        directory: the current one.
        mark: of what is started.
        program: what ``laststand`` is.
    """

    def __init__(self, directory: Path, mark: str, program: tuple[str, ...]) -> None:
        self.directory = directory
        self.mark = mark
        self.program = program

    def start(self, *arguments: str, program: tuple[str, ...] = ()) -> "subprocess.Popen[bytes]":
        """Starts a command with a pipe for each stream, in a process group of its own."""
        with default_signals():
            return subprocess.Popen(
                [*(program or self.program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.directory,
                env={**os.environ, "PYTHONPATH": str(ROOT), MARK: self.mark},
                start_new_session=True,
            )

    def type(self, *arguments: str, program: tuple[str, ...] = ()) -> int:
        """Returns what a command exits with."""
        with self.start(*arguments, program=program) as process:
            process.communicate(timeout=DEADLINE_S)
        return process.returncode

    def interrupt_sweep(self, number: int) -> int:
        """Returns what a sweep exits with that gets a signal once its workers run."""
        with self.start("simulate", "--seeds", "1..1000000", "--jobs", "2") as process:
            deadline = time.monotonic() + DEADLINE_S
            while len(psutil.Process(process.pid).children()) < 2:
                assert time.monotonic() < deadline
            process.send_signal(number)
            process.communicate(timeout=DEADLINE_S)
        return process.returncode

    def interrupt_consumer(self, number: int) -> int:
        """Returns what a consumer exits with that gets a signal once it has printed something."""
        with self.start(*CONSUME) as process:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], DEADLINE_S)[0]
            process.send_signal(number)
            process.communicate(timeout=DEADLINE_S)
        return process.returncode

    def close_pipe(self, *arguments: str) -> int:
        """Returns what a command exits with whose output nobody reads."""
        with self.start(*arguments) as process:
            assert process.stdout is not None
            process.stdout.close()
            return process.wait(DEADLINE_S)


Case: TypeAlias = Callable[[Shell], int]


def replay(shell: Shell, plan: str) -> int:
    """Returns what a replay exits with."""
    (shell.directory / "plan.txt").write_text(plan)
    return shell.type("replay", "plan.txt")


CASES: Final[dict[str, tuple[dict[int, Case], dict[int, Case]]]] = {
    "0": ({0: lambda shell: replay(shell, KEPT)}, {0: lambda shell: shell.type("topics", "list")}),
    "1": (
        {1: lambda shell: shell.type("replay", str(ROOT / REGRESSIONS / "s09-ap-partition-epoch-check-off.txt"))},
        {1: lambda shell: shell.type("chaos", "resume", "0")},
    ),
    "2": (
        {2: lambda shell: replay(shell, NOTHING_PROVED)},
        {2: lambda shell: shell.type("chaos", "step", "until: {node: 0, unfenced: false, within: 1 ms}")},
    ),
    "254": (
        {254: lambda shell: shell.type("run", "no/such/scenario")},
        {254: lambda shell: shell.type("topics", "describe", "nope")},
    ),
    "255": (
        {255: lambda shell: shell.type("simulate", program=WITH_BUG)},
        {255: lambda shell: shell.type("status", program=WITH_BUG)},
    ),
    "128 + n": (
        {
            129: lambda shell: shell.interrupt_sweep(signal.SIGHUP),
            130: lambda shell: shell.interrupt_sweep(signal.SIGINT),
            143: lambda shell: shell.interrupt_sweep(signal.SIGTERM),
            141: lambda shell: shell.close_pipe("simulate", "--seed", "1"),
        },
        {
            129: lambda shell: shell.interrupt_consumer(signal.SIGHUP),
            130: lambda shell: shell.interrupt_consumer(signal.SIGINT),
            143: lambda shell: shell.interrupt_consumer(signal.SIGTERM),
            141: lambda shell: shell.close_pipe(*CONSUME),
        },
    ),
}
"""Ways to bring about the codes of a row: for a verdict, and on a standing cluster."""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    made = Shell(tmp_path_factory.mktemp("exit-codes"), uuid.uuid4().hex, (laststand_program(),))
    assert made.type("up", "--brokers", "2", "--no-proxies") == 0
    assert made.type("topics", "create", "orders") == 0
    (made.directory / "lines").write_bytes(LINES)
    assert made.type("produce", "orders", "-f", "lines") == 0
    yield made
    made.type("down", "--as-is")
    leave_nothing(made.mark)


def rows() -> list[str]:
    """Returns the codes of the table."""
    text = (ROOT / "docs/runs.md").read_text(encoding="utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    return re.findall(r"^\| (\d[\d n+]*) \|", text, flags=re.MULTILINE)


def test_every_row_is_tested() -> None:
    assert rows() == list(CASES)


@pytest.mark.parametrize("row", CASES)
@pytest.mark.parametrize("column", ["verdict", "standing cluster"])
def test_a_row_of_the_table(row: str, column: str, shell: Shell) -> None:
    cases = CASES[row][column == "standing cluster"]
    # Verdicts are asked of processes of their own; beside a cluster, what ends a command is the same in a fork.
    typed_in = shell if column == "standing cluster" else Shell(shell.directory, shell.mark, OWN)
    assert {code: case(typed_in) for code, case in cases.items()} == {code: code for code in cases}
