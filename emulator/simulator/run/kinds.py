"""The kinds of cluster, chosen by a cluster's rules, and the checks for each kind."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import ClusterKind
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.batch_registry import BatchRegistry
from laststand.emulator.simulator.nodes.observer import Observer
from laststand.emulator.simulator.oracle.checks import Checks
from laststand.emulator.simulator.oracle.finding import Alarm
from laststand.emulator.simulator.oracle.zookeeper_checks import ZooKeeperChecks
from laststand.emulator.simulator.quorum.controllers import ControllersCluster
from laststand.emulator.simulator.zookeeper.cluster import ZooKeeperCluster

_CLUSTERS: Final[Mapping[ClusterKind, type[SimulatedCluster]]] = MappingProxyType(
    {ClusterKind.KRAFT: SimulatedCluster, ClusterKind.ZOOKEEPER: ZooKeeperCluster}
)
_CHECKS: Final[Mapping[ClusterKind, type[Checks]]] = MappingProxyType(
    {ClusterKind.KRAFT: Checks, ClusterKind.ZOOKEEPER: ZooKeeperChecks}
)


def make_cluster(
    *,
    brokers: int,
    controllers: int = 1,
    standby_controllers: int = 0,
    combined: bool = False,
    switches: Switches,
    properties: NodeProperties,
    observer: Observer | None = None,
    batches: BatchRegistry | None = None,
    attach: Callable[[SimulatedCluster], None] | None = None,
) -> SimulatedCluster:
    """Returns a cluster that follows these rules; arguments as in ``SimulatedCluster``."""
    several = partial(ControllersCluster, controllers=controllers, standby_controllers=standby_controllers)
    kind = _CLUSTERS[switches.kind] if controllers == 1 else several
    return kind(
        brokers=brokers,
        switches=switches,
        properties=properties,
        observer=observer,
        batches=batches,
        attach=attach,
        combined=combined,
    )


def make_checks(switches: Switches, on_alarm: Callable[[Alarm], None]) -> Checks:
    """Returns the checks of a cluster that follows these rules; ``on_alarm`` is called with each alarm."""
    return _CHECKS[switches.kind](on_alarm)
