"""The table at the end, and what is installed before: without a cluster."""

import os
import shutil
from typing import Literal

import pytest

from tests.clients import install
from tests.clients.results import rows_of, table


def report(
    name: str, outcome: Literal["passed", "failed", "skipped"], *, reason: str | None = None
) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=f"tests/clients/test_clients.py::{name}",
        location=("", 0, ""),
        keywords={},
        outcome=outcome,
        longrepr=None if reason is None else ("conftest.py", 1, f"Skipped: {reason}"),
        when="call",
    )


def test_each_test_has_a_row_with_its_outcome() -> None:
    reports = [report("test_it[kcat]", "passed"), report("test_it[franz-go]", "skipped", reason="no go on PATH")]
    assert [*table(rows_of([*reports, report("test_web_ui", "failed")]))] == [
        "test_clients.py  it[franz-go]  skipped: no go on PATH",
        "test_clients.py  it[kcat]      passed",
        "test_clients.py  web ui        failed",
    ]


def test_what_is_missing_is_installed_where_the_user_may(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {"apt-get": "/usr/bin/apt-get", "mvn": "/usr/bin/mvn"}
    monkeypatch.setattr(shutil, "which", programs.get)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    missing = install.missing_packages()
    assert missing == ["default-jdk-headless", "kcat"]
    command = install.install_command(missing)
    assert command is not None
    assert (command[:2], command[-2:]) == (("/usr/bin/apt-get", "install"), ("default-jdk-headless", "kcat"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert install.install_command(missing) is None
