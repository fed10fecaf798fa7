"""A node's configuration from its environment, for containers that somebody else starts: docker compose, for one.

A container that is started again has the same environment, so such a node chooses its incarnation itself: the next
number after those whose event files it finds. Variables begin with ``LASTSTAND_``:

======================  ============================================================================
``NODE_ID``             brokers are 0..N-1, the controller is 100, several are 100 and up
``CONTROLLER_IDS``      of all controllers, where there are several: ``100,101,102``
``ADDRESSES``           where this node reaches each other one: ``100=toxiproxy:20000,1=toxiproxy:20103``
``CONTROLLER_ADDRESS``  where the controller listens itself: before a broker's first start, its host must be there
``DIRECTORY``           the run's; ``nodes/<id>`` and ``events`` are in it
``RUN``, ``ERA``        id of the run; its protocol, by default ``kip-966``
``CLUSTER_ID``          a node refuses data of another cluster
``SET``                 switches and properties, such as ``elr=off,min.insync.replicas=2``
``PROPERTIES_FILE``     more properties, a line ``min.insync.replicas=2`` each; ``#`` begins a comment
``PORT``                where to listen
``METRICS_PORT``        where ``/metrics`` is served
``KAFKA_CLIENTS``       clients of Apache Kafka that a broker serves, at the ports behind ``PORT``; a line for each says
                        where it reaches the brokers: ``host 0=127.0.0.1:29092,1=127.0.0.1:29093``
``TOKEN_FILE``          holds the cluster's token, mode 0600; the first node makes it where the others see it, and
                        beside it an authority of certificates, with ``security.inter.broker.protocol=SSL``
======================  ============================================================================

Every other variable is a property: ``LASTSTAND_BROKER_SESSION_TIMEOUT_MS`` is ``broker.session.timeout.ms``. ``SET``
overrides such a variable, and the variable overrides the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from laststand.emulator.core.address import host_and_port
from laststand.emulator.core.eras import era_rules, plain_switches, with_rule
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.packed.layout import SUFFIX
from laststand.emulator.core.properties import is_node_property, node_properties
from laststand.emulator.core.release import check_metadata_version
from laststand.emulator.core.requester import node_name
from laststand.emulator.core.switches import DEFAULT_ERA, Switches
from laststand.emulator.core.types import CLIENT_ID, BrokerId, ClusterKind, NodeId, NodeRole, kafka_client_ids
from laststand.emulator.node.config import (
    KafkaConfig,
    KafkaListenerConfig,
    NodeConfig,
    with_quick_shutdown,
    zookeeper_config,
)
from laststand.emulator.rpc.certificates import FOLDER, Certificates
from laststand.emulator.rpc.run_token import RunToken
from laststand.emulator.storage.line_file import line_files

PREFIX: Final = "LASTSTAND_"
EVERY_INTERFACE: Final = "0.0.0.0"

PROPERTIES_FILE: Final = "PROPERTIES_FILE"
TOKEN_FILE: Final = "TOKEN_FILE"
CONTROLLER_ADDRESS: Final = "CONTROLLER_ADDRESS"
CONTROLLER_IDS: Final = "CONTROLLER_IDS"
KAFKA_CLIENTS: Final = "KAFKA_CLIENTS"

_OWN: Final = frozenset(
    {
        *("NODE_ID", "ADDRESSES", "DIRECTORY", "RUN", "ERA", "CLUSTER_ID", "SET", "PORT", "METRICS_PORT", "READY_FD"),
        PROPERTIES_FILE,
        TOKEN_FILE,
        CONTROLLER_ADDRESS,
        CONTROLLER_IDS,
        KAFKA_CLIENTS,
    }
)
_CONTROLLER: Final = NodeId(100)


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """The start parameters of the ZooKeeper server in the controller's place.

    Attributes:
        directory: the directory of all its files.
        port: port to listen on.
        session_timeout_ms: of its clients, in milliseconds.
    """

    directory: Path
    port: int
    session_timeout_ms: int


def config_from_environment(role: NodeRole, environment: Mapping[str, str]) -> NodeConfig:
    """Returns the configuration of a node's next incarnation.

    Raises:
        ConfigError: a variable is missing, unknown, or has a value that is not allowed, or the era has ZooKeeper and
            no controller.
    """
    given = _given(environment)
    rules, properties = rules_from(given), properties_from(given, of_file=_read(given))
    has_zookeeper = rules.kind is ClusterKind.ZOOKEEPER
    if has_zookeeper and role is NodeRole.CONTROLLER:
        expected = (
            "an era with a controller; this one has a ZooKeeper server in its place: "
            "docker compose --profile zookeeper up --wait --scale controller=0"
        )
        raise ConfigError(key=PREFIX + "ERA", value=given["ERA"], expected=expected)
    node_id = NodeId(_whole(given, "NODE_ID"))
    directory = Path(_text(given, "DIRECTORY"))
    incarnation = next_incarnation(directory, node_id)
    if role is NodeRole.CONTROLLER and incarnation == 0:
        check_metadata_version(properties, rules)
    node = directory / "nodes" / str(node_id)
    port = _whole(given, "PORT")
    addresses = _addresses("ADDRESSES", _text(given, "ADDRESSES"))
    token_file = _text(given, TOKEN_FILE)
    if node_properties(properties).has_tls_between_nodes:
        properties = {**_certified(token_file, node_id, kafka_listeners(given)), **properties}
    suffix = SUFFIX if role is NodeRole.BROKER else ".jsonl"
    config = NodeConfig(
        run=_text(given, "RUN"),
        node_id=node_id,
        incarnation=incarnation,
        cluster_id=_text(given, "CLUSTER_ID"),
        controller_ids=_controller_ids(given, rules.kind),
        data_dirs=(str(node / "data"),),
        ledger_dir=str(node / "ledger"),
        event_file=str(directory / "events" / f"{node_id}-{incarnation}{suffix}"),
        token_file=token_file,
        switches=plain_switches(rules),
        zookeeper=zookeeper_config(rules),
        properties=with_quick_shutdown(properties) if has_zookeeper else properties,
        host=EVERY_INTERFACE,
        port=port,
        metrics_port=_whole(given, "METRICS_PORT") if "METRICS_PORT" in given else None,
        kafka=_kafka_config(given, directory / "history", f"{node_id}-{incarnation}"),
        # A controller sends requests to its own broker, too.
        addresses={**addresses, node_id: f"127.0.0.1:{port}"} if has_zookeeper else addresses,
        has_health_checks=True,
    )
    RunToken.read_or_draw(Path(token_file))
    return config


def _controller_ids(given: Mapping[str, str], kind: ClusterKind) -> tuple[NodeId, ...]:
    text = given.get(CONTROLLER_IDS)
    if not text:
        return (_CONTROLLER,)
    expected = "ids of controllers, ascending from 100, such as 100,101,102"
    if kind is ClusterKind.ZOOKEEPER:
        raise ConfigError(key=PREFIX + CONTROLLER_IDS, value=text, expected="an era without ZooKeeper, which has one")
    ids = tuple(NodeId(int(each)) for each in text.split(",") if each.isdecimal())
    if text != ",".join(map(str, ids)) or ids != tuple(range(_CONTROLLER, _CONTROLLER + len(ids))):
        raise ConfigError(key=PREFIX + CONTROLLER_IDS, value=text, expected=expected)
    return ids


def _certified(token_file: str, node_id: NodeId, listeners: Mapping[str, KafkaListenerConfig]) -> dict[str, str]:
    """Returns the properties of a node with new certificates, of the authority that the first node makes.

    Clients of Kafka have certificates from then on, too, which stay.

    Args:
        token_file: the certificates are in the folder beside it.
        node_id: of the node.
        listeners: for clients of Kafka, which connect to the hosts that the listeners advertise.

    Raises:
        ConfigError: they cannot be made.
    """
    # Imported where it is asked for: only those who make certificates need the library.
    from laststand.emulator.rpc.authority import LOCAL_HOSTS, certify

    folder, name = Path(token_file).with_name(FOLDER), node_name(node_id)
    advertised = {host_and_port(address)[0] for each in listeners.values() for address in each.advertised.values()}
    certify(folder, (name,), hosts=sorted({*LOCAL_HOSTS, *advertised}))
    certify(folder, (client for client in listeners if not Certificates(folder, client).client.exists()))
    return Certificates(folder, name).properties


def server_from_environment(environment: Mapping[str, str]) -> ServerConfig:
    """Returns the configuration of the ZooKeeper server.

    Raises:
        ConfigError: as in ``config_from_environment``, or the era has no ZooKeeper.
    """
    given = _given(environment)
    properties = node_properties(properties_from(given, of_file=_read(given)))
    if rules_from(given).kind is not ClusterKind.ZOOKEEPER:
        expected = "an era with ZooKeeper, such as kafka-3.9-zk; this one has the service `controller` in its place"
        raise ConfigError(key=PREFIX + "ERA", value=given.get("ERA") or DEFAULT_ERA, expected=expected)
    return ServerConfig(
        directory=Path(_text(given, "DIRECTORY")) / "nodes" / str(_CONTROLLER),
        port=_whole(given, "PORT"),
        session_timeout_ms=properties.broker_session_timeout_ms,
    )


def kafka_listeners(given: Mapping[str, str]) -> dict[str, KafkaListenerConfig]:
    """Returns the listeners of each broker for clients of Apache Kafka, by their names, from variables.

    Raises:
        ConfigError: a variable has a value that is not allowed.
    """
    lines = (line.strip() for line in given.get(KAFKA_CLIENTS, "").splitlines())
    reached: dict[str, dict[NodeId, str]] = {}
    for line in filter(None, lines):
        name, _, addresses = line.partition(" ")
        reached[name] = _addresses(KAFKA_CLIENTS, addresses)
        if not reached[name]:
            raise ConfigError(key=PREFIX + KAFKA_CLIENTS, value=line, expected="NAME BROKER=HOST:PORT,...")
    return {
        name: KafkaListenerConfig(
            client_id=client_id,
            port=kafka_port(_whole(given, "PORT"), client_id),
            advertised={BrokerId(broker_id): address for broker_id, address in reached[name].items()},
        )
        for client_id, name in kafka_client_ids(reached).items()
    }


def kafka_port(port: int, client_id: NodeId) -> int:
    """Returns the port of a broker's listener for a client of Apache Kafka, in a container.

    Args:
        port: its port for nodes.
        client_id: of the client, as an end of links.
    """
    return port + client_id - CLIENT_ID


def next_incarnation(directory: Path, node_id: NodeId) -> int:
    """Returns the number of the next process of a node in a run's directory."""
    found = line_files(directory / "events", f"{node_id}-*")
    return max((int(path.stem.rpartition("-")[2]) for path in found), default=-1) + 1


def rules_from(given: Mapping[str, str]) -> Switches:
    """Returns the rules that variables without their prefix name; of an era with ZooKeeper ``ZooKeeperSwitches``.

    Raises:
        ConfigError: there is no such era or rule.
    """
    rules = era_rules(given.get("ERA") or DEFAULT_ERA)
    for name, text in _settings(given).items():
        if not is_node_property(name):
            rules = with_rule(rules, name, text)
    return rules


def properties_from(given: Mapping[str, str], *, of_file: str) -> dict[str, str]:
    """Returns the properties that variables without their prefix name, and a file.

    Args:
        given: the environment's variables.
        of_file: content of the file that they name.

    Raises:
        ConfigError: there is no such property, or its value is not allowed.
    """
    of_variables = {name.lower().replace("_", "."): value for name, value in given.items() if name not in _OWN}
    for name in of_variables:
        if not is_node_property(name):
            variable = PREFIX + name.upper().replace(".", "_")
            raise ConfigError(key=variable, value=of_variables[name], expected="the name of a Kafka property of a node")
    set_ = {name: text for name, text in _settings(given).items() if is_node_property(name)}
    properties = {**_lines(given.get(PROPERTIES_FILE, ""), of_file), **of_variables, **set_}
    node_properties(properties)
    return properties


def _given(environment: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(PREFIX): value for key, value in environment.items() if key.startswith(PREFIX)}


def _settings(given: Mapping[str, str]) -> dict[str, str]:
    pairs = (setting.partition("=") for setting in given.get("SET", "").split(",") if setting.strip())
    return {name.strip(): text.strip() for name, _, text in pairs}


def _read(given: Mapping[str, str]) -> str:
    path = given.get(PROPERTIES_FILE)
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(key=PREFIX + PROPERTIES_FILE, value=path, expected=f"a text file ({error})") from None


def _lines(path: str, text: str) -> dict[str, str]:
    properties = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not is_node_property(name):
            raise ConfigError(
                key=f"{path}:{number}", value=line.strip(), expected="a Kafka property of a node, as NAME=VALUE"
            )
        properties[name] = value
    return properties


def _text(given: Mapping[str, str], name: str) -> str:
    if not given.get(name):
        raise ConfigError(key=PREFIX + name, value=None, expected="it in the environment")
    return given[name]


def _whole(given: Mapping[str, str], name: str) -> int:
    text = _text(given, name)
    if not text.isdecimal():
        raise ConfigError(key=PREFIX + name, value=text, expected="a whole number")
    return int(text)


def _kafka_config(given: Mapping[str, str], folder: Path, name: str) -> KafkaConfig | None:
    listeners = kafka_listeners(given)
    if not listeners:
        return None
    history, keys = folder / f"kafka-{name}{SUFFIX}", folder / f"kafka-{name}.keys"
    return KafkaConfig(listeners=tuple(listeners.values()), history=str(history), keys=str(keys))


def _addresses(name: str, text: str) -> dict[NodeId, str]:
    addresses = {}
    for entry in filter(None, text.split(",")):
        node, _, address = entry.strip().partition("=")
        if not node.isdecimal() or ":" not in address:
            raise ConfigError(key=PREFIX + name, value=entry, expected="NODE=HOST:PORT")
        addresses[NodeId(int(node))] = address
    return addresses
