"""Clients of Kafka of brokers in containers: on this machine and on the network, behind links that break one by one."""

import asyncio
import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Final

import pytest
from aiokafka.errors import KafkaError

from tests.cluster.test_kafka_clients import produce
from tests.docker.commands import FAST, Commands
from tests.docker.composed import PROJECT, project

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

IN_CONTAINER: Final = """
import sys
from kafka import KafkaConsumer, KafkaProducer

producer = KafkaProducer(bootstrap_servers=sys.argv[1], client_id="inside", acks="all", retries=100)
for _ in range(10):
    producer.send("orders", b"from the network").get(timeout=60)
consumer = KafkaConsumer(
    "orders", bootstrap_servers=sys.argv[1], client_id="inside", auto_offset_reset="earliest"
)
print([next(consumer).value.decode() for _ in range(20)].count("from the network"))
"""
FULL_ISR: Final = "until: {partition: orders-0, isr: [0, 1, 2]}"
DEADLINE_S: Final = 60.0


@pytest.mark.parametrize("access", ["direct", "container"])
def test_whoever_is_on_the_network_and_whoever_is_on_this_machine_have_links_of_their_own(
    commands: Commands, access: str
) -> None:
    shell = commands.type
    commands.variables["LASTSTAND_VOLUMES"] = access
    with project("--scale", "harness=0", "--scale", "client=0", LASTSTAND_BROKER_SESSION_TIMEOUT_MS="12000"):
        assert "bootstrap.servers=127.0.0.1:29092," in shell("attach", "--compose-project", PROJECT)
        shell("topics", "create", "orders", "--replica-assignment", "0:1:2")
        send("127.0.0.1:29092")
        shell("chaos", "cut", "host", "0")
        with pytest.raises(KafkaError):
            send("127.0.0.1:29093")  # broker 0 leads
        assert produce_and_consume_in_container("toxiproxy:29202").split() == ["10"]
        shell("chaos", "heal")
        shell("chaos", "kill", "0")
        shell("chaos", "step", "until: {partition: orders-0, leader: 1}")
        send("127.0.0.1:29093")
        shell("chaos", "start", "0")
        shell("chaos", "step", FULL_ISR)
        assert acked(commands) == {"outside": 20, "inside": 10}
        shell("down")
        assert "30 acked, 0 lost" in judged(commands)
        commands.wait_for_helpers_to_end()


def test_clients_of_a_cluster_that_this_machine_started(commands: Commands) -> None:
    shell = commands.type
    assert "every container has an address of its own" in shell(
        "up", "--driver", "docker", "--kafka-port", "9092", code=254
    )
    shell("up", "--driver", "docker", "--kafka-client", "app", "--kafka-client", "spark", *FAST)
    shell("topics", "create", "orders", "--replica-assignment", "0:1:2")
    send(bootstrap_servers(commands, "app"))
    shell("chaos", "cut", "app", "0")
    with pytest.raises(KafkaError):
        send(bootstrap_servers(commands, "app"))
    send(bootstrap_servers(commands, "spark"))
    shell("chaos", "heal")
    shell("stop")
    shell("start")
    send(bootstrap_servers(commands, "app"))
    assert acked(commands) == {"outside": 30}
    shell("down")
    assert "30 acked, 0 lost" in judged(commands)


def send(servers: str) -> None:
    """Has ten records acknowledged.

    Raises:
        KafkaError: one was not.
    """
    asyncio.run(produce(servers, 10, client_id="outside", request_timeout_ms=4000))


def produce_and_consume_in_container(servers: str) -> str:
    """Sends ten records, reads twenty, and returns how many came from this machine."""
    package = importlib.util.find_spec("kafka")
    assert package is not None
    assert package.origin is not None
    command = [
        *("docker", "run", "--rm", "--network", f"{PROJECT}_cluster"),
        *("--volume", f"{Path(package.origin).parent}:/packages/kafka:ro", "--env", "PYTHONPATH=/packages"),
        *("laststand", "python", "-c", IN_CONTAINER, servers),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def bootstrap_servers(commands: Commands, client: str) -> str:
    return ",".join(json.loads(commands.type("status", "--json"))["bootstrap_servers"][client])


def acked(commands: Commands) -> dict[str, int]:
    """Returns how many records clients were acknowledged, by client id."""
    told: dict[str, int] = {}
    for each in json.loads(commands.type("clients", "--json")):
        told[each["client_id"]] = told.get(each["client_id"], 0) + each["acked"]
    return {client: count for client, count in told.items() if count}


def judged(commands: Commands) -> str:
    told = commands.type("verify", "--judge", "here", "store/standing/latest")
    assert "VALID: " in told
    return told
