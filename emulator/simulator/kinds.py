"""Which kind of cluster plays which rules, and which checks are made of it."""

from collections.abc import Callable

from emulator.core.eras import ZooKeeperSwitches
from emulator.core.properties import NodeProperties
from emulator.core.switches import Switches
from emulator.simulator.batch_registry import BatchRegistry
from emulator.simulator.cluster import SimulatedCluster
from emulator.simulator.observer import Observer
from emulator.simulator.oracle.checks import Checks
from emulator.simulator.oracle.finding import Alarm
from emulator.simulator.oracle.zookeeper_checks import ZooKeeperChecks
from emulator.simulator.zookeeper.cluster import ZooKeeperCluster


def make_cluster(
    *,
    brokers: int,
    switches: Switches,
    properties: NodeProperties,
    observer: Observer | None = None,
    batches: BatchRegistry | None = None,
    attach: Callable[[SimulatedCluster], None] | None = None,
) -> SimulatedCluster:
    """Returns a cluster that follows these rules; arguments as of ``SimulatedCluster``."""
    kind = ZooKeeperCluster if isinstance(switches, ZooKeeperSwitches) else SimulatedCluster
    return kind(
        brokers=brokers,
        switches=switches,
        properties=properties,
        observer=observer,
        batches=batches,
        attach=attach,
    )


def make_checks(switches: Switches, on_alarm: Callable[[Alarm], None]) -> Checks:
    """Returns the checks of a cluster that follows these rules; ``on_alarm`` is told each alarm."""
    return ZooKeeperChecks(on_alarm) if isinstance(switches, ZooKeeperSwitches) else Checks(on_alarm)
