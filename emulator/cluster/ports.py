"""Loopback ports that belong to one node for as long as a run lasts, also while the node is down.

A free port that was merely looked up can be taken by any outgoing connection before the node binds it, or between a
node's end and its restart. So the harness keeps a socket bound to it that never listens: with ``SO_REUSEADDR`` on both
sides the kernel then lets a server bind and listen there, but assigns the port to no process that asks for *some* port.
Addresses are therefore known before any process runs, and all processes can start at once.

The kernel asks for no user there: any process could listen in place of a node that is down, and would be sent what is
meant for that node. So the harness sets ``SO_REUSEADDR`` only while the node starts.

A cluster that is stopped holds no socket, but shall have its addresses again. So free ports are chosen outside the
range from which the kernel gives ports to outgoing connections.
"""

import random
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from laststand.emulator.core.errors import ConfigError

LOOPBACK = "127.0.0.1"
"""The address that everything here binds, but for what a user asks ``laststand tap`` to."""

_FIRST_PORT: Final = 20_000
"""Lower ports are those of well-known servers."""

_EPHEMERAL_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")

_ATTEMPTS: Final = 100
"""Ports that are tried before the kernel chooses one."""


class ReservedPort:
    """A loopback port that is used only by processes that are given its number. Close it when the run is over."""

    def __init__(self, number: int | None = None) -> None:
        """Reserve the given port, or if none is given a free one.

        Raises:
            ConfigError: another process uses the port.
        """
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if number is not None:
                self._bind(number)
            elif not self._bind_outside_ephemeral_range():
                self._bind(0)
        except OSError as error:
            self._socket.close()
            raise ConfigError(key="port", value=str(number), expected=f"a free one ({error.strerror})") from None
        self.number: int = self._socket.getsockname()[1]
        """The port."""

    def _bind_outside_ephemeral_range(self) -> bool:
        candidates = _lasting_ports()
        for number in random.sample(candidates, min(_ATTEMPTS, len(candidates))):
            try:
                self._socket.bind((LOOPBACK, number))
            except OSError:
                continue
            return True
        return False

    def _bind(self, number: int) -> None:
        try:
            self._socket.bind((LOOPBACK, number))
        except OSError:
            # Connections of an earlier run linger there for a minute: then it cannot be kept from others.
            self.lend()
            self._socket.bind((LOOPBACK, number))

    def lend(self) -> None:
        """Let a process bind the port until ``close``."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let a process bind the port in this block; a process that has bound it keeps it."""
        self.lend()
        try:
            yield
        finally:
            if self._socket.fileno() >= 0:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)

    @property
    def address(self) -> str:
        """The port with its host, in the form that gRPC and toxiproxy-server use."""
        return f"{LOOPBACK}:{self.number}"

    def close(self) -> None:
        """Release the port."""
        self._socket.close()


@cache
def _lasting_ports() -> Sequence[int]:
    """Returns the ports that outgoing connections never get; none if the kernel does not name them."""
    try:
        lowest, highest = map(int, _EPHEMERAL_RANGE.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return ()
    return (*range(_FIRST_PORT, lowest), *range(highest + 1, 1 << 16))


def is_free(number: int) -> bool:
    """Returns whether a port can be reserved now."""
    try:
        ReservedPort(number).close()
    except ConfigError:
        return False
    return True
