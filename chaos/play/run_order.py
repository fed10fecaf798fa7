"""The order for a run."""

from dataclasses import dataclass
from pathlib import Path

from laststand.chaos.scenario.scenario import Scenario
from laststand.emulator.cluster.external_cluster import ExternalCluster
from laststand.emulator.cluster.hooks import Hooks
from laststand.emulator.cluster.kafka_distribution import KafkaProgram
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.zookeeper_program import ZooKeeperProgram
from laststand.emulator.core.eras import era_label
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import ClusterKind
from laststand.emulator.node.config import with_quick_shutdown
from laststand.emulator.plan.drivers import DriverName


@dataclass(frozen=True, kw_only=True)
class ExternalOrder:
    """A cluster that another party runs.

    Attributes:
        hooks: the commands that break and mend it.
        keeps_topics: whether topics that the run makes are there when it is over.
    """

    cluster: ExternalCluster
    hooks: Hooks
    keeps_topics: bool = False


@dataclass(frozen=True, kw_only=True)
class RunOrder:
    """The order to play one scenario in one run directory.

    Attributes:
        directory: the run's, which exists and is absolute.
        era: name of the era, for users.
        switches: the rules of the era, with the user's changes.
        properties: of every node: the scenario's and the user's.
        toxiproxy: the program; needed if processes play a scenario with network faults.
        driver: the driver of the run.
        kafka: the installed Apache Kafka, if it plays the scenario.
        zookeeper: the program of the server, if one runs on this machine.
        external: the cluster, if another party runs it.
        changed: changes of the era's rules and the scenario's properties, as ``name=value``.
    """

    scenario: Scenario
    directory: Path
    era: str
    switches: Switches
    properties: tuple[tuple[str, str], ...]
    seed: int
    toxiproxy: Path | None
    driver: DriverName = DriverName.PROCESS
    kafka: KafkaProgram | None = None
    zookeeper: ZooKeeperProgram | None = None
    external: ExternalOrder | None = None
    changed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The era with its changes: the name of the run wherever an era is named."""
        return era_label(self.era, self.changed)

    @property
    def has_zookeeper(self) -> bool:
        """Processes play the run, around a ZooKeeper server."""
        return self.driver.has_processes and self.switches.kind is ClusterKind.ZOOKEEPER

    @property
    def layout(self) -> ClusterLayout:
        """The layout of the cluster."""
        properties = dict(self.properties)
        if self.has_zookeeper:
            properties = with_quick_shutdown(properties)
        return ClusterLayout(
            run=self.directory.name,
            directory=self.directory,
            controller_ids=self.scenario.controller_ids,
            standby_ids=self.scenario.standby_ids,
            combined=self.scenario.combined,
            broker_ids=self.scenario.broker_ids,
            switches=self.switches,
            properties=tuple(properties.items()),
            toxiproxy=self.toxiproxy if self.scenario.needs_proxies(self.driver) else None,
            kafka_clients=self.scenario.kafka_clients,
        )
