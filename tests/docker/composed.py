"""A compose file, by default the published one, as a project of the tests, and commands inside it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from tests.docker.commands import ROOT

FILE: Final = str(ROOT / "docker/compose.yaml")
PROJECT: Final = "laststand-test"
_TIMEOUT_S: Final = 180


def command_line(*arguments: str, file: str = FILE) -> list[str]:
    return ["docker", "compose", "--project-name", PROJECT, "--file", file, *arguments]


def compose(*arguments: str, stdin: str = "", file: str = FILE, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command_line(*arguments, file=file),
        capture_output=True,
        text=True,
        input=stdin,
        timeout=_TIMEOUT_S,
        env={**os.environ, **variables},
        check=False,
    )


def in_client(*arguments: str, stdin: str = "", file: str = FILE) -> str:
    done = compose("exec", "-T", "client", "laststand", *arguments, stdin=stdin, file=file)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def require_compose() -> None:
    """Skips a test where Compose is missing."""
    if compose("version").returncode:
        pytest.skip("no docker compose of version 2")


@contextmanager
def project(*options: str, file: str = FILE, **variables: str) -> Iterator[None]:
    require_compose()
    compose("--profile", "*", "down", "--volumes", "--timeout", "5", file=file)  # what a killed run of these tests left
    try:
        started = compose("up", "--wait", *options, file=file, **variables)
        assert started.returncode == 0, started.stderr + compose("logs", "--tail", "20", file=file).stdout
        yield
    finally:
        compose("--profile", "*", "down", "--volumes", "--timeout", "5", file=file)
