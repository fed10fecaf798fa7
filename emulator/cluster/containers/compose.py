"""The compose file of a cluster: ``docker/compose.yaml`` and what ``laststand compose`` prints, from one template.

Every ordered pair of nodes is connected through a proxy of its own, as processes are. Proxies have fixed ports: 20000,
plus 100 times the number of the node that dials (0 the clients, 1 the controller, 2 and up the brokers, 92 and 93
clients of Kafka, 94 and up further controllers), plus the number of the dialled node.

Brokers serve two clients of Kafka: ``network`` dials from the project's network, ``host`` from this machine.

A ZooKeeper server is reached at the controller's address, whose place it takes: in a file for an era with ZooKeeper
always, else in the profile ``zookeeper``.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jinja2 import Environment, StrictUndefined

from laststand.emulator.cluster.containers import labels
from laststand.emulator.cluster.containers.monitoring import (
    dashboard,
    grafana_datasource,
    grafana_provider,
    prometheus_config,
)
from laststand.emulator.cluster.containers.mounts import IMAGE_USER
from laststand.emulator.cluster.containers.zookeeper_server import MODULE
from laststand.emulator.cluster.ports import LOOPBACK
from laststand.emulator.core.eras import is_zookeeper_era
from laststand.emulator.core.types import NodeId, kafka_client_ids
from laststand.emulator.node.environment import PREFIX, kafka_port
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.nodes import CLIENT, CONTROLLER, controller_ids, is_kafka_client

TEMPLATE: Final = Path(__file__).with_name("compose.yaml.j2")
NODE_PORT: Final = 9092
METRICS_PORT: Final = 9464
TOXIPROXY_PORT: Final = 8474
PROXY_PORT_BASE: Final = 20_000
RUN_DIRECTORY: Final = "/var/lib/laststand/run"
SPARK_PORT: Final = 7077
TOKEN_DIRECTORY: Final = "/var/lib/laststand/token"

_PROMETHEUS_PORT: Final = 9090
_GRAFANA_PORT: Final = 3000
_DASHBOARDS: Final = "/etc/laststand/dashboards"

_PUBLISHED_BASE: Final = 19_092
_SERVER_PUBLISHED: Final = 19_090
_KAFKA_PUBLISHED_BASE: Final = 29_092

_NETWORK, _HOST = kafka_client_ids(("network", "host"))

_SERVER_CHECK: Final = (
    f"import socket; s = socket.create_connection(('127.0.0.1', {NODE_PORT}), 2); "
    "s.sendall(b'srvr'); exit(b'Zxid' not in s.recv(4096))"
)
"""Asks the ZooKeeper server by one of its words of four letters."""

_PROPERTIES_FILE: Final = "/etc/laststand/server.properties"
_PROPERTIES: Final = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "250",
    "replica.lag.time.max.ms": "1500",
    "min.insync.replicas": "2",
}
"""Short times, so that nobody waits long for what a fault does."""

EMPTY: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class ComposedNode:
    """A node's service.

    Attributes:
        node_id: the node's id.
        role: ``broker`` or ``controller``.
        name: of the service, by which other containers find it.
        addresses: of all other nodes, through the proxies.
        published: port on this machine's loopback.
        rack: of a broker; empty without racks.
    """

    node_id: NodeId
    role: str
    name: str
    addresses: str
    published: int
    rack: str


def render(
    *,
    brokers: int,
    racks: int,
    era: str,
    controllers: int = 1,
    switches: Mapping[str, str] = EMPTY,
    properties: Mapping[str, str] = EMPTY,
) -> str:
    """Returns a compose file.

    Args:
        brokers: ids are 0 to ``brokers`` - 1.
        racks: number of racks that the brokers are assigned to in turn, named from ``a`` on; 0 for none.
        era: the protocol, unless the environment names another (``LASTSTAND_ERA``).
        controllers: ids are 100 and up; several are a quorum, and have no ZooKeeper server in their place.
        switches: rules to change, unless the environment names others (``LASTSTAND_SET``).
        properties: of every node, by Kafka's names, unless the environment has others.
    """
    broker_ids = tuple(NodeId(broker) for broker in range(brokers))
    node_ids = (*controller_ids(controllers), *broker_ids)
    has_zookeeper = is_zookeeper_era(era)
    nodes = [_node(node_id, node_ids, racks) for node_id in node_ids]
    started = [node for node in nodes if node.node_id != CONTROLLER or not has_zookeeper]
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    text = template.render(
        command=_command(brokers, racks, controllers, era, {**switches, **properties}),
        era=era,
        switches=",".join(f"{name}={text}" for name, text in switches.items()),
        properties={_variable(name): text for name, text in {**_PROPERTIES, **properties}.items()},
        properties_file=_PROPERTIES_FILE,
        nodes=nodes,
        started=started,
        has_zookeeper=has_zookeeper,
        controllers=",".join(map(str, controller_ids(controllers))) if controllers > 1 else "",
        server=nodes[0],
        server_module=MODULE,
        server_check=_SERVER_CHECK,
        server_published=_SERVER_PUBLISHED,
        proxies={
            **{_name(source): _proxies(source, node_ids) for source in (CLIENT, *node_ids)},
            **{_name(client_id): _proxies(client_id, broker_ids) for client_id in (_NETWORK, _HOST)},
        },
        kafka_clients={
            "network": _addresses(_NETWORK, broker_ids),
            "host": ",".join(f"{broker_id}={LOOPBACK}:{_kafka_published(broker_id)}" for broker_id in broker_ids),
        },
        kafka_ports={_kafka_published(broker_id): _proxy_port(Link(_HOST, broker_id)) for broker_id in broker_ids},
        prometheus=prometheus_config({node.name: f"{node.name}:{METRICS_PORT}" for node in started}),
        prometheus_port=_PROMETHEUS_PORT,
        grafana_port=_GRAFANA_PORT,
        datasource=grafana_datasource(f"http://prometheus:{_PROMETHEUS_PORT}"),
        provider=grafana_provider(_DASHBOARDS),
        dashboards=_DASHBOARDS,
        dashboard=dashboard().replace("$", "$$"),  # compose would look for a variable
        spark_port=SPARK_PORT,
        run_directory=RUN_DIRECTORY,
        token_directory=TOKEN_DIRECTORY,
        token_file=f"{TOKEN_DIRECTORY}/token",
        user=IMAGE_USER,
        node_port=NODE_PORT,
        metrics_port=METRICS_PORT,
        toxiproxy_port=TOXIPROXY_PORT,
        run_label=labels.RUN,
        node_label=labels.NODE,
    )
    return text.rstrip() + "\n"


def _command(brokers: int, racks: int, controllers: int, era: str, settings: Mapping[str, str]) -> str:
    words = [f"laststand compose --brokers {brokers}", *([f"--racks {racks}"] if racks else [])]
    words += [*([f"--controllers {controllers}"] if controllers > 1 else []), f"--era {era}"]
    return " ".join([*words, *(f"--set {name}={text}" for name, text in settings.items())])


def _variable(property_name: str) -> str:
    return PREFIX + property_name.upper().replace(".", "_")


def service_name(node_id: NodeId) -> str:
    """Returns the name of a node's service."""
    if node_id < CONTROLLER:
        return f"broker-{node_id}"
    return "controller" if node_id == CONTROLLER else f"controller-{node_id}"


def _node(node_id: NodeId, node_ids: tuple[NodeId, ...], racks: int) -> ComposedNode:
    others = [other for other in node_ids if other != node_id]
    is_controller = node_id >= CONTROLLER
    return ComposedNode(
        node_id=node_id,
        role="controller" if is_controller else "broker",
        name=service_name(node_id),
        addresses=_addresses(node_id, others),
        published=_published(node_id),
        rack="" if is_controller or not racks else chr(ord("a") + node_id % racks),
    )


def _addresses(source: NodeId, targets: Iterable[NodeId]) -> str:
    return ",".join(f"{target}=toxiproxy:{_proxy_port(Link(source, target))}" for target in targets)


def _proxies(source: NodeId, node_ids: tuple[NodeId, ...]) -> str:
    """Returns the proxies of a dialling node, as JSON with a line for each: one variable could not hold all proxies."""
    port = kafka_port(NODE_PORT, source) if is_kafka_client(source) else NODE_PORT
    lines = [
        json.dumps(
            {
                "name": str(link),
                "listen": f"0.0.0.0:{_proxy_port(link)}",
                "upstream": f"{service_name(link.target)}:{port}",
            }
        )
        for link in (Link(source, target) for target in node_ids if source != target)
    ]
    return "[" + ",\n ".join(lines) + "]"


def _name(node_id: NodeId) -> str:
    return "CLIENT" if node_id == CLIENT else str(node_id)


def _proxy_port(link: Link[NodeId]) -> int:
    return PROXY_PORT_BASE + 100 * _number(link.source) + _number(link.target)


def _number(end: NodeId) -> int:
    if end == CLIENT:
        return 0
    if is_kafka_client(end):
        return 91 + end - CLIENT  # behind the 90 brokers that a file may have
    if end > CONTROLLER:
        return 93 + end - CONTROLLER  # behind the two clients of Kafka
    return 1 if end == CONTROLLER else 2 + end


def _published(node_id: NodeId) -> int:
    if node_id < CONTROLLER:
        return _PUBLISHED_BASE + node_id
    return _PUBLISHED_BASE - 1 if node_id == CONTROLLER else _SERVER_PUBLISHED + CONTROLLER - node_id


def _kafka_published(broker_id: NodeId) -> int:
    return _KAFKA_PUBLISHED_BASE + broker_id
