"""The tests of an application in ``docs/examples/application`` pass as they stand."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from laststand.cli.program.exit_codes import ExitCode
from tests.clients.programs import needed

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]


def output_of(*command: str, project: Path, ends_with: ExitCode = ExitCode.VALID) -> str:
    """Runs a command in the project of the application, with ``laststand`` on its path."""
    programs = Path(sys.executable).parent
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        "PATH": f"{project}{os.pathsep}{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == ends_with, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project."""
    return shutil.copytree(ROOT / "docs/examples/application", tmp_path / "application")


def test_pytest(project: Path) -> None:
    quiet = ("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestDeprecationWarning")
    assert "1 passed" in output_of(sys.executable, "-m", "pytest", *quiet, project=project)


def test_scenario(project: Path) -> None:
    laststand = str(Path(sys.executable).with_name("laststand"))
    said = output_of(laststand, "run", "shop.yaml", "--out", "runs", project=project)
    assert "100 acked, 0 lost" in said


def test_junit(project: Path) -> None:
    said = output_of(needed("mvn"), "-B", "test", project=project)
    assert "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0" in said


@pytest.mark.parametrize(("era", "ends_with"), [("kafka-3.9", ExitCode.VIOLATION), ("kip-966", ExitCode.VALID)])
def test_last_replica_standing_through_a_tap(era: str, ends_with: ExitCode, project: Path) -> None:
    for program in ("mvn", "java"):
        needed(program)
    said = output_of("sh", "last-replica-standing.sh", era, project=project, ends_with=ends_with)
    lost = 0 if era == "kip-966" else 200
    assert f"200 acked, {lost} lost" in said
    assert ("Keys: python-0, python-1" in said) is (lost > 0)
    [loss] = json.loads((project / f"run-{era}" / "verdict.json").read_text())["losses"] or [{"keys": []}]
    assert len(loss["keys"]) == min(lost, 100)
