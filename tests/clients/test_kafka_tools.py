"""Kafka's command-line tools, unmodified, against one cluster; each says what it says of Kafka's brokers."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from laststand.emulator.verification.verdict.report import Verdict
from laststand.standing_cluster import StandingCluster
from tests.clients.programs import java

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(600)]

_PATIENCE_S = 120
_RECORDS = 200


def tool(cluster: StandingCluster, name: str, *arguments: str, standard_input: str = "") -> str:
    """Runs a tool by the name of its class, and returns what it printed."""
    command = java("kafka-tools-4.2.0", name, "--bootstrap-server", cluster.bootstrap_servers, *arguments)
    done = subprocess.run(
        command, input=standard_input, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def topics(cluster: StandingCluster, *arguments: str) -> str:
    return tool(cluster, "org.apache.kafka.tools.TopicCommand", *arguments)


@pytest.fixture(scope="module", autouse=True)
def orders(cluster: StandingCluster) -> None:
    """A topic with two partitions and records, by kafka-topics and kafka-producer-perf-test."""
    options = ("--partitions", "2", "--replication-factor", "3", "--config", "min.insync.replicas=2")
    assert "Created topic orders." in topics(cluster, "--create", "--topic", "orders", *options)
    said = tool(
        cluster,
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "orders", "--num-records", str(_RECORDS), "--record-size", "100", "--throughput", "-1"),
        *("--command-property", "acks=all"),
    )
    assert f"{_RECORDS} records sent" in said


def test_topics(cluster: StandingCluster) -> None:
    topics(cluster, "--create", "--topic", "short-lived", "--partitions", "1", "--replication-factor", "1")
    assert "short-lived" in topics(cluster, "--list").split()
    topics(cluster, "--alter", "--topic", "short-lived", "--partitions", "2")
    described = topics(cluster, "--describe", "--topic", "short-lived")
    assert "PartitionCount: 2" in described
    assert re.search(r"Partition: 1\tLeader: \d\tReplicas: \d\tIsr: \d\tElr: \tLastKnownElr: ", described)
    topics(cluster, "--delete", "--topic", "short-lived")
    assert "short-lived" not in topics(cluster, "--list").split()


def test_configs(cluster: StandingCluster) -> None:
    configs, topic = "kafka.admin.ConfigCommand", ("--entity-type", "topics", "--entity-name", "orders")
    tool(cluster, configs, "--alter", *topic, "--add-config", "max.message.bytes=2000000,segment.ms=60000")
    described = tool(cluster, configs, "--describe", *topic)
    assert "segment.ms=60000" in described
    assert "max.message.bytes=2000000" in described
    assert "min.insync.replicas=2" in described
    brokers = tool(cluster, configs, "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all")
    assert "broker.session.timeout.ms=6000 sensitive=false" in brokers


def test_quotas_of_clients(cluster: StandingCluster) -> None:
    configs, entity = "kafka.admin.ConfigCommand", ("--entity-type", "clients", "--entity-name", "app")
    tool(cluster, configs, "--alter", *entity, "--add-config", "producer_byte_rate=1048576")
    described = tool(cluster, configs, "--describe", *entity)
    assert "Quota configs for client-id 'app' are producer_byte_rate=1048576.0" in described
    tool(cluster, configs, "--alter", *entity, "--delete-config", "producer_byte_rate")
    assert "producer_byte_rate" not in tool(cluster, configs, "--describe", *entity)


def test_leader_election(cluster: StandingCluster) -> None:
    election = "org.apache.kafka.tools.LeaderElectionCommand"
    tool(cluster, election, "--election-type", "preferred", "--all-topic-partitions")
    said = tool(cluster, election, "--election-type", "unclean", "--topic", "orders", "--partition", "0")
    assert "Valid replica already elected for partitions orders-0" in said


def test_reassign_partitions(cluster: StandingCluster, tmp_path: Path) -> None:
    reassign = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    topics(cluster, "--create", "--topic", "moving", "--replica-assignment", "0:1")
    moves = tmp_path / "moves.json"
    moves.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "moving", "partition": 0, "replicas": [2, 1]}]})
    )
    plan = ("--reassignment-json-file", str(moves))
    assert "Successfully started partition reassignment for moving-0" in tool(cluster, reassign, *plan, "--execute")
    cluster.until("partition: moving-0, replicas: [2, 1]")
    assert "Reassignment of partition moving-0 is completed." in tool(cluster, reassign, *plan, "--verify")
    assert "No partition reassignments found." in tool(cluster, reassign, "--list")


def test_features(cluster: StandingCluster) -> None:
    features = "org.apache.kafka.tools.FeatureCommand"
    level = re.compile(r"eligible.leader.replicas.version\t.*FinalizedVersionLevel: (\d)")
    for verb, wanted in (("downgrade", "0"), ("upgrade", "1")):
        tool(cluster, features, verb, "--feature", f"eligible.leader.replicas.version={wanted}")
        found = level.search(tool(cluster, features, "describe"))
        assert found is not None
        assert found[1] == wanted


def test_metadata_quorum(cluster: StandingCluster) -> None:
    quorum = "org.apache.kafka.tools.MetadataQuorumCommand"
    status = tool(cluster, quorum, "describe", "--status")
    assert re.search(r"LeaderId: +100\n", status)
    assert len(re.findall(r"\tObserver", tool(cluster, quorum, "describe", "--replication"))) == 3


def test_log_dirs(cluster: StandingCluster) -> None:
    said = tool(cluster, "org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", "orders")
    hosted = {
        broker["broker"]: {each["partition"] for each in broker["logDirs"][0]["partitions"]}
        for broker in json.loads(said.splitlines()[-1])["brokers"]
    }
    assert hosted == {node: {"orders-0", "orders-1"} for node in range(3)}


def test_offsets_and_deletion_of_records(cluster: StandingCluster, tmp_path: Path) -> None:
    tool_name, offsets = "org.apache.kafka.tools.DeleteRecordsCommand", "org.apache.kafka.tools.GetOffsetShell"
    ends = dict(line.rsplit(":", 1) for line in tool(cluster, offsets, "--topic", "orders").split())
    assert sum(map(int, ends.values())) == _RECORDS
    place, end = next((place, int(end)) for place, end in ends.items() if int(end))
    below = tmp_path / "below.json"
    partition = {"topic": "orders", "partition": int(place.rpartition(":")[2]), "offset": end // 2}
    below.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    said = tool(cluster, tool_name, "--offset-json-file", str(below))
    assert f"partition: {place.replace(':', '-')}\tlow_watermark: {end // 2}" in said
    earliest = tool(cluster, offsets, "--topic", "orders", "--time", "-2").split()
    assert f"{place}:{end // 2}" in earliest


def test_verifiable_and_console_producers(cluster: StandingCluster) -> None:
    verifiable = "org.apache.kafka.tools.VerifiableProducer"
    said = tool(cluster, verifiable, "--topic", "orders", "--max-messages", "50", "--acks", "-1").splitlines()
    assert sum('"name":"producer_send_success"' in line for line in said) == 50
    topics(cluster, "--create", "--topic", "by-hand", "--partitions", "1", "--replication-factor", "3")
    tool(cluster, "org.apache.kafka.tools.ConsoleProducer", "--topic", "by-hand", standard_input="a record\n")
    reading = ("--partition", "0", "--offset", "earliest", "--max-messages", "1")
    consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    assert tool(cluster, consumer, "--topic", "by-hand", *reading) == "a record\n"


def test_consumer_groups(cluster: StandingCluster) -> None:
    groups = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    reading = ("--topic", "orders", "--group", "billing", "--from-beginning", "--max-messages", "10")
    tool(cluster, "org.apache.kafka.tools.consumer.ConsoleConsumer", *reading)
    assert tool(cluster, groups, "--list").split() == ["billing"]
    reset = ("--reset-offsets", "--group", "billing", "--topic", "orders", "--to-latest", "--execute")
    tool(cluster, groups, *reset)
    described = tool(cluster, groups, "--describe", "--group", "billing")
    assert len(re.findall(r"billing +orders +[01] .*?(\d+) +\1 +0 ", described)) == 2
    tool(cluster, groups, "--delete", "--group", "billing")
    assert tool(cluster, groups, "--list").split() == []


def test_nothing_that_was_acknowledged_to_them_is_lost(cluster: StandingCluster) -> None:
    report = cluster.verify()
    assert report.verdict is Verdict.VALID, report.unknown_reasons
    assert report.lost_records == 0
