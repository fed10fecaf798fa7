"""The way to Spark that commands name where it is elsewhere, in a compose project."""

import importlib.util

import pytest
import yaml

from laststand.cli.program.requirements import VERIFIER, require_spark, verify_command
from laststand.emulator.cluster.containers.compose import render
from laststand.emulator.core.errors import MissingToolError


def test_on_a_machine_it_is_the_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VERIFIER, raising=False)
    assert verify_command("run") == "laststand verify run"


def test_a_composed_client_names_the_service_that_has_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    services = yaml.safe_load(render(brokers=1, racks=0, era="kip-966"))["services"]
    monkeypatch.setenv(VERIFIER, services["client"]["environment"][VERIFIER])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert verify_command("run") == "docker compose run --rm chaos laststand verify run"
    with pytest.raises(MissingToolError, match="docker compose run --rm chaos laststand verify RUN"):
        require_spark()
