"""The command line of a child process that runs a module of this program.

``python -m`` puts the working directory first on the module path. That directory is the user's: a folder ``grpc`` or
``docker`` in it would be imported instead of the library. ``-P`` leaves it out.
"""

import sys


def module_command(module: str, *arguments: str, program: str = sys.executable) -> tuple[str, ...]:
    """Returns the command line that runs a module with its arguments.

    Args:
        module: full name, as ``python -m`` takes it.
        arguments: of the module.
        program: the Python that runs it.
    """
    return (program, "-P", "-m", module, *arguments)
