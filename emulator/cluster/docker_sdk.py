"""Tells whether the Docker SDK is installed, without an import of ``laststand.emulator.cluster.containers``."""

import importlib.util

from laststand.emulator.core.errors import MissingToolError


def require_docker_sdk() -> None:
    """Checks that the Docker SDK can be imported.

    Raises:
        MissingToolError: the SDK cannot be imported.
    """
    if importlib.util.find_spec("docker") is None:
        raise MissingToolError(tool="the Docker SDK", expected="it installed: pip install 'laststand[docker]'")
