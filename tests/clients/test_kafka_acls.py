"""Kafka's ``kafka-acls.sh``, unmodified, as a user who proves by SCRAM who it is."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from laststand.emulator.core.properties import STANDARD_AUTHORIZER
from laststand.standing_cluster import StandingCluster
from tests.clients.programs import java

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(600)]

SETTINGS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin;User:broker-0;User:broker-1;User:broker-2",
    "listener.security.protocol.map": "KAFKA:SASL_PLAINTEXT",
    "sasl.jaas.config": 'PlainLoginModule required user_admin="admin-secret";',
}
PREFIXED = ("--resource-pattern-type", "prefixed")
CLIENT = """\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-256
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="admin" \
password="admin-secret";
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandingCluster]:
    with StandingCluster(store=tmp_path_factory.mktemp("store"), kafka=True, settings=SETTINGS) as standing:
        yield standing


def test_entries_are_added_listed_and_removed(guarded: StandingCluster, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(CLIENT)

    def acls(*arguments: str) -> str:
        place = ("--bootstrap-server", guarded.bootstrap_servers, "--command-config", str(config))
        command = java("kafka-tools-4.2.0", "org.apache.kafka.tools.AclCommand", *place, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    acls("--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "ord", *PREFIXED)
    listed = acls("--list")
    assert "resourceType=TOPIC, name=ord, patternType=PREFIXED" in listed
    assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in listed
    acls("--remove", "--force", "--topic", "ord", *PREFIXED)
    assert "User:alice" not in acls("--list")
