"""``simulate SCENARIO``: the cluster of a scenario, explored."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from laststand.chaos.scenario.scenario_file import find_scenario
from laststand.cli.main import cli
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.user_error import UserError
from laststand.emulator.core.errors import ConfigError

NAME = "kip-966/last-replica-standing"


def test_a_scenario_gives_its_cluster_and_is_in_the_command_that_plays_a_finding_whole() -> None:
    arguments = ["simulate", NAME, "--seeds=10", "--era=kafka-3.9", "--profile=restarts"]
    found = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert found.return_value == ExitCode.VIOLATION
    assert "topic orders replicas=(0,1,2) min.insync.replicas=2" in found.stdout
    assert f"# whole: laststand simulate {NAME} --seed 10 --era kafka-3.9 --profile restarts" in found.stdout


def test_a_scenario_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="scenario=kip-966/no-such is not allowed"):
        CliRunner().invoke(cli, ["simulate", "kip-966/no-such"], standalone_mode=False, catch_exceptions=False)


def test_a_scenario_that_flushes_by_the_clock_is_refused(tmp_path: Path) -> None:
    timed = tmp_path / "timed.yaml"
    text = find_scenario(NAME).read_text(encoding="utf-8")
    timed.write_text(text.replace("min.insync.replicas: 2", "min.insync.replicas: 2, flush.ms: 5"), encoding="utf-8")
    with pytest.raises(UserError, match="simulator cannot play topic orders"):
        CliRunner().invoke(cli, ["simulate", str(timed)], standalone_mode=False, catch_exceptions=False)
