"""Folders of the user that have the names of Laststand's packages, in the directory where it is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(300)]

PROGRAMS = Path(sys.executable).parent
SCENARIO = """\
name: kept
cluster: {brokers: 2}
topics: [{name: orders, replicas: [[0, 1]], min.insync.replicas: 2}]
workload: {producers: [{acks: all, rate: 200}]}
steps:
  - until: {acked: 50}
expect:
  kip-966: {verdict: valid, lost: "0"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose own packages end a process that imports them."""
    for name in ("chaos", "emulator", "proto", "docs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('the package of the user')")
    (tmp_path / "kept.laststand.yaml").write_text(SCENARIO)
    return tmp_path


def run(*command: str | Path, project: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHONPATH"))}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "kept.laststand.yaml", "--judge", "here"),
        ("fuzz", "--plans", "1", "--seed", "153", "--driver", "simulator"),
    ],
    ids=["run", "fuzz"],
)
def test_commands_play_and_judge(arguments: tuple[str, ...], project: Path) -> None:
    run(PROGRAMS / "laststand", *arguments, "--out", "store", project=project)
