"""Output of ``laststand run`` while it plays: a panel that is drawn again on a terminal, lines without one."""

import contextlib
import os
import pty
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.signals import default_signals
from tests.cluster.survivors import MARK, leave_nothing
from tests.cluster.test_standing import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

SCENARIO = """\
name: test/panel
cluster: {brokers: 2}
topics: [{name: orders, replicas: [[0, 1]], min.insync.replicas: 1}]
workload: {producers: [{acks: all, rate: 100}]}
steps:
  - until: {acked: 300, acks: all, per: partition, within: 90 s}
"""
COMMAND = ("run", "panel.yaml", "--era", "kip-966", "--no-verify", "--out", "store")
ERASE_LINE = "\x1b[2K"
DEADLINE_S = 120.0


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "panel.yaml").write_text(SCENARIO)
    mark = uuid.uuid4().hex
    yield mark
    leave_nothing(mark)


def printed(directory: Path, mark: str, *, stderr: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), MARK: mark, "TERM": "xterm-256color", "COLUMNS": "100"}
    with default_signals():
        return subprocess.Popen(
            [sys.executable, "-m", "laststand.cli", *COMMAND],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd=directory,
            env=environment,
        )


def read_terminal(terminal: int) -> str:
    """Returns what is printed on a terminal until the last process has closed it."""
    found = b""
    with contextlib.suppress(OSError):  # so Linux tells the end
        while part := os.read(terminal, 65536):
            found += part
    return found.decode()


def test_a_terminal_shows_a_panel_that_is_drawn_again(tmp_path: Path, mark: str) -> None:
    terminal, other_end = pty.openpty()
    try:
        run = printed(tmp_path, mark, stderr=other_end)
        os.close(other_end)
        shown = read_terminal(terminal)
    finally:
        os.close(terminal)
    assert run.wait(DEADLINE_S) == 0, shown
    assert shown.count(ERASE_LINE) > 5
    words = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert re.search(r"kip-966  \d+ acked/s", words)
    assert re.search(r"orders-0 +leader 0 +epoch 0 +ISR 0 1  ELR -", words)
    assert re.search(r"kip-966 1/1 ", words)


def test_elsewhere_there_are_lines_and_no_escape_sequences(tmp_path: Path, mark: str) -> None:
    with printed(tmp_path, mark, stderr=subprocess.PIPE) as run:
        _, told = run.communicate(timeout=DEADLINE_S)
    assert run.returncode == 0, told
    assert b"\x1b" not in told
    assert re.search(rb"\[ +\d+\.\d s\] kip-966: 1/1 \{until: .*\} -> records acked", told)
