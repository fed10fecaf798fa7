"""Looks for what a verb needs before anything starts."""

import importlib.util
from pathlib import Path

from emulator.core.errors import MissingToolError


def require_spark() -> None:
    """Checks that verification can run.

    Raises:
        MissingToolError: no pyspark, or no Java that is new enough.
    """
    from emulator.verification.java import find_java

    if importlib.util.find_spec("pyspark") is None:
        raise MissingToolError(tool="pyspark", expected="it installed: pip install 'laststand[verify]', or make setup")
    find_java()


def require_toxiproxy() -> Path:
    """Returns the program of toxiproxy-server.

    Raises:
        MissingToolError: it is not installed and was not built.
    """
    from emulator.cluster.toxiproxy_build import find_toxiproxy

    return find_toxiproxy()
