"""Loopback ports that belong to one node for as long as a run lasts, also while the node is down.

A free port that was merely looked up can be taken by any outgoing connection before the node binds it, or between a
node's end and its restart. So the harness keeps a socket bound to it that never listens: with ``SO_REUSEADDR`` on both
sides the kernel then lets a server bind and listen there, but gives the port to nobody who asks for *some* port.
Addresses are thereby known before any process runs, and all of them start at once.
"""

import socket

from emulator.core.errors import ConfigError

LOOPBACK = "127.0.0.1"
"""The only address that anything here binds."""


class ReservedPort:
    """A loopback port that is used only by processes that are given its number. Close it when the run is over."""

    def __init__(self, number: int | None = None) -> None:
        """Reserve a port: that one, or if not given one that is free now.

        Raises:
            ConfigError: somebody else has it.
        """
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((LOOPBACK, 0 if number is None else number))
        except OSError as error:
            self._socket.close()
            raise ConfigError(key="port", value=str(number), expected=f"a free one ({error.strerror})") from None
        self.number: int = self._socket.getsockname()[1]
        """The port."""

    @property
    def address(self) -> str:
        """The port with its host, as gRPC and toxiproxy-server want it."""
        return f"{LOOPBACK}:{self.number}"

    def close(self) -> None:
        """Let go of the port."""
        self._socket.close()


def is_free(number: int) -> bool:
    """Whether a port can be reserved now."""
    try:
        ReservedPort(number).close()
    except ConfigError:
        return False
    return True
