"""The health check of a container."""

from pathlib import Path

import pytest

from laststand.emulator.node.environment import PREFIX, TOKEN_FILE
from laststand.emulator.node.health_check import main
from laststand.emulator.rpc.authority import certify
from laststand.emulator.rpc.certificates import FOLDER
from laststand.emulator.rpc.run_token import RunToken


def test_a_node_that_has_no_certificate_yet_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    RunToken.draw().write(token)
    certify(tmp_path / FOLDER, ())
    monkeypatch.setenv(PREFIX + TOKEN_FILE, str(token))
    assert main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "broker-0-client.pem" in line
