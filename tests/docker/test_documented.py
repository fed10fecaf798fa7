"""Commands of docs/docker.md about compose are typed as they stand there, and print what it shows there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.docker.commands import ROOT, Commands
from tests.docker.composed import PROJECT, compose, require_compose

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]

TIMEOUT_S: Final = 300
TYPED: Final = ("docker compose ", "printf ", "laststand ", "LASTSTAND_ERA=")
NUMBERS: Final = re.compile(r"\b(?:0x)?[0-9a-f]*[0-9][0-9a-f]*\b|[0-9]+")


def test_the_page_is_typed_from_compose_to_prometheus(commands: Commands, all_images: None) -> None:
    require_compose()
    shown = blocks("## Compose", "### Prometheus and Grafana")
    try:
        printed = "".join(type_line(line, commands.directory) for line in shown if line.startswith(TYPED))
    finally:
        compose("--profile", "*", "down", "--volumes", "--timeout", "5")
    check_shown(shown, printed, commands.directory)


def test_a_cluster_is_attached_to_from_this_machine(commands: Commands) -> None:
    require_compose()
    shown = blocks("### From this machine", "### As a user who cannot read the volumes")
    try:
        printed = "".join(type_line(line, commands.directory) for line in shown if line.startswith(TYPED))
        commands.type("down")
    finally:
        compose("--profile", "*", "down", "--volumes", "--timeout", "5")
    check_shown(shown, printed, commands.directory)


def blocks(first: str, behind: str) -> list[str]:
    """Returns the lines in the code blocks of some sections."""
    text = (ROOT / "docs/docker.md").read_text(encoding="utf-8")
    section = text[text.index(f"\n{first}\n") : text.index(f"\n{behind}\n")]
    return [line for block in re.findall(r"```\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]


def type_line(line: str, directory: Path) -> str:
    """Types a line where the checkout's ``docker`` is, in a project of the tests; it must succeed."""
    if not (directory / "docker").exists():
        (directory / "docker").symlink_to(ROOT / "docker")
    variables = {
        "COMPOSE_PROJECT_NAME": PROJECT,
        "LASTSTAND_BROKER_SESSION_TIMEOUT_MS": "12000",  # no session shall end because the machine is busy
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    typed = subprocess.run(
        line.replace("--compose-project laststand", f"--compose-project {PROJECT}"),
        shell=True,
        capture_output=True,
        text=True,
        cwd=directory,
        env={**os.environ, **variables},
        timeout=TIMEOUT_S,
        check=False,
    )
    assert typed.returncode == 0, f"{line}\n{typed.stdout}{typed.stderr}"
    return typed.stdout + typed.stderr


def check_shown(shown: list[str], printed: str, directory: Path) -> None:
    """Checks that each line that is no command was printed, whatever the numbers."""
    told = {NUMBERS.sub("N", line) for line in printed.replace(f"{directory}/", "").splitlines()}
    expected = {NUMBERS.sub("N", line) for line in shown if not line.startswith(TYPED)}
    assert expected <= told, expected - told
