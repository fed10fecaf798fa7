"""``simulate SCENARIO``: the cluster of a scenario, explored."""

import pytest
from click.testing import CliRunner

from emulator.cli.exit_codes import ExitCode
from emulator.cli.main import cli
from emulator.core.errors import ConfigError

NAME = "kip-966/last-replica-standing"


def test_a_scenario_gives_its_cluster_and_is_in_the_command_that_plays_a_finding_whole() -> None:
    arguments = ["simulate", NAME, "--seeds=57", "--era=kafka-3.9", "--profile=last-standing"]
    found = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert found.return_value == ExitCode.VIOLATION
    assert "topic orders replicas=(0,1,2) min.insync.replicas=2" in found.stdout
    assert f"# whole: laststand simulate {NAME} --seed 57 --era kafka-3.9 --profile last-standing" in found.stdout


def test_a_scenario_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match=NAME):
        CliRunner().invoke(cli, ["simulate", "kip-966/no-such"], standalone_mode=False, catch_exceptions=False)
