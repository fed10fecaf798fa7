"""Finds out whether a run needs a ZooKeeper server, and the program that starts it."""

import contextlib
from collections.abc import Iterable
from functools import cache

import msgspec

from laststand.chaos.scenario.scenario import Scenario
from laststand.emulator.cluster.docker_sdk import require_docker_sdk
from laststand.emulator.cluster.sync_shim import find_sync_shim
from laststand.emulator.cluster.zookeeper_program import ZooKeeperProgram, find_zookeeper
from laststand.emulator.cluster.zookeeper_trial import tried
from laststand.emulator.core.eras import era_kind, is_zookeeper_era
from laststand.emulator.core.errors import ConfigError, MissingToolError
from laststand.emulator.core.switches import ERAS
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import CONTROLLER


def zookeeper_for(
    eras: Iterable[str], driver: DriverName, scenarios: Iterable[Scenario] = ()
) -> ZooKeeperProgram | None:
    """Returns the program of a server, where processes of this machine play an era with ZooKeeper.

    Args:
        eras: those that are played.
        driver: the driver of the runs.
        scenarios: the scenarios to play.

    Raises:
        ConfigError: the driver plays no such eras.
        ZooKeeperTrialError: the server does not come up.
        MissingToolError: there is no Java, or no ZooKeeper, or where the server will lose power no C compiler; or no
            Docker engine with the server's image.
    """
    wanted = next((era for era in eras if is_zookeeper_era(era)), None)
    if wanted is None or driver is DriverName.SIMULATOR:
        return None
    if not driver.plays(era_kind(wanted)):
        expected = f"one of {', '.join(ERAS)}: --driver {driver.value} cannot play eras with ZooKeeper"
        raise ConfigError(key="era", value=wanted, expected=expected)
    if driver is DriverName.DOCKER:
        _require_image()
        return None
    if any(scenario.loses_power_of(CONTROLLER) for scenario in scenarios):
        return msgspec.structs.replace(_found(), sync_shim=find_sync_shim())
    return _found()


def recording_syncs(program: ZooKeeperProgram | None) -> ZooKeeperProgram | None:
    """Returns a program whose server can lose power, if a C compiler is available."""
    if program is None:
        return None
    with contextlib.suppress(MissingToolError):
        return msgspec.structs.replace(program, sync_shim=find_sync_shim())
    return program


@cache
def _require_image() -> None:
    require_docker_sdk()
    from laststand.emulator.cluster.containers.images import require_analysis_image

    require_analysis_image()


@cache
def _found() -> ZooKeeperProgram:
    # Imported only if there is a server: other runs need no Java to play.
    from laststand.emulator.verification.spark.java import find_java

    return tried(find_zookeeper(find_java().executable))
