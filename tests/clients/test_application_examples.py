"""The tests of an application in ``docs/examples/application`` pass as they stand."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.programs import needed

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]


def output_of(*command: str, project: Path) -> str:
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
    assert done.returncode == 0, done.stdout + done.stderr
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
