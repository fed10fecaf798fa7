"""Tests in containers are skipped, with the reason, where no engine answers or no image can be made."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from emulator.cluster.containers.engine import connect
from emulator.core.errors import MissingToolError
from tests.docker.commands import ROOT, Commands

_BUILD_TIMEOUT_S: Final = 420


@pytest.fixture(scope="session")
def images() -> None:
    """The images of this checkout; quick where nothing changed since the last build."""
    try:
        connect().close()
    except MissingToolError as error:
        pytest.skip(str(error))
    _build()


@pytest.fixture(scope="session")
def analysis_image(images: None) -> None:
    """That with Spark, of this checkout; downloading Spark for it is left to whoever wants these tests."""
    looked = subprocess.run(["docker", "image", "inspect", "laststand-analysis"], capture_output=True, check=False)
    if looked.returncode:
        pytest.skip("no image laststand-analysis: docker/build.sh --analysis")
    _build("--analysis")


def _build(*options: str) -> None:
    try:
        built = subprocess.run(
            [ROOT / "docker/build.sh", *options], capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"the images were not built within {_BUILD_TIMEOUT_S} s")
    if built.returncode == 254:
        pytest.skip(built.stderr.strip())
    assert built.returncode == 0, built.stderr


@pytest.fixture
def commands(images: None, tmp_path: Path) -> Iterator[Commands]:
    """A place to type in; whatever a failed test leaves is removed."""
    typed = Commands(tmp_path)
    yield typed
    typed.variables.clear()
    typed.end_supervisors()
    typed.type("docker", "prune")
    left = typed.containers() + typed.helpers() + typed.networks()
    assert left == []
