"""Eras with ZooKeeper in containers: a run, and a composed cluster that is attached to from outside."""

import json
from typing import Final

import pytest

from laststand.emulator.zookeeper.transaction_log import TransactionLogReader
from tests.docker.commands import ROOT, Commands
from tests.docker.composed import PROJECT, compose, in_client, project, require_compose

pytestmark = [pytest.mark.docker, pytest.mark.spark, pytest.mark.timeout(300)]

EVERY_ACTION: Final = ROOT / "tests/docker/every_action_with_zookeeper.yaml"
COMPOSED: Final = {
    "COMPOSE_PROFILES": "zookeeper",
    "LASTSTAND_ERA": "kafka-3.9-zk",
    "LASTSTAND_BROKER_SESSION_TIMEOUT_MS": "12000",  # no session shall end because the machine is busy
}


def test_every_action_on_the_server_bites(commands: Commands, all_images: None) -> None:
    told = commands.type("run", str(EVERY_ACTION), "--driver", "docker")
    assert told.endswith("kafka-3.9-zk  valid, 0 acks=all records lost, as expected\n")
    assert commands.containers() + commands.networks() == []


def test_a_standing_cluster_stops_and_starts_again(commands: Commands, all_images: None) -> None:
    shell = commands.type
    assert "a ZooKeeper server serve" in shell("up", "--driver", "docker", "--era", "kafka-3.9-zk", "--brokers", "1")
    shell("topics", "create", "orders", "--config", "min.insync.replicas=1")
    shell("produce", "orders", stdin="one\n")
    shell("stop")
    assert commands.containers() + commands.networks() == []
    shell("start")
    assert shell("consume", "orders", "--from-beginning", "--max-messages", "1").startswith("one\n")
    assert "the cluster is down\n" in shell("down")
    assert commands.containers() + commands.networks() == []


def test_a_file_that_is_made_for_such_an_era_needs_no_profile(commands: Commands, all_images: None) -> None:
    made = commands.directory / "compose.yaml"
    made.write_text(commands.type("compose", "--brokers", "1", "--era", "kafka-3.9-zk"), encoding="utf-8")
    file = str(made)
    with project(file=file):
        in_client("topics", "create", "orders", "--config", "min.insync.replicas=1", file=file)
        in_client("produce", "orders", stdin="one\n", file=file)
        assert "controller: broker 0, controller epoch 1" in in_client("status", file=file)
        assert "the cluster is down\n" in in_client("down", file=file)


def test_a_broker_soon_says_that_its_project_has_no_server(images: None) -> None:
    require_compose()
    try:
        started = compose("up", "--wait", "broker-0", LASTSTAND_ERA="kafka-3.9-zk")
        told = compose("logs", "broker-0").stdout
    finally:
        compose("down", "--volumes", "--timeout", "5")
    assert started.returncode, started.stderr
    assert "in era kafka-3.9-zk that of a ZooKeeper server, by docker compose --profile zookeeper" in told


def test_a_composed_cluster_is_attached_to_broken_and_judged(commands: Commands, all_images: None) -> None:
    shell = commands.type
    commands.variables["LASTSTAND_VOLUMES"] = "container"
    with project("--scale", "controller=0", "--scale", "harness=0", "--scale", "client=0", **COMPOSED):
        assert compose("restart", "broker-1").returncode == 0
        assert "3 brokers and a ZooKeeper server serve" in shell("attach", "--compose-project", PROJECT)
        again = shell("attach", "--compose-project", PROJECT, "--out", "other", code=254)
        assert "to which nobody was attached yet" in again
        status = json.loads(shell("status", "--json"))
        [server] = [node for node in status["nodes"] if node["role"] == "zookeeper"]
        assert (server["state"], server["incarnation"]) == ("running", 0)
        shell("topics", "create", "orders", "--replica-assignment", "0:1:2")
        shell("produce", "orders", stdin="one\ntwo\n")
        assert "/controller  version 0" in shell("inspect", "/controller")
        assert "of broker 2 is over" in shell("chaos", "expire-session", "2")
        shell("chaos", "step", "until: {partition: orders-0, isr: [0, 1, 2]}")
        assert "was killed" in shell("chaos", "kill", "zookeeper")
        assert "incarnation 1 listens" in shell("chaos", "start", "zookeeper")
        assert "in a container syncs" in shell("chaos", "power-loss", "zookeeper", code=254)
        assert "it answers at its address" in (
            shell("chaos", "disconnect", "zookeeper") + shell("chaos", "connect", "zookeeper")
        )
        assert "links silent" in shell("chaos", "partition", "2", "zookeeper")
        shell("chaos", "heal")
        shell("chaos", "step", "until: {partition: orders-0, isr: [0, 1, 2]}")
        shell("produce", "orders", stdin="three\n")
        shell("down")
        commands.wait_for_helpers_to_end()
        verdict = shell("verify", "store/standing/latest")
        assert "VALID: " in verdict
        assert "3 acked, 0 lost" in verdict
    run = commands.directory / "store/standing/latest"
    told = {
        json.loads(line).get("metadata_offset", 0)
        for path in (run / "events").glob("100-*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    }
    logged = TransactionLogReader(run / "nodes/100/data").read_new()
    assert told - {0} == {each.zxid for each in logged}
