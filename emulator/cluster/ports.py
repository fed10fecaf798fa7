"""Loopback ports that belong to one node for as long as a run lasts, also while the node is down.

A free port that was merely looked up can be taken by any outgoing connection before the node binds it, or between a
node's end and its restart. So the harness keeps a socket bound to it that never listens: with ``SO_REUSEADDR`` on both
sides the kernel then lets a server bind and listen there, but gives the port to nobody who asks for *some* port.
Addresses are thereby known before any process runs, and all of them start at once.
"""

import socket

LOOPBACK = "127.0.0.1"
"""The only address that anything here binds."""


class ReservedPort:
    """A loopback port that is used only by processes that are given its number. Close it when the run is over."""

    def __init__(self) -> None:
        """Reserve a port that is free now."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((LOOPBACK, 0))
        self.number: int = self._socket.getsockname()[1]
        """The port."""

    @property
    def address(self) -> str:
        """The port with its host, as gRPC and toxiproxy-server want it."""
        return f"{LOOPBACK}:{self.number}"

    def close(self) -> None:
        """Let go of the port."""
        self._socket.close()
