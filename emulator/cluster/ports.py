"""Loopback ports that belong to one node for as long as a run lasts, also while the node is down.

A free port that was merely looked up can be taken by any outgoing connection before the node binds it, or between a
node's end and its restart. So the harness keeps a socket bound to it that never listens: with ``SO_REUSEADDR`` on both
sides the kernel then lets a server bind and listen there, but gives the port to nobody who asks for *some* port.
Addresses are thereby known before any process runs, and all of them start at once.

The kernel asks for no user there: any process could listen in place of a node that is down, and would be sent what is
meant for that node. So the harness sets ``SO_REUSEADDR`` only while the node starts.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from laststand.emulator.core.errors import ConfigError

LOOPBACK = "127.0.0.1"
"""The address that everything here binds, but for what a user asks ``laststand tap`` to."""


class ReservedPort:
    """A loopback port that is used only by processes that are given its number. Close it when the run is over."""

    def __init__(self, number: int | None = None) -> None:
        """Reserve a port: that one, or if not given one that is free now.

        Raises:
            ConfigError: somebody else has it.
        """
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._bind(0 if number is None else number)
        except OSError as error:
            self._socket.close()
            raise ConfigError(key="port", value=str(number), expected=f"a free one ({error.strerror})") from None
        self.number: int = self._socket.getsockname()[1]
        """The port."""

    def _bind(self, number: int) -> None:
        try:
            self._socket.bind((LOOPBACK, number))
        except OSError:
            # Connections of an earlier run linger there for a minute: then it cannot be kept from others.
            self.lend()
            self._socket.bind((LOOPBACK, number))

    def lend(self) -> None:
        """Let a process bind the port from now on."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let a process bind the port in this block; whoever has bound it keeps it."""
        self.lend()
        try:
            yield
        finally:
            if self._socket.fileno() >= 0:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)

    @property
    def address(self) -> str:
        """The port with its host, as gRPC and toxiproxy-server want it."""
        return f"{LOOPBACK}:{self.number}"

    def close(self) -> None:
        """Let go of the port."""
        self._socket.close()


def is_free(number: int) -> bool:
    """Returns whether a port can be reserved now."""
    try:
        ReservedPort(number).close()
    except ConfigError:
        return False
    return True
