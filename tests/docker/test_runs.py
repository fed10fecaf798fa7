"""Runs in containers: the demo with the verdicts of processes, and every action once."""

import json

import pytest
import yaml

from laststand.chaos.scenario.scenario_file import load_scenario
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName
from tests.docker.commands import ROOT, Commands

pytestmark = pytest.mark.docker

EVERY_ACTION = ROOT / "tests/docker/every_action.yaml"


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
    assert commands.containers() + commands.networks() == []


@pytest.mark.timeout(300)
def test_the_demo_reaches_its_end_five_times_in_a_row(commands: Commands) -> None:
    for _ in range(5):
        demo = ("run", "kip-966/last-replica-standing", "--era", "kip-966", "--driver", "docker", "--no-verify")
        commands.type(*demo)
        assert commands.containers() + commands.networks() == []


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_suite_and_a_replay(commands: Commands) -> None:
    suite = commands.directory / "two.yaml"
    suite.write_text("suite: two\neras: [kip-966]\nscenarios: [kip-497/leader-cut-off, kip-966/min-isr-change]\n")
    assert "2 cells: 2 as expected" in commands.type("run", str(suite), "--driver", "docker")
    [run] = (commands.directory / "store/kip-966/min-isr-change").glob("2*")
    commands.type("replay", str(run), "--driver", "docker", "--no-verify", "--out", str(commands.directory / "again"))
    for place in (run, commands.directory / "again"):
        assert yaml.safe_load((place / "cluster.yaml").read_text(encoding="utf-8"))["driver"] == "docker"
    assert commands.containers() + commands.networks() == []


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_every_action_bites(commands: Commands) -> None:
    commands.type("run", str(EVERY_ACTION), "--driver", "docker", "--era", "kip-966")
    [verdict] = (commands.directory / "store").rglob("verdict.json")
    assert json.loads(verdict.read_text(encoding="utf-8"))["verdict"] == "valid"
    assert commands.containers() == []


@pytest.mark.timeout(300)
def test_three_controllers_fail_over(commands: Commands) -> None:
    scenario = str(ROOT / "tests/docker/three_controllers.yaml")
    told = commands.type("run", scenario, "--driver", "docker", "--era", "kip-966", "--judge", "here")
    assert "kip-966  valid, 0 acks=all records lost" in told
    assert commands.containers() + commands.networks() == []


def test_the_scenario_has_every_action_of_containers() -> None:
    done = {type(step.action) for step in load_scenario(EVERY_ACTION).steps}
    offered = {kind for kind, row in actions.ACTION_SPECS.items() if DriverName.DOCKER not in row.refused}
    administration = {
        kind for kind in offered if issubclass(kind, actions.AdminAction | actions.Grant | actions.Revoke)
    }  # the same requests on every driver
    of_zookeeper = {actions.ExpireSession, actions.DeposeController}
    of_clients = {actions.Produce, actions.Transact, actions.Consume, actions.Member}
    assert offered - administration - of_zookeeper - of_clients <= done
