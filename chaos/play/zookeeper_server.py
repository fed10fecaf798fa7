"""Whether a run needs a ZooKeeper server, and what starts it."""

import contextlib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import msgspec

from chaos.scenario.scenario import Scenario
from emulator.cluster.sync_shim import find_sync_shim
from emulator.cluster.zookeeper_program import ZooKeeperProgram, find_zookeeper
from emulator.cluster.zookeeper_trial import tried
from emulator.core.eras import is_zookeeper_era
from emulator.core.errors import ConfigError, MissingToolError
from emulator.core.switches import ERAS
from emulator.plan.drivers import DriverName
from emulator.plan.nodes import CONTROLLER

_SHUTDOWN_BACKOFF: Final = "controlled.shutdown.retry.backoff.ms"
_SHUTDOWN_BACKOFF_MS: Final = "200"
"""The last broker of a cluster that is stopped has nobody to hand over to, and would ask three times, 5 s apart."""


def zookeeper_for(
    eras: Iterable[str], driver: DriverName, scenarios: Iterable[Scenario] = ()
) -> ZooKeeperProgram | None:
    """Returns what starts a server, where processes play an era with ZooKeeper.

    Args:
        eras: those that are played.
        driver: what plays them.
        scenarios: what is played in them.

    Raises:
        ConfigError: the driver plays no such eras.
        ZooKeeperTrialError: the server does not come up.
        MissingToolError: there is no Java, or no ZooKeeper, or where the server will lose power no C compiler.
    """
    wanted = next((era for era in eras if is_zookeeper_era(era)), None)
    if wanted is None or driver is DriverName.SIMULATOR:
        return None
    if not driver.has_zookeeper:
        expected = f"one of {', '.join(ERAS)}: --driver {driver.value} cannot play eras with ZooKeeper"
        raise ConfigError(key="era", value=wanted, expected=expected)
    if any(scenario.loses_power_of(CONTROLLER) for scenario in scenarios):
        return msgspec.structs.replace(_found(), sync_shim=find_sync_shim())
    return _found()


def recording_syncs(program: ZooKeeperProgram | None) -> ZooKeeperProgram | None:
    """Returns a program whose server can lose power, if a C compiler is at hand."""
    if program is None:
        return None
    with contextlib.suppress(MissingToolError):
        return msgspec.structs.replace(program, sync_shim=find_sync_shim())
    return program


def with_quick_shutdown(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties of the nodes of a cluster with ZooKeeper, where nobody said how patient they are."""
    return {_SHUTDOWN_BACKOFF: _SHUTDOWN_BACKOFF_MS, **properties}


@cache
def _found() -> ZooKeeperProgram:
    # Imported where there is a server: nobody else needs Java to play.
    from emulator.verification.java import find_java

    return tried(find_zookeeper(find_java().executable))
