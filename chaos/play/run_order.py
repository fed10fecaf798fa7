"""The order for a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.scenario.scenario import Scenario
from emulator.cluster.kafka_distribution import KafkaProgram
from emulator.cluster.layout import ClusterLayout
from emulator.cluster.zookeeper_program import ZooKeeperProgram
from emulator.core.switches import Switches
from emulator.plan.drivers import DriverName
from emulator.plan.nodes import CONTROLLER

_SHUTDOWN_BACKOFF: Final = "controlled.shutdown.retry.backoff.ms"
_SHUTDOWN_BACKOFF_MS: Final = "200"
"""The last broker of a cluster that is stopped has nobody to hand over to, and would ask three times, 5 s apart."""


@dataclass(frozen=True, kw_only=True)
class RunOrder:
    """What to play, and where.

    Attributes:
        directory: the run's, which exists and is absolute.
        era: its name, for people.
        switches: the rules of the era, with the user's changes.
        properties: of every node: the scenario's and the user's.
        toxiproxy: the program; needed where processes play a scenario with network faults.
        driver: what plays it.
        kafka: what starts its nodes, where Apache Kafka plays a scenario.
        zookeeper: what starts the server, where processes play an era with ZooKeeper.
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

    @property
    def layout(self) -> ClusterLayout:
        """What the cluster is made of."""
        properties = dict(self.properties)
        if self.zookeeper is not None:
            properties.setdefault(_SHUTDOWN_BACKOFF, _SHUTDOWN_BACKOFF_MS)
        is_proxied = self.driver.has_processes and self.scenario.has_network_faults
        return ClusterLayout(
            run=self.directory.name,
            directory=self.directory,
            controller_id=CONTROLLER,
            broker_ids=self.scenario.broker_ids,
            switches=self.switches,
            properties=tuple(properties.items()),
            toxiproxy=self.toxiproxy if is_proxied else None,
        )
