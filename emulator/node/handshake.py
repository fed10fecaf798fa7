"""Reports to a node's launcher that the node listens: one line on a pipe whose number is in the environment.

::

    {"ready": true, "port": 41873, "metrics_port": null}
"""

import os
from typing import Final

import msgspec

READY_VARIABLE: Final = "LASTSTAND_READY_FD"
"""Names the file descriptor of the pipe; a node that was started by hand has none."""


class ReadyLine(msgspec.Struct, frozen=True, kw_only=True):
    """The message of a node that listens; ``metrics_port`` is ``None`` if it has no metrics."""

    ready: bool
    port: int
    metrics_port: int | None


def report_ready(port: int, metrics_port: int | None) -> None:
    """Writes the ready line if the environment names a pipe for it, and closes the pipe."""
    descriptor = os.environ.get(READY_VARIABLE)
    if descriptor is not None:
        line = ReadyLine(ready=True, port=port, metrics_port=metrics_port)
        os.write(int(descriptor), msgspec.json.encode(line) + b"\n")
        os.close(int(descriptor))
