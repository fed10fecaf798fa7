"""The places where each driver's nodes run, and the toxiproxy-server that breaks their links there.

The Docker SDK is optional, and imported only where containers are used.
"""

from pathlib import Path

from laststand.emulator.cluster.docker_sdk import require_docker_sdk
from laststand.emulator.cluster.node_host import NodeHost
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.plan.drivers import DriverName


def make_host(driver: DriverName, *, project: str | None = None) -> NodeHost | None:
    """Returns the host of a driver's nodes; ``None`` for this machine's loopback.

    Args:
        driver: of the nodes.
        project: the docker compose project, if another party started it.
    """
    if driver is not DriverName.DOCKER:
        return None
    if project is not None:
        from laststand.emulator.cluster.containers.attached_host import AttachedHost

        return AttachedHost(project)
    from laststand.emulator.cluster.containers.container_host import ContainerHost
    from laststand.emulator.cluster.containers.images import chosen_images

    return ContainerHost(chosen_images())


def require_toxiproxy(driver: DriverName) -> Path:
    """Returns the program of toxiproxy-server where a driver's proxies run.

    Raises:
        MissingToolError: there is no such program.
    """
    if driver is not DriverName.DOCKER:
        return find_toxiproxy()
    from laststand.emulator.cluster.containers.images import TOXIPROXY_PROGRAM

    return TOXIPROXY_PROGRAM


def require_host(driver: DriverName) -> None:
    """Checks that a driver's nodes can run.

    Raises:
        MissingToolError: there is no Docker SDK, no engine answers, or an image is missing.
    """
    if driver is not DriverName.DOCKER:
        return
    require_docker_sdk()
    from laststand.emulator.cluster.containers.images import require_images

    require_images()


def remove_leftovers(driver: DriverName, directory: Path) -> int:
    """Removes the leftovers of a killed harness's run; returns their number. No process outlives it.

    Args:
        driver: of the nodes.
        directory: of the run.

    Raises:
        MissingToolError: no engine answers.
        EngineError: the engine refused.
    """
    if driver is not DriverName.DOCKER:
        return 0
    from laststand.emulator.cluster.containers.prune import remove_of_run

    return remove_of_run(directory)
