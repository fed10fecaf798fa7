"""Configuration from the environment: Kafka's property names, and an incarnation that the node draws itself."""

from pathlib import Path

import pytest
from cryptography import x509

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import NodeId, NodeRole
from laststand.emulator.node.environment import ServerConfig, config_from_environment, server_from_environment
from laststand.emulator.rpc.certificates import Certificates


def variables(directory: Path, **more: str) -> dict[str, str]:
    given = {
        "NODE_ID": "1",
        "ADDRESSES": "100=toxiproxy:20301,0=toxiproxy:20302",
        "DIRECTORY": str(directory),
        "RUN": "composed",
        "CLUSTER_ID": "a-cluster",
        "PORT": "9092",
        "TOKEN_FILE": str(directory / "token"),
        **more,
    }
    return {"PATH": "/bin", **{f"LASTSTAND_{name}": text for name, text in given.items()}}


def test_properties_have_kafkas_names(tmp_path: Path) -> None:
    given = variables(tmp_path, BROKER_SESSION_TIMEOUT_MS="2000", ERA="kafka-3.9", SET="unclean_detection=on")
    config = config_from_environment(NodeRole.BROKER, given)
    assert config.node_properties().broker_session_timeout_ms == 2000
    assert not config.switches.elr
    assert config.switches.unclean_detection
    assert config.addresses == {100: "toxiproxy:20301", 0: "toxiproxy:20302"}
    assert config.metrics_port is None


def test_a_setting_counts_before_a_variable_and_that_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("# of every node\n\nmin.insync.replicas = 1\nnum.partitions=3\nreplica.lag.time.max.ms=5\n")
    given = variables(
        tmp_path,
        PROPERTIES_FILE=str(path),
        NUM_PARTITIONS="4",
        MIN_INSYNC_REPLICAS="3",
        SET="elr=off, min.insync.replicas=2",
    )
    config = config_from_environment(NodeRole.BROKER, given)
    found = config.node_properties()
    assert (found.replica_lag_time_max_ms, found.num_partitions, found.min_insync_replicas) == (5, 4, 2)
    assert not config.switches.elr


@pytest.mark.parametrize("line", ["min.insync.replicas", "no.such.property=1"])
def test_a_mistake_in_the_file_names_the_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"num.partitions=3\n{line}\n")
    with pytest.raises(ConfigError, match=f"{path}:2"):
        config_from_environment(NodeRole.BROKER, variables(tmp_path, PROPERTIES_FILE=str(path)))


def test_a_client_of_kafka_has_a_port_behind_that_of_nodes_and_addresses_of_its_own(tmp_path: Path) -> None:
    assert config_from_environment(NodeRole.BROKER, variables(tmp_path)).kafka is None
    clients = "network 0=toxiproxy:29202,1=toxiproxy:29203\nhost 0=127.0.0.1:29092,1=127.0.0.1:29093\n"
    config = config_from_environment(NodeRole.BROKER, variables(tmp_path, KAFKA_CLIENTS=clients)).kafka
    assert config is not None
    assert config.history == f"{tmp_path}/history/kafka-1-0.packed"
    assert [(each.client_id, each.port, each.advertised) for each in config.listeners] == [
        (1001, 9093, {0: "toxiproxy:29202", 1: "toxiproxy:29203"}),
        (1002, 9094, {0: "127.0.0.1:29092", 1: "127.0.0.1:29093"}),
    ]


def test_an_incarnation_follows_those_that_left_events(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    first = config_from_environment(NodeRole.BROKER, variables(tmp_path))
    Path(first.event_file).touch()
    (tmp_path / "events/10-7.jsonl").touch()
    assert (first.incarnation, config_from_environment(NodeRole.BROKER, variables(tmp_path)).incarnation) == (0, 1)


@pytest.mark.parametrize(
    ("variable", "text", "complaint"),
    [
        ("NODE_ID", "one", "LASTSTAND_NODE_ID=one"),
        ("RUN", "", "LASTSTAND_RUN"),
        ("ADDRESSES", "toxiproxy", "NODE=HOST:PORT"),
        ("KAFKA_CLIENTS", "host 127.0.0.1:29092", "LASTSTAND_KAFKA_CLIENTS=127.0.0.1:29092"),
        ("KAFKA_CLIENTS", "host", "LASTSTAND_KAFKA_CLIENTS=host"),
        ("NO_SUCH_PROPERTY", "1", "LASTSTAND_NO_SUCH_PROPERTY"),
        ("MIN_INSYNC_REPLICAS", "0", "min.insync.replicas"),
        ("ERA", "kafka-7", "kafka-7"),
        ("SET", "elf=off", "elf"),
        ("PROPERTIES_FILE", "/nowhere/server.properties", "LASTSTAND_PROPERTIES_FILE=/nowhere/server.properties"),
    ],
)
def test_a_mistake_names_the_variable(tmp_path: Path, variable: str, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config_from_environment(NodeRole.BROKER, variables(tmp_path, **{variable: text}))
    assert complaint in str(refused.value)


def test_a_broker_of_an_era_with_zookeeper_reaches_itself_and_departs_quickly(tmp_path: Path) -> None:
    given = variables(tmp_path, ERA="kafka-3.9-zk", SET="controller_epoch_fence=off,elr=off")
    config = config_from_environment(NodeRole.BROKER, given)
    assert config.zookeeper is not None
    assert not config.zookeeper.rules.controller_epoch_fence
    assert config.addresses[NodeId(1)] == "127.0.0.1:9092"
    assert config.properties["controlled.shutdown.retry.backoff.ms"] == "200"
    patient = variables(tmp_path, ERA="kafka-3.9-zk", CONTROLLED_SHUTDOWN_RETRY_BACKOFF_MS="700")
    assert (
        config_from_environment(NodeRole.BROKER, patient).node_properties().controlled_shutdown_retry_backoff_ms == 700
    )


def test_an_era_with_zookeeper_has_no_controller_and_no_other_a_server(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--profile zookeeper up --wait --scale controller=0"):
        config_from_environment(NodeRole.CONTROLLER, variables(tmp_path, ERA="kafka-3.9-zk"))
    with pytest.raises(ConfigError, match="LASTSTAND_ERA=kip-966 is not allowed; expected an era with ZooKeeper"):
        server_from_environment(variables(tmp_path))


def test_a_server_keeps_everything_in_the_controllers_place(tmp_path: Path) -> None:
    given = variables(tmp_path, ERA="kafka-2.6-zk", BROKER_SESSION_TIMEOUT_MS="3000")
    config = server_from_environment(given)
    assert config == ServerConfig(directory=tmp_path / "nodes/100", port=9092, session_timeout_ms=3000)


def test_nodes_that_speak_tls_share_an_authority_and_have_certificates_of_their_own(tmp_path: Path) -> None:
    given = {"SECURITY_INTER_BROKER_PROTOCOL": "SSL"}
    configs = [
        config_from_environment(NodeRole.BROKER, variables(tmp_path, **given, NODE_ID=node)) for node in ("1", "2")
    ]
    assert sorted(path.name for path in (tmp_path / "tls").iterdir()) == [
        "authority.key",
        "authority.pem",
        *(f"broker-{node}{end}.pem" for node in (1, 2) for end in ("-client", "")),
    ]
    for config in configs:
        certificates = config.token().certificates
        assert certificates is not None
        assert config.node_properties().ssl_keystore_location == str(certificates.server)
    plain = config_from_environment(NodeRole.BROKER, variables(tmp_path))
    with pytest.raises(ConfigError, match="PLAINTEXT where there are none"):
        plain.token()


def test_clients_of_kafka_have_certificates_that_stay_and_reach_brokers_by_the_names_that_they_have(
    tmp_path: Path,
) -> None:
    texts = {
        "SECURITY_INTER_BROKER_PROTOCOL": "SSL",
        "LISTENER_SECURITY_PROTOCOL_MAP": "KAFKA:SSL",
        "SSL_CLIENT_AUTH": "required",
        "KAFKA_CLIENTS": "\nnetwork 1=toxiproxy:29203\n\nhost 1=127.0.0.1:29093",
    }
    config = config_from_environment(NodeRole.BROKER, variables(tmp_path, **texts))
    certificate = x509.load_pem_x509_certificate(Path(config.node_properties().ssl_keystore_location).read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["broker-1", "localhost", "toxiproxy"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    shown = [Certificates(tmp_path / "tls", name).client.read_bytes() for name in ("network", "host")]
    config_from_environment(NodeRole.BROKER, variables(tmp_path, **texts))
    assert shown == [Certificates(tmp_path / "tls", name).client.read_bytes() for name in ("network", "host")]


def test_a_node_gets_the_addresses_of_several_controllers(tmp_path: Path) -> None:
    assert config_from_environment(NodeRole.BROKER, variables(tmp_path)).controller_ids == (100,)
    config = config_from_environment(NodeRole.CONTROLLER, variables(tmp_path, CONTROLLER_IDS="100,101,102"))
    assert config.controller_ids == (100, 101, 102)


@pytest.mark.parametrize(
    ("ids", "era"), [("100,102", "kip-966"), ("1", "kip-966"), ("100, 101", "kip-966"), ("100,101", "kafka-3.9-zk")]
)
def test_controllers_that_cannot_be_are_refused(tmp_path: Path, ids: str, era: str) -> None:
    with pytest.raises(ConfigError, match="LASTSTAND_CONTROLLER_IDS"):
        config_from_environment(NodeRole.BROKER, variables(tmp_path, CONTROLLER_IDS=ids, ERA=era))
