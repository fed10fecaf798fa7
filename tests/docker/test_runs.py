"""Runs in containers: the demo with the verdicts of processes, and every deed once."""

import json

import pytest

from chaos.scenario.scenario_file import load_scenario
from emulator.plan.actions import DEEDS, AdminAction, Produce
from emulator.plan.drivers import DriverName
from tests.docker.commands import ROOT, Commands

pytestmark = pytest.mark.docker

EVERY_DEED = ROOT / "tests/docker/every_deed.yaml"


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_demo_has_the_verdicts_of_processes(commands: Commands) -> None:
    told = commands.type(
        *("run", "kip-966/last-replica-standing", "--era", "kafka-3.9", "--era", "kip-966", "--driver", "docker")
    )
    broken, kept = told.splitlines()[-2:]
    assert broken.startswith("kafka-3.9  violation, guarantee broken, ")
    assert broken.endswith(" acks=all records lost, as expected")
    assert kept == "kip-966    valid, 0 acks=all records lost, as expected"
    assert commands.containers() == []


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_every_deed_bites(commands: Commands) -> None:
    commands.type("run", str(EVERY_DEED), "--driver", "docker", "--era", "kip-966")
    [verdict] = (commands.directory / "store").rglob("verdict.json")
    assert json.loads(verdict.read_text(encoding="utf-8"))["verdict"] == "valid"
    assert commands.containers() == []


def test_the_scenario_has_every_deed_of_containers() -> None:
    done = {type(step.action) for step in load_scenario(EVERY_DEED).steps}
    offered = {kind for kind, row in DEEDS.items() if DriverName.DOCKER not in row.refused}
    administration = {kind for kind in offered if issubclass(kind, AdminAction)}  # the same requests on every driver
    assert offered - administration - {Produce} <= done
