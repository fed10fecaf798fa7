"""Whether the Docker SDK is there: whoever asks has not imported ``laststand.emulator.cluster.containers``, which needs it."""

import importlib.util

from laststand.emulator.core.errors import MissingToolError


def require_docker_sdk() -> None:
    """Checks that the Docker SDK can be imported.

    Raises:
        MissingToolError: it cannot.
    """
    if importlib.util.find_spec("docker") is None:
        raise MissingToolError(tool="the Docker SDK", expected="it installed: pip install 'laststand[docker]'")
