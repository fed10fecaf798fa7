"""One build of the images for all workers of a test run, and a problem that names its reason."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.docker.image_build import ImageBuild, build_once

ROOT = Path(__file__).parents[3]


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "build.sh"
    path.write_text(f"#!/bin/sh\necho built >> {tmp_path}/builds\n{text}\n")
    path.chmod(0o755)
    return path


def test_four_workers_at_once_build_once_and_all_get_the_result(tmp_path: Path) -> None:
    program = script(tmp_path, "echo step 1; echo no space left on device >&2; exit 1")
    with ThreadPoolExecutor(4) as workers:
        build = partial(build_once, program, shared=tmp_path, timeout_s=60)
        outcomes = [done.result() for done in [workers.submit(build) for _ in range(4)]]
    assert (tmp_path / "builds").read_text() == "built\n"
    assert len(set(outcomes)) == 1
    problem = outcomes[0].problem or ""
    assert problem.endswith("build.sh ended with 1: step 1\nno space left on device")
    assert outcomes[0].is_possible


def test_other_options_are_another_build(tmp_path: Path) -> None:
    program = script(tmp_path, "exit 0")
    done = ImageBuild(is_possible=True, problem=None)
    assert [build_once(program, *options, shared=tmp_path, timeout_s=60) for options in ((), ("--x",), ())] == [
        done
    ] * 3
    assert (tmp_path / "builds").read_text() == "built\n" * 2


def test_a_machine_that_cannot_build_is_distinguished_from_a_build_that_fails(tmp_path: Path) -> None:
    program = script(tmp_path, "echo debootstrap is needed >&2; exit 254")
    built = build_once(program, shared=tmp_path, timeout_s=60)
    assert not built.is_possible
    assert "debootstrap is needed" in (built.problem or "")


def test_a_build_without_end_is_reported_and_ended(tmp_path: Path) -> None:
    program = script(tmp_path, "echo step 1; exec sleep 3600")
    built = build_once(program, shared=tmp_path, timeout_s=0.5)
    assert (built.problem or "").endswith("no end after 0.5 s; step 1")


def test_a_build_that_outlasts_the_tests_timeout_is_no_error_of_the_tests(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest, select\n"
        "@pytest.fixture(scope='session')\n"
        "def images(): select.select([], [], [], 1.5)\n"
        "def test_one(images): pass\n"
        "def test_two(images): pass\n"
    )
    (tmp_path / "conftest.py").write_text(
        "from tests.docker import conftest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items: conftest.time_the_test_alone(item)\n"
    )
    options = ("-q", "-p", "no:cacheprovider", "-o", "timeout=1", "-c", "/dev/null", "--rootdir", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["build.sh", "build-base.sh"])
def test_scripts_are_sound(name: str) -> None:
    subprocess.run(["bash", "-n", str(ROOT / "docker" / name)], check=True)
