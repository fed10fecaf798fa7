"""The compose file as it is published: up to healthy, a record read back, faults, attaching, and an orderly end."""

import contextlib
import json
import os
import re
import signal
import socket
import ssl
import time
import urllib.parse
import urllib.request
from typing import Final

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from laststand.emulator.cluster.containers.compose import TOKEN_DIRECTORY
from laststand.emulator.rpc.certificates import FOLDER
from tests.docker.commands import Commands
from tests.docker.composed import PROJECT, compose, in_client, project

pytestmark = pytest.mark.docker

DEADLINE_S: Final = 60.0
BROKER_ON_HOST: Final = ("127.0.0.1", 19092)
KAFKA_ON_HOST: Final = "127.0.0.1:29092"
SCRAPE: Final = "import urllib.request as u; print(u.urlopen('http://broker-1:9464/metrics').read().decode())"


@pytest.mark.timeout(300)
def test_a_composed_cluster_serves_breaks_heals_and_ends(images: None) -> None:
    with project():
        in_client("topics", "create", "orders", "--replication-factor", "3")
        in_client("produce", "orders", stdin="one\ntwo\n")
        read = in_client("consume", "orders", "--from-beginning", "--max-messages", "2")
        assert read.splitlines()[:2] == ["one", "two"]
        assert "was killed" in in_client("chaos", "kill", "1")
        assert "listens" in in_client("chaos", "start", "1")
        assert "unsynced bytes" in in_client("chaos", "power-loss", "2", "--keep", "none")
        assert "incarnation 1 listens" in in_client("chaos", "start", "2")
        assert "links silent" in in_client("chaos", "partition", "0", "1")
        assert "of them answer" in in_client("chaos", "heal")
        assert "no answer at its address" in in_client("chaos", "disconnect", "1")
        assert "it answers at its address" in in_client("chaos", "connect", "1")
        again = compose("exec", "-T", "harness", "laststand", "attach", "--out", "/tmp/other")
        assert "to which nobody was attached yet" in again.stderr
        assert compose("exec", "-T", "harness", "test", "-e", "/tmp/other/standing").returncode == 1
        heartbeats = "{requests: BrokerHeartbeat, from: 1, to: controller}"
        in_client("chaos", "step", f"hold: {heartbeats}")
        await_health("broker-1", "NOT_SERVING")  # it is fenced, and hears of that
        in_client("chaos", "step", f"release: {heartbeats}")
        await_health("broker-1", "SERVING")
        scraped = compose("exec", "-T", "client", "python", "-c", SCRAPE)
        assert "kafka_server_replicamanager_partitioncount" in scraped.stdout, scraped.stderr
        assert "the cluster is down\n" in in_client("down")


@pytest.mark.timeout(300)
def test_nodes_with_tls_refuse_strangers_and_have_new_certificates_when_they_start_again(commands: Commands) -> None:
    made = commands.directory / "compose.yaml"
    made.write_text(commands.type("compose", "--tls"), encoding="utf-8")
    file = str(made)
    with project(file=file):
        in_client("topics", "create", "orders", "--replication-factor", "3", file=file)
        in_client("produce", "orders", stdin="one\n", file=file)
        assert "links silent" in in_client("chaos", "partition", "0", "1", file=file)
        assert "of them answer" in in_client("chaos", "heal", file=file)
        assert "links silent" in in_client("chaos", "cut", "host", "1", file=file)
        assert "of them answer" in in_client("chaos", "heal", file=file)
        settings = {"bootstrap.servers": KAFKA_ON_HOST, "log_level": 0}
        with pytest.raises(KafkaException):
            AdminClient(settings).list_topics(timeout=5)
        for name in ("authority", "host-client"):
            shown = compose("exec", "-T", "broker-0", "cat", f"{TOKEN_DIRECTORY}/{FOLDER}/{name}.pem", file=file).stdout
            (commands.directory / f"{name}.pem").write_text(shown, encoding="utf-8")
        certificate = str(commands.directory / "host-client.pem")
        settings |= {
            "security.protocol": "SSL",
            "ssl.ca.location": str(commands.directory / "authority.pem"),
            "ssl.certificate.location": certificate,
            "ssl.key.location": certificate,
        }
        assert "orders" in AdminClient(settings).list_topics(timeout=DEADLINE_S).topics
        before = certificate_shown()
        refused = "AuthenticationFailed address= mechanism=SSL reason=peer did not return a certificate"
        assert refused in compose("logs", "broker-0", file=file).stdout
        in_client("chaos", "kill", "0", file=file)
        in_client("chaos", "start", "0", file=file)
        assert certificate_shown() != before
        in_client("chaos", "step", "until: {partition: orders-0, isr: [0, 1, 2]}", file=file)
        assert in_client("consume", "orders", "--from-beginning", "--max-messages", "1", file=file).startswith("one\n")
        assert "the cluster is down\n" in in_client("down", file=file)


def certificate_shown() -> bytes:
    """Returns the certificate of broker 0, as whoever has none sees it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(BROKER_ON_HOST) as plain, context.wrap_socket(plain) as stream:
        shown = stream.getpeercert(binary_form=True)
        with contextlib.suppress(OSError):
            assert stream.recv(1) == b""
    assert shown is not None
    return shown


def test_a_file_and_a_setting_reach_the_nodes_and_whoever_attaches(commands: Commands) -> None:
    path = commands.directory / "server.properties"
    path.write_text("num.partitions=2\nlog.segment.bytes=4096\n")
    settings = {"LASTSTAND_PROPERTIES_FILE": str(path), "LASTSTAND_SET": "num.partitions=3"}
    with project("--scale", "harness=0", "--scale", "client=0", **settings):
        commands.type("attach", "--compose-project", PROJECT)
        order = json.loads((commands.directory / "store/standing/latest/supervisor.json").read_text(encoding="utf-8"))
        expected = {"num.partitions": "3", "log.segment.bytes": "4096", "min.insync.replicas": "2"}
        assert expected.items() <= order["properties"].items()
        events = [json.loads(line) for line in commands.type("events", "store/standing/latest").splitlines()]
        started = [each for each in events if each["type"] == "NodeStarted" and each["role"] != "harness"]
        assert len(started) == 4
        assert all(expected.items() <= dict(each["properties"]).items() for each in started)
        commands.type("down")


@pytest.mark.timeout(300)
def test_prometheus_of_our_own_image_scrapes_every_node(all_images: None) -> None:
    query = urllib.parse.urlencode({"query": "up == 1"})
    with project("--scale", "harness=0", "--scale", "client=0", COMPOSE_PROFILES="metrics"):
        deadline = time.monotonic() + DEADLINE_S
        nodes: set[str] = set()
        while nodes != {"controller", "broker-0", "broker-1", "broker-2"}:
            assert time.monotonic() < deadline, nodes
            with urllib.request.urlopen(f"http://127.0.0.1:9090/api/v1/query?{query}") as answer:
                nodes = {each["metric"]["node"] for each in json.load(answer)["data"]["result"]}


def await_health(service: str, expected: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while (
        told := compose("exec", "-T", service, "python", "-m", "laststand.emulator.node.health_check")
    ).stdout.strip() != expected:
        assert time.monotonic() < deadline, told.stdout + told.stderr


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_project_that_somebody_else_started_is_attached_to_broken_and_judged(commands: Commands) -> None:
    shell = commands.type
    # No session shall end because the machine is busy.
    with project("--scale", "harness=0", "--scale", "client=0", LASTSTAND_BROKER_SESSION_TIMEOUT_MS="12000"):
        assert compose("restart", "broker-1").returncode == 0
        assert "3 brokers and a controller serve" in shell("attach", "--compose-project", PROJECT)
        shell("topics", "create", "orders", "--replica-assignment", "0:1:2")
        shell("produce", "orders", stdin="one\ntwo\n")
        assert "was killed" in shell("chaos", "kill", "0")
        shell("chaos", "step", "until: {partition: orders-0, leader: 1, isr: [1, 2]}")
        assert "orders-0: leader 1" in shell("inspect", "orders-0")
        assert re.search(r"^ +0 +broker +down ", shell("status"), re.MULTILINE)
        shell("down")
        assert "VALID: " in shell("verify", "store/standing/latest"), "the process before the restart is on record, too"
        for node in (0, 1, 2, 100):
            assert (commands.directory / f"store/standing/latest/nodes/{node}/node.log").stat().st_size


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_whoever_does_not_see_the_volumes_works_through_a_helper_container(commands: Commands) -> None:
    shell = commands.type
    with project("--scale", "harness=0", "--scale", "client=0", LASTSTAND_BROKER_SESSION_TIMEOUT_MS="12000"):
        commands.variables["LASTSTAND_VOLUMES"] = "elsewhere"
        assert "direct or container" in shell("attach", "--compose-project", PROJECT, code=254)
        commands.variables["LASTSTAND_VOLUMES"] = "container"
        assert "3 brokers and a controller serve" in shell("attach", "--compose-project", PROJECT)
        run = commands.directory / "store/standing/latest"
        assert not (run / "events").is_symlink()
        again = shell("attach", "--compose-project", PROJECT, "--out", "other", code=254)
        assert "to which nobody was attached yet" in again
        shell("topics", "create", "orders", "--replication-factor", "3")
        shell("produce", "orders", stdin="one\ntwo\n")
        assert lost_bytes(shell("chaos", "power-loss", "2", "--keep", "none")) > 0
        row = next(line for line in shell("inspect", "orders-0").splitlines() if line.split()[0] == "2")
        assert row.split()[2:6] == ["down", "files", "0", "0"], row
        assert "incarnation 1 listens" in shell("chaos", "start", "2")
        shell("chaos", "step", "until: {partition: orders-0, isr: [0, 1, 2]}")
        shell("produce", "orders", stdin="three\n" * 2000)
        assert lost_bytes(shell("chaos", "power-loss", "1", "--keep", "torn")) > 0
        shell("chaos", "start", "1")
        assert "links silent" in shell("chaos", "partition", "0", "1")
        shell("chaos", "heal")
        shell("down")
        commands.wait_for_helpers_to_end()
        assert "VALID: " in shell("verify", "store/standing/latest")
        assert list(run.glob("nodes/*/data/orders-0/*.log"))


@pytest.mark.timeout(300)
def test_a_helper_container_ends_with_its_harness(commands: Commands) -> None:
    commands.variables["LASTSTAND_VOLUMES"] = "container"
    with project("--scale", "harness=0", "--scale", "client=0"):
        commands.type("attach", "--compose-project", PROJECT)
        [helper] = commands.helpers()
        listed = json.loads(commands.type("docker", "ps", "--json"))
        assert [each["is_abandoned"] for each in listed if each["name"] == helper] == [False]
        os.kill(json.loads(commands.type("status", "--json"))["supervisor_pid"], signal.SIGKILL)
        commands.wait_for_helpers_to_end()


def lost_bytes(told: str) -> int:
    found = re.search(r"([0-9]+) unsynced bytes", told)
    assert found is not None, told
    return int(found[1])
