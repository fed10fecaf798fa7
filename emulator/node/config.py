"""The configuration of a node process: one JSON file, decoded and checked once, and frozen.

The launcher resolves properties and switches, so a node has no notion of eras or command lines.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from laststand.emulator.core.eras import ZooKeeperSwitches
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.node_clock import NORMAL_RATE_PPM
from laststand.emulator.core.properties import NodeProperties, node_properties, property_texts
from laststand.emulator.core.requester import node_name
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY, VERSIONS, IbpLevel, InterBrokerProtocol
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules
from laststand.emulator.rpc.interception import InterceptionOrder
from laststand.emulator.rpc.run_token import RunToken


class ZooKeeperConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The start parameters of a broker in a cluster with ZooKeeper, in addition to those of every broker.

    Attributes:
        rules: the rules of clusters with ZooKeeper.
        ibp: the protocol that brokers speak.
        other_ibps: protocol versions of single brokers.
        started_with: the protocol of this process, if it differs from these.
    """

    rules: ZooKeeperRules
    ibp: IbpLevel
    other_ibps: tuple[tuple[BrokerId, IbpLevel], ...] = ()
    started_with: IbpLevel | None = None


def zookeeper_config(switches: Switches, *, started_with: IbpLevel | None = None) -> ZooKeeperConfig | None:
    """Returns the ZooKeeper part of the rules; ``None`` for the rules of a KRaft cluster.

    Args:
        switches: of the cluster.
        started_with: the protocol of one process, if it differs from the rules.
    """
    if not isinstance(switches, ZooKeeperSwitches):
        return None
    return ZooKeeperConfig(
        rules=switches.zookeeper, ibp=switches.ibp, other_ibps=switches.other_ibps, started_with=started_with
    )


def all_rules(switches: Switches, zookeeper: ZooKeeperConfig | None) -> Switches:
    """Returns rules that were stored in parts as one value: ``ZooKeeperSwitches`` for a cluster with ZooKeeper."""
    if zookeeper is None:
        return switches
    shared = {name: getattr(switches, name) for name in Switches.__struct_fields__}
    return ZooKeeperSwitches(**shared, zookeeper=zookeeper.rules, ibp=zookeeper.ibp, other_ibps=zookeeper.other_ibps)


_SHUTDOWN_BACKOFF: Final = "controlled.shutdown.retry.backoff.ms"
_SHUTDOWN_BACKOFF_MS: Final = "200"
"""The last broker of a cluster that is stopped has nobody to hand over to, and would ask three times, 5 s apart."""


def with_quick_shutdown(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns properties of nodes in a ZooKeeper cluster, with a short default backoff of controlled shutdown."""
    return {_SHUTDOWN_BACKOFF: _SHUTDOWN_BACKOFF_MS, **properties}


class KafkaListenerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A listener for one client that speaks Kafka's protocol.

    Attributes:
        client_id: of the client, as an end of links.
        port: the listener's port on this broker.
        advertised: the addresses at which the client reaches each broker (``host:port``).
    """

    client_id: NodeId
    port: int
    advertised: dict[BrokerId, str]


class KafkaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a broker's configuration about clients that speak Kafka's protocol.

    Attributes:
        listeners: one for each client.
        history: file for clients' requests and responses; must not exist yet.
        keys: file for keys of records that are acknowledged.
    """

    listeners: tuple[KafkaListenerConfig, ...]
    history: str
    keys: str


class NodeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of one incarnation of one node.

    Attributes:
        run: the run's id, on every line of the event log.
        node_id: brokers are 0..N-1, controllers 100 and up.
        incarnation: counts the processes of this node in the run, from 0.
        cluster_id: a node refuses data of another cluster.
        controller_ids: nodes at which brokers register: the controllers, or the ZooKeeper server.
        data_dirs: log directories; a controller keeps its metadata log in the first. Created where missing.
        ledger_dir: directory of the sync ledger, outside the data directories.
        event_file: this incarnation's event log; must not exist yet.
        token_file: holds the cluster's token, which every call has to show.
        switches: the era's rules.
        zookeeper: more rules; ``None`` in a KRaft cluster.
        properties: by Kafka's names, as text; the rest is default.
        host: interface to listen on.
        port: port to listen on; 0 for any. A node keeps its port for a run.
        metrics_port: port of ``/metrics``, 0 for any; ``None`` for a node without it.
        kafka: of a broker that serves clients of Apache Kafka.
        addresses: addresses (``host:port``) at which this process reaches each node, maybe through a proxy.
        has_health_checks: whether it serves ``grpc.health.v1``.
        clock_rate_ppm: rate of its clock, in parts per million of the correct rate.
        interceptions: faults of single messages that are in force from the start.
        standby_ids: those controllers that were no voters when the cluster was formatted.
    """

    run: str
    node_id: NodeId
    incarnation: int
    cluster_id: str
    controller_ids: tuple[NodeId, ...]
    data_dirs: tuple[str, ...]
    ledger_dir: str
    event_file: str
    token_file: str
    switches: Switches = Switches()
    zookeeper: ZooKeeperConfig | None = None
    properties: dict[str, str] = {}
    host: str = "127.0.0.1"
    port: int = 0
    metrics_port: int | None = None
    kafka: KafkaConfig | None = None
    addresses: dict[NodeId, str] = {}
    has_health_checks: bool = False
    clock_rate_ppm: int = NORMAL_RATE_PPM
    interceptions: tuple[InterceptionOrder, ...] = ()
    standby_ids: tuple[NodeId, ...] = ()

    @property
    def controller_id(self) -> NodeId:
        """The only controller, or the first of several; or the ZooKeeper server."""
        return self.controller_ids[0]

    def node_properties(self) -> NodeProperties:
        """Returns the properties, every default resolved.

        Raises:
            ConfigError: unknown name, or a value out of range.
        """
        return node_properties(self.properties)

    def token(self) -> RunToken:
        """Returns the cluster's token, with the node's certificates where nodes speak TLS to each other.

        Raises:
            ConfigError: its file cannot be read, or can be read by others than its owner; or the certificates are
                missing.
        """
        token = RunToken.read(self.token_file, name=node_name(self.node_id))
        properties = self.node_properties()
        if (token.certificates is not None) != properties.has_tls_between_nodes:
            protocol = properties.security_inter_broker_protocol
            expected = "SSL where there are certificates beside the token, PLAINTEXT where there are none"
            raise ConfigError(key="security.inter.broker.protocol", value=protocol, expected=expected)
        if token.certificates is not None:
            token.certificates.check()
        return token

    def rules(self) -> Switches:
        """Returns all rules; ``ZooKeeperSwitches`` for a cluster with ZooKeeper."""
        return all_rules(self.switches, self.zookeeper)

    def protocol(self) -> InterBrokerProtocol | None:
        """Returns the protocol of a broker in a cluster with ZooKeeper; ``None`` in a KRaft cluster."""
        rules = self.rules()
        if self.zookeeper is None or not isinstance(rules, ZooKeeperSwitches):
            return None
        return rules.protocol_of(BrokerId(self.node_id), started_with=self.zookeeper.started_with)

    def property_texts(self) -> dict[str, str]:
        """Returns its properties as text, every default resolved, including a broker's protocol version."""
        protocol = self.protocol()
        own = {} if protocol is None else {PROPERTY: VERSIONS[protocol.level]}
        return {**property_texts(self.node_properties()), **own}


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(NodeConfig)


def encode_config(config: NodeConfig) -> bytes:
    """Returns the content of a configuration file."""
    return _ENCODER.encode(config)


def read_config(path: str) -> NodeConfig:
    """Reads a configuration file.

    Raises:
        ConfigError: the file is missing, or no configuration.
    """
    try:
        with open(path, "rb") as file:
            return _DECODER.decode(file.read())
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(key="config", value=path, expected=f"a node's configuration ({error})") from error
