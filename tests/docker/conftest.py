"""Tests in containers are skipped, with the reason, where no engine answers or no image can be made.

The images are built when the first of them begins, which takes minutes on a machine that has none: a test's timeout is
for the test alone. One that ran out in the middle of the build was once told as an error of every test.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from laststand.emulator.cluster.containers.engine import connect
from laststand.emulator.core.errors import MissingToolError
from tests.docker.commands import ROOT, Commands
from tests.docker.image_build import build_once

_BUILD_TIMEOUT_S: Final = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            time_the_test_alone(item)


def time_the_test_alone(item: pytest.Item) -> None:
    """Leaves what a test needs out of its timeout."""
    marker = item.get_closest_marker("timeout")
    timeout_s = float(item.config.getini("timeout") or 0) if marker is None else marker.args[0]
    item.add_marker(pytest.mark.timeout(timeout_s, func_only=True), append=False)


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The images of this checkout; quick where nothing changed since the last build."""
    try:
        connect().close()
    except MissingToolError as error:
        pytest.skip(str(error))
    _build(tmp_path_factory)


@pytest.fixture(scope="session")
def all_images(images: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Those with Spark and Prometheus, too; downloading Spark for them is left to whoever wants these tests."""
    looked = subprocess.run(["docker", "image", "inspect", "laststand-analysis"], capture_output=True, check=False)
    if looked.returncode:
        pytest.skip("no image laststand-analysis: make docker-images")
    _build(tmp_path_factory, "--all")


def _build(tmp_path_factory: pytest.TempPathFactory, *options: str) -> None:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base  # of all workers of this run
    built = build_once(ROOT / "docker/build.sh", *options, shared=shared, timeout_s=_BUILD_TIMEOUT_S)
    if built.problem is not None:
        (pytest.fail if built.is_possible else pytest.skip)(built.problem)


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
