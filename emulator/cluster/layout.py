"""The nodes of a cluster, and the places of its files.

Layout below the run's directory::

    events/<node>-<incarnation>.jsonl     written by the nodes; of brokers .packed
    nodes/<node>/config-<incarnation>.json
    nodes/<node>/data/                    log directory; the controller's metadata log
    nodes/<node>/ledger/                  what was synced, for power loss
    nodes/<node>/node.log                 what it printed, over all incarnations
    token                                 the cluster's token, mode 0600; removed when the cluster ends
    tls/                                  certificates, where nodes speak TLS (``rpc.certificates``); likewise
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from laststand.emulator.core.packed.layout import SUFFIX
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.requester import node_name
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import CLIENT_ID, BrokerId, ClusterKind, NodeId, NodeRole, kafka_client_ids
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.nodes import CONTROLLER, machine_of
from laststand.emulator.rpc.certificates import FOLDER, HARNESS
from laststand.emulator.storage.line_file import line_files


class ClusterLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a cluster, and the places of their files.

    Attributes:
        run: the run's id.
        directory: the run's directory, absolute.
        controller_ids: the controllers, several of which are a quorum; or the ZooKeeper server in their place.
        broker_ids: all brokers.
        standby_ids: controllers that are down and not voters, until a user starts and adds them.
        combined: whether controller 100 shares a process with broker 0, and so on.
        switches: the rules that every node follows.
        properties: of every node, by Kafka's names.
        toxiproxy: the program, or ``None`` if no link will be broken.
        metrics: whether every node serves ``/metrics``; costs a tenth of a second of each start.
        cluster_id: a UUID in Kafka's text form; random if not given. Nodes refuse data of another cluster.
        ports: ports of nodes; nodes without an entry get free ports.
        metrics_ports: likewise for ``/metrics``.
        kafka_clients: names of the clients of Apache Kafka, each of which has addresses of its own.
        kafka_ports: the brokers' ports for each of these clients, by name; clients without an entry get free ports.
    """

    run: str
    directory: Path
    controller_ids: tuple[NodeId, ...]
    broker_ids: tuple[BrokerId, ...]
    standby_ids: tuple[NodeId, ...] = ()
    combined: bool = False
    switches: Switches
    properties: tuple[tuple[str, str], ...]
    toxiproxy: Path | None
    metrics: bool = False
    cluster_id: str | None = None
    ports: Mapping[int, int] = MappingProxyType({})
    metrics_ports: Mapping[int, int] = MappingProxyType({})
    kafka_clients: tuple[str, ...] = ()
    kafka_ports: Mapping[str, Mapping[int, int]] = MappingProxyType({})

    @property
    def controller_id(self) -> NodeId:
        """The only controller, or the first of several; or the ZooKeeper server."""
        return self.controller_ids[0]

    @property
    def has_directory_ids(self) -> bool:
        """True if several controllers are voters by node and directory (KIP-853), not by node alone."""
        return len(self.controller_ids) > 1 and self.switches.directory_ids

    @property
    def kind(self) -> ClusterKind:
        """The owner of the cluster's metadata: the controller, or a ZooKeeper server in its place."""
        return self.switches.kind

    def role_of(self, node_id: NodeId) -> NodeRole:
        """Returns a node's role: broker, controller or ZooKeeper server."""
        return self.kind.metadata_role if node_id in self.controller_ids else NodeRole.BROKER

    def machine_of(self, node_id: NodeId) -> tuple[NodeId, ...]:
        """Returns all nodes in a node's process; the first names the process, a broker if it has one."""
        if not self.combined:
            return (node_id,)
        return machine_of(node_id, controllers=len(self.controller_ids) - len(self.standby_ids))

    def processes_of(self, node_ids: Iterable[NodeId]) -> tuple[NodeId, ...]:
        """Returns the processes of nodes, each once, by the node that names it."""
        return tuple(dict.fromkeys(self.machine_of(node_id)[0] for node_id in node_ids))

    def is_zookeeper(self, node_id: NodeId) -> bool:
        """Returns whether a node is a ZooKeeper server."""
        return self.role_of(node_id) is NodeRole.ZOOKEEPER

    @property
    def node_ids(self) -> tuple[NodeId, ...]:
        """All nodes, the controllers first."""
        return (*self.controller_ids, *self.broker_ids)

    @property
    def kafka_links(self) -> Iterator[Link[NodeId]]:
        """The links of clients of Kafka."""
        for client_id in kafka_client_ids(self.kafka_clients):
            yield from (Link(client_id, broker_id) for broker_id in self.broker_ids)

    def kafka_port(self, link: Link[NodeId]) -> int | None:
        """Returns the port at which a client of Kafka reaches a broker; ``None`` for any that is free."""
        name = kafka_client_ids(self.kafka_clients)[link.source]
        return self.kafka_ports.get(name, {}).get(link.target)

    def node_directory(self, node_id: NodeId) -> Path:
        """Returns the directory of a node's files, events aside."""
        return _node_directory(self.directory, node_id)

    def data_directory(self, node_id: NodeId) -> Path:
        """A node's log directory."""
        return data_directory(self.directory, node_id)

    def ledger_directory(self, node_id: NodeId) -> Path:
        """A node's sync ledger."""
        return ledger_directory(self.directory, node_id)

    def node_log(self, node_id: NodeId) -> Path:
        """Returns the file that a node's processes print to."""
        return self.node_directory(node_id) / "node.log"

    def foreign_history_file(self, node_id: NodeId, incarnation: int) -> Path:
        """Requests of Apache Kafka's clients to a broker's process."""
        return foreign_history_file(self.directory, node_id, incarnation=incarnation)

    @property
    def token_file(self) -> Path:
        return token_file(self.directory)

    @property
    def has_tls(self) -> bool:
        """True if nodes use TLS for their connections to each other."""
        return node_properties(dict(self.properties)).has_tls_between_nodes

    @property
    def has_authorizer(self) -> bool:
        """Nodes authorize requests by access control lists."""
        return bool(node_properties(dict(self.properties)).authorizer_class_name)

    @property
    def kafka_has_tls(self) -> bool:
        """Listeners for clients of Kafka use TLS."""
        return node_properties(dict(self.properties)).has_tls

    def metrics_url(self, address: str) -> str:
        """Returns the URL of a node's metrics."""
        return f"{'https' if self.has_tls else 'http'}://{address}/metrics"

    @property
    def tls_folder(self) -> Path:
        """The folder of certificates, and of the authority that issues them, if nodes use TLS between each other."""
        return self.token_file.with_name(FOLDER)

    @property
    def certificate_names(self) -> tuple[str, ...]:
        """Names of the processes that have certificates with TLS."""
        return (*map(node_name, self.node_ids), node_name(CLIENT_ID), HARNESS, *self.kafka_clients)

    def event_file(self, node_id: NodeId, incarnation: int) -> Path:
        """The file of one incarnation's events."""
        return self.directory / "events" / event_file_name(node_id, incarnation)

    def last_incarnation(self, node_id: NodeId) -> int | None:
        """Returns the number of a node's last process in this directory; ``None`` if it had none."""
        found = line_files(self.directory / "events", f"{node_id}-*")
        return max((int(path.stem.rpartition("-")[2]) for path in found), default=None)


def data_directory(run: Path, node_id: NodeId) -> Path:
    """Returns a node's log directory in the directory of a run."""
    return _node_directory(run, node_id) / "data"


def ledger_directory(run: Path, node_id: NodeId) -> Path:
    """Returns a node's sync ledger in the directory of a run."""
    return _node_directory(run, node_id) / "ledger"


def foreign_history_file(run: Path, node_id: NodeId, *, incarnation: int) -> Path:
    """Returns the file about what Kafka's clients asked of a broker's process, in the directory of a run."""
    return run / "history" / f"kafka-{node_id}-{incarnation}{SUFFIX}"


def foreign_history_files(run: Path) -> list[Path]:
    """Returns the existing files of ``foreign_history_file``."""
    return line_files(run / "history", "kafka-*")


def key_file(run: Path, node_id: NodeId, *, incarnation: int) -> Path:
    """Returns the file for the keys of acknowledged records, beside ``foreign_history_file``."""
    return run / "history" / f"kafka-{node_id}-{incarnation}.keys"


def token_file(run: Path) -> Path:
    """Returns the file of a cluster's token, by the directory of its run."""
    return run / "token"


def _node_directory(run: Path, node_id: NodeId) -> Path:
    return run / "nodes" / str(node_id)


def event_file_name(node_id: NodeId, incarnation: int) -> str:
    """Returns the name of a process's event file: brokers pack theirs, controllers have no frequent events."""
    return f"{node_id}-{incarnation}{SUFFIX if node_id < CONTROLLER else '.jsonl'}"
