"""A cluster with ``--tls``, as its own clients meet it, as clients of Kafka do, and as another user of the machine."""

import asyncio
import json
import os
import ssl
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from aiokafka.helpers import create_ssl_context
from confluent_kafka import KafkaError, Producer

from laststand.emulator.cluster.layout import token_file
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.rpc.authority import Authority
from laststand.emulator.rpc.certificates import FOLDER, HARNESS, Certificates
from tests.certificates import Authority as OtherAuthority
from tests.cluster.test_standing import FAST, Terminal, open_terminal
from tests.cluster.test_strangers import NEVER, listeners, outcomes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

TIMEOUT_S = 30
DEADLINE_S = 60.0
FAILED_AUTHENTICATION = "kafka_server_socketservermetrics_failed_authentication"


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    directory = tmp_path_factory.mktemp("tls")
    for path in (directory, *directory.parents[:2]):
        path.chmod(0o755)  # as a home directory often is
    with open_terminal(directory) as terminal:
        terminal.type("up", "--tls", "--kafka", *FAST)
        terminal.type("topics", "create", "orders", "--replication-factor", "3")
        terminal.type("produce", "orders", stdin="one\ntwo\n")
        yield terminal


@pytest.fixture
def servers(terminal: Terminal) -> str:
    found = terminal.status()["bootstrap_servers"]
    assert isinstance(found, dict)
    return ",".join(found["kafka"])


def shown(terminal: Terminal, name: str = "kafka") -> Certificates:
    return Certificates(terminal.latest / FOLDER, name)


def produced(servers: str, authority: Path, certificate: Path) -> KafkaError | None:
    """Returns the error of a record that librdkafka produces."""
    errors: list[KafkaError | None] = []
    settings: dict[str, object] = {
        "bootstrap.servers": servers,
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority),
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(certificate),
        "message.timeout.ms": 5000,
        "log_level": 0,
    }
    producer = Producer(settings)
    producer.produce("orders", b"record", on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT_S)
    return errors[0]


async def send(servers: str, authority: Path, certificate: Path) -> None:
    """Sends a record with aiokafka."""
    context = create_ssl_context(cafile=str(authority), certfile=str(certificate), keyfile=str(certificate))
    producer = AIOKafkaProducer(bootstrap_servers=servers, security_protocol="SSL", ssl_context=context)
    try:
        await producer.start()
        await producer.send_and_wait("orders", b"record")
    finally:
        await producer.stop()


def failures(terminal: Terminal) -> list[dict[str, object]]:
    """Returns the events about clients of Kafka, and callers of gRPC, that were refused so far."""
    events = map(json.loads, terminal.type("events", str(terminal.latest)).splitlines())
    return [event for event in events if event["type"] == "AuthenticationFailed"]


def reasons(terminal: Terminal) -> set[object]:
    return {event["reason"] for event in failures(terminal)}


def failed_authentications(terminal: Terminal) -> float:
    """Returns what the nodes' metrics count."""
    nodes = terminal.status()["nodes"]
    assert isinstance(nodes, list)
    certificates = shown(terminal, HARNESS)
    context = ssl.create_default_context(cafile=str(certificates.authority))
    context.load_cert_chain(certificates.client)
    found = 0.0
    for node in nodes:
        with urllib.request.urlopen(node["metrics_url"], context=context, timeout=TIMEOUT_S) as answer:
            lines = answer.read().decode().splitlines()
        found += sum(float(line.split()[1]) for line in lines if line.startswith(f"{FAILED_AUTHENTICATION}_total "))
    return found


def test_clients_that_are_certified_are_served_and_others_are_refused_with_the_reason(
    terminal: Terminal, servers: str, tmp_path: Path
) -> None:
    own = shown(terminal)
    assert produced(servers, own.authority, own.client) is None
    asyncio.run(send(servers, own.authority, own.client))
    assert len(terminal.type("consume", "orders", "--from-beginning", "--max-messages", "4").splitlines()) == 4

    authority = Authority.read_or_make(own.authority.parent)
    authority.issue_expired("late")
    expired = shown(terminal, "late").client
    foreign = OtherAuthority(tmp_path, "foreign").issue("kafka")
    for refused in (expired, foreign):
        assert produced(servers, own.authority, refused) is not None
        with pytest.raises(KafkaConnectionError):
            asyncio.run(send(servers, own.authority, refused))
    wrong_name = tmp_path / "foreign.pem"
    assert produced(servers, wrong_name, own.client) is not None, "a client that does not trust the brokers"
    deadline = time.monotonic() + DEADLINE_S
    while not {"certificate has expired", "unable to get local issuer certificate"} <= reasons(terminal):
        assert time.monotonic() < deadline, failures(terminal)
    assert produced(servers, own.authority, own.client) is None


def test_certificates_are_renewed_while_nodes_and_clients_run(terminal: Terminal, servers: str) -> None:
    own = shown(terminal)
    before = [shown(terminal, f"broker-{node}").server.read_bytes() for node in range(3)]
    assert "new connections show it" in terminal.type("chaos", "renew-certificate", "0", "1", "2", "controller")
    assert before != [shown(terminal, f"broker-{node}").server.read_bytes() for node in range(3)]
    assert produced(servers, own.authority, own.client) is None
    terminal.type("chaos", "kill", "1")
    terminal.type("chaos", "start", "1")
    terminal.type("chaos", "step", "until: {partition: orders-0, isr: [0, 1, 2]}")
    terminal.type("produce", "orders", stdin="three\n")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_can_neither_read_nor_move_anything(terminal: Terminal) -> None:
    before, run, refused = listeners(terminal.mark), terminal.latest, failed_authentications(terminal)
    files = [*sorted((run / FOLDER).iterdir()), token_file(run), run / "events", run / "nodes"]
    found = outcomes(
        {
            "ports": sorted({str(port) for _, port in before}),
            "paths": [str(run), str(run / FOLDER), *map(str, files)],
            "sockets": [str(run / "supervisor.sock")],
            "down": [],
        }
    )
    assert len(found) > len(before) * 10
    assert [each for each in found if each[2].startswith(NEVER) or each[2].endswith(NEVER)] == []
    assert listeners(terminal.mark) == before
    # The controller, which has no listener for clients of Kafka: nobody says there where a stranger comes from.
    by_grpc = {(each["reason"], each["address"]) for each in failures(terminal) if each["node"] == CONTROLLER}
    assert ("peer did not return a certificate", "") in by_grpc
    kinds = Counter((each["node"], each["mechanism"], each["reason"]) for each in failures(terminal))
    assert max(kinds.values()) <= 2, "each is written once for a host, which gRPC does not know"
    assert failed_authentications(terminal) - refused > sum(kinds.values())
    assert len(terminal.type("consume", "orders", "--from-beginning", "--max-messages", "2").splitlines()) == 2
