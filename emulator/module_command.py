"""The command line of a child process that runs a module of this program.

``python -m`` puts the working directory first on the module path. That directory is the user's: a folder ``grpc`` or
``docker`` in it would be imported instead of the library. ``-P`` leaves it out.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_SOURCES: Final = Path(__file__).parents[2]


def module_command(module: str, *arguments: str) -> tuple[str, ...]:
    """Returns the command line that runs a module with its arguments.

    Args:
        module: full name, as for ``python -m``.
        arguments: of the module.
    """
    return (sys.executable, "-P", "-m", module, *arguments)


def module_of(command: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Returns module and arguments of a command line of ``module_command``."""
    _, _, _, module, *arguments = command
    return module, arguments


def source_environment() -> dict[str, str]:
    """Returns the environment in which a child imports this very program, wherever the harness was started."""
    known = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": str(_SOURCES) if not known else f"{_SOURCES}{os.pathsep}{known}"}
