"""Streams that are closed, full, or read by nobody: every command ends with a documented code that is no verdict."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from laststand.cli.main import cli

AT_A_TIME: Final = 4
RUN: Final = ("run", "short.yaml", "--driver", "simulator", "--no-verify")

SHORT: Final = """\
name: short
cluster: {brokers: 1}
topics: [{name: orders, replicas: [[0]]}]
workload: {producers: [{acks: all, rate: 200}]}
steps: [{until: {acked: 50, acks: all}}]
expect:
  kip-966: {verdict: valid, lost: "0"}
"""


ENDS: Final = {
    "stdout is closed": (">&- ", ("--help",), 254, ["laststand: stdout is closed; send it to a file, or to /dev/null"]),
    "stdout is full": (
        ">/dev/full ",
        ("--help",),
        254,
        ["laststand: stdout cannot be written: No space left on device"],
    ),
    "stdout is read by nobody": ("", ("--help",), 141, []),
    "stderr is closed": ("2>&- ", ("--no-such-option",), 254, []),
    "stderr is full": ("2>/dev/full ", ("--no-such-option",), 254, []),
    "all are closed": ("<&- >&- 2>&- ", ("--help",), 254, []),
}
"""Per state of the streams: its redirections, the arguments, the exit code, and the lines on stderr."""


COMMANDS: Final = [(), *((name,) for name in cli.commands)]
"""The program itself, and each of its commands."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the scenario of ``RUN``."""
    (tmp_path / "short.yaml").write_text(SHORT)
    return tmp_path


def start(*arguments: str, redirections: str = "", cwd: Path, unread: bool = False) -> "subprocess.Popen[str]":
    """Starts a command whose streams are redirected as a shell does it."""
    script = f'exec "$@" {redirections}'
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.Popen(
            ["sh", "-c", script, "sh", sys.executable, "-m", "laststand.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=writer if unread else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
        )
    finally:
        os.close(writer)


def ends(
    calls: Iterable[tuple[str, ...]], *, redirections: str, cwd: Path, unread: bool
) -> dict[tuple[str, ...], tuple[int, list[str]]]:
    """Returns exit code and lines of stderr of each call; some run at a time."""
    waiting, found = list(calls), {}
    while waiting:
        batch, waiting = waiting[:AT_A_TIME], waiting[AT_A_TIME:]
        started = [start(*call, redirections=redirections, cwd=cwd, unread=unread) for call in batch]
        for call, process in zip(batch, started, strict=True):
            _, said = process.communicate(timeout=60)
            found[call] = process.returncode, said.splitlines()
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("state", ENDS)
def test_a_command_ends_as_documented(state: str, tmp_path: Path) -> None:
    redirections, arguments, code, lines = ENDS[state]
    # The program itself meets each state, each command one of them; what is done with a stream is the same for all.
    turn = list(ENDS).index(state)
    calls = [(*command, *arguments) for command in (COMMANDS[0], *COMMANDS[1 + turn :: len(ENDS)])]
    found = ends(calls, redirections=redirections, cwd=tmp_path, unread="nobody" in state)
    assert found == dict.fromkeys(calls, (code, lines))


@pytest.mark.parametrize("redirections", ["2>&-", "2>/dev/full", "<&-", "<&- 2>&-"])
def test_what_is_played_goes_on_without_its_progress(redirections: str, place: Path) -> None:
    with start(*RUN, redirections=redirections, cwd=place) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "judge it with: laststand verify" in said


@pytest.mark.parametrize(("redirections", "code"), [(">/dev/full", 254), ("", 141)])
def test_a_run_that_cannot_be_described_is_no_verdict(redirections: str, code: int, place: Path) -> None:
    with start(*RUN, redirections=redirections, cwd=place, unread=code == 141) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in said
    assert len([line for line in said.splitlines() if not line.startswith("[")]) == (code == 254)


def test_a_closed_stream_is_not_one_that_is_opened_later(place: Path) -> None:
    """The output would go into a file of the run otherwise."""
    with start(*RUN, redirections="<&- 2>&-", cwd=place) as process:
        process.communicate(timeout=60)
    texts = [path.read_bytes() for path in (place / "store").rglob("*") if path.is_file()]
    assert texts
    assert not [text for text in texts if b"kip-966: stop the cluster" in text]


@pytest.mark.parametrize("streams", ["2>&1 | head -c 1", "2>/dev/null | head -n 1"])
def test_a_reader_that_leaves_early_makes_no_verdict(streams: str, tmp_path: Path) -> None:
    script = f'{{ "$@"; echo $? >code; }} {streams}'
    command = ["bash", "-c", script, "sh", sys.executable, "-m", "laststand.cli", "checks", "--json"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60, capture_output=True)
    assert (tmp_path / "code").read_text().strip() in ("0", "141")
