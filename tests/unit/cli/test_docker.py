"""Commands about containers, on a machine without the Docker SDK."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from laststand.cli.main import cli
from laststand.emulator.core.errors import MissingToolError


@pytest.mark.parametrize(
    "arguments", [("attach",), ("docker", "ps"), ("docker", "prune"), ("up", "--driver", "docker")], ids=" ".join
)
def test_without_the_docker_sdk_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "docker", None)
    failed = CliRunner().invoke(cli, arguments).exception
    assert isinstance(failed, MissingToolError)
    assert str(failed) == "the Docker SDK was not found; expected it installed: pip install 'laststand[docker]'"
