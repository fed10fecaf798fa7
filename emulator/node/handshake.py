"""How a node tells its launcher that it listens: one line on a pipe whose number is in the environment.

::

    {"ready": true, "port": 41873}
"""

import os
from typing import Final

import msgspec

READY_VARIABLE: Final = "LASTSTAND_READY_FD"
"""Names the file descriptor of the pipe; a node that was started by hand has none."""


class ReadyLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a node says when it listens."""

    ready: bool
    port: int


def report_ready(port: int) -> None:
    """Writes the ready line, where somebody waits for it, and closes the pipe."""
    descriptor = os.environ.get(READY_VARIABLE)
    if descriptor is not None:
        os.write(int(descriptor), msgspec.json.encode(ReadyLine(ready=True, port=port)) + b"\n")
        os.close(int(descriptor))
