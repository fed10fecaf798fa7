"""What ``laststand verify`` says before Spark is started."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from emulator.cli.spark_options import parse_conf
from emulator.cli.user_error import UserError
from emulator.cli.verify import verify
from emulator.core.errors import ConfigError


def test_settings_are_spark_s() -> None:
    assert parse_conf(["spark.executor.memory=2g", "spark.a="]) == {"spark.executor.memory": "2g", "spark.a": ""}


@pytest.mark.parametrize("setting", ["executor.memory=2g", "spark.executor.memory", "=", ""])
def test_another_setting_is_refused(setting: str) -> None:
    with pytest.raises(UserError, match=r"expected spark\.KEY=VALUE"):
        parse_conf([setting])


def test_several_paths_without_a_run_are_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(verify, [str(tmp_path / "one"), str(tmp_path / "two")])
    assert isinstance(result.exception, ConfigError)


def test_a_work_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "file").touch()
    result = CliRunner().invoke(verify, [str(tmp_path), "--work-dir", str(tmp_path / "file" / "work")])
    assert isinstance(result.exception, UserError)
    assert "--work-dir" in str(result.exception)


def test_a_run_at_a_uri_needs_a_place_for_its_copy() -> None:
    result = CliRunner().invoke(verify, ["hdfs://namenode/runs/1"])
    assert isinstance(result.exception, UserError)
    assert str(result.exception).startswith("hdfs://namenode/runs/1: expected --work-dir DIR")
