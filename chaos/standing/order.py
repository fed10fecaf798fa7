"""The order for a standing cluster: a file that ``laststand up`` writes for the supervisor that it starts.

::

    store/standing/
        .lock                     held by the supervisor for as long as it lives
        latest -> 20260101T120000.000
        20260101T120000.000/      a run directory; beside what every run has:
            supervisor.json       this order
            supervisor.sock       where the supervisor listens
            state.json            what the next supervisor of this directory must know
            history/<client>.packed
            groups/<group>.json   positions of ``laststand consume --group``
        <name>/                   the same once more for each cluster with a name
"""

from pathlib import Path
from typing import Final

import msgspec
import yaml

from laststand.chaos.standing.state import StandingState
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.ports import is_free
from laststand.emulator.core.eras import changes, era_label, era_rules
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.properties import NodeProperties, node_properties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.node.config import ZooKeeperConfig, all_rules, with_quick_shutdown
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import controller_ids
from laststand.emulator.user_files import read_bytes

STANDING: Final = "standing"
"""Name of standing clusters among the runs of a store."""

ORDER_FILE: Final = "supervisor.json"
SOCKET_FILE: Final = "supervisor.sock"
LOCK_FILE: Final = ".lock"


class StandingOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order to start a standing cluster.

    Attributes:
        directory: the run's, absolute.
        brokers: ids are 0 to ``brokers`` - 1.
        era: name of the era, for users.
        switches: the era's rules, changed as asked for.
        properties: of every node, by Kafka's names.
        seed: of the random choices of power losses.
        toxiproxy: the program; ``None`` for a cluster whose links cannot be broken.
        ports: recorded ports of nodes; the other nodes have any port.
        driver: of the nodes: processes, or the same in containers.
        project: the docker compose project, whose containers another party started.
        zookeeper: more rules; ``None`` in a KRaft cluster.
        run: id of the run; by default, the name of the directory.
        view: whether the supervisor serves a live view.
        kafka_clients: names of the clients of Apache Kafka that brokers serve.
        kafka_ports: ports of each client on each broker that the user chose; the others have any port.
        controllers: ids are 100 and up.
        standby_controllers: number of further controllers, with the next ids, which are down and no voters until they
            are added.
        combined: whether controller 100 shares a process with broker 0, and so on.
        started_as: the era with which the cluster was started again, in the form of ``node_rules``; ``None`` for the
            run's.
    """

    directory: str
    brokers: int
    era: str
    switches: Switches
    properties: dict[str, str]
    seed: int
    toxiproxy: str | None
    ports: dict[int, int] = msgspec.field(default_factory=dict)
    driver: DriverName = DriverName.PROCESS
    project: str | None = None
    zookeeper: ZooKeeperConfig | None = None
    run: str | None = None
    view: bool = False
    kafka_clients: tuple[str, ...] = ()
    kafka_ports: dict[str, dict[int, int]] = msgspec.field(default_factory=dict)
    controllers: int = 1
    standby_controllers: int = 0
    combined: bool = False
    started_as: str | None = None

    @property
    def path(self) -> Path:
        """The run's directory."""
        return Path(self.directory)

    @property
    def lock_path(self) -> Path:
        """File whose lock shows that a cluster of this name stands in this store."""
        return self.path.parent / LOCK_FILE

    @property
    def broker_ids(self) -> tuple[BrokerId, ...]:
        """All brokers, ascending."""
        return tuple(BrokerId(NodeId(index)) for index in range(self.brokers))

    @property
    def controller_ids(self) -> tuple[NodeId, ...]:
        """All controllers, ascending; of a cluster with ZooKeeper its server."""
        return controller_ids(self.controllers + self.standby_controllers)

    def node_properties(self) -> NodeProperties:
        """Returns the properties, every default resolved."""
        return node_properties(self.properties)

    def rules(self) -> Switches:
        """Returns all rules; ``ZooKeeperSwitches`` for a cluster with ZooKeeper."""
        return all_rules(self.switches, self.zookeeper)

    @property
    def changed(self) -> tuple[str, ...]:
        """Changes of the era's rules, and properties that were asked for, as ``name=value``."""
        return changes(self.rules(), era_rules(self.era), self.properties.items())

    @property
    def era_label(self) -> str:
        """The era with its changes."""
        return era_label(self.era, self.changed)

    def scenario_text(self) -> str:
        """Returns the cluster as a scenario without topics and workload, as its recorded plan begins."""
        standby = {"standby_controllers": self.standby_controllers} if self.standby_controllers else {}
        combined = {"combined": True} if self.combined else {}
        clients = {"kafka_clients": list(self.kafka_clients)} if self.kafka_clients else {}
        document = {
            "name": STANDING,
            "cluster": {
                "brokers": self.brokers,
                "controllers": self.controllers,
                **standby,
                **combined,
                "properties": self.properties,
                **clients,
            },
            "topics": [],
            "workload": {"producers": []},
        }
        return yaml.safe_dump(document, sort_keys=False)

    def layout(self, before: StandingState | None) -> ClusterLayout:
        """Returns the cluster's layout; with the data, and as far as they are free the ports, of ``before``."""
        kept, kept_metrics = (
            _free(ports) for ports in (({}, {}) if before is None else (before.ports, before.metrics_ports))
        )
        kept_kafka = {}
        if before is not None and self.driver is DriverName.PROCESS:  # proxies in containers have new addresses
            kept_kafka = {name: _free(ports) for name, ports in before.kafka_ports.items()}
        return ClusterLayout(
            run=self.run or self.path.name,
            directory=self.path,
            controller_ids=self.controller_ids,
            standby_ids=self.controller_ids[self.controllers :],
            combined=self.combined,
            broker_ids=self.broker_ids,
            switches=self.rules(),
            properties=tuple(self._layout_properties().items()),
            toxiproxy=None if self.toxiproxy is None else Path(self.toxiproxy),
            metrics=True,
            cluster_id=None if before is None else before.cluster_id,
            ports={**kept, **self.ports},
            metrics_ports=kept_metrics,
            kafka_clients=self.kafka_clients,
            kafka_ports={**kept_kafka, **self.kafka_ports},
        )

    def _layout_properties(self) -> dict[str, str]:
        return self.properties if self.zookeeper is None else with_quick_shutdown(self.properties)


def _free(ports: dict[int, int]) -> dict[int, int]:
    return {node: port for node, port in ports.items() if is_free(port)}


_DECODER: Final = msgspec.json.Decoder(StandingOrder)


def write_order(order: StandingOrder) -> None:
    """Writes the order into its directory."""
    (order.path / ORDER_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(order)))


def read_order(directory: Path) -> StandingOrder:
    """Returns the order in a directory.

    Raises:
        ConfigError: there is no order that can be read.
    """
    try:
        return _DECODER.decode(read_bytes(directory / ORDER_FILE))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(
            key=str(directory), value=None, expected=f"the directory of a standing cluster ({error})"
        ) from None
