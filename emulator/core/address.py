"""Addresses of processes as text: ``host:port``."""

from typing import Final

PORT_MAX: Final = 65_535


def host_and_port(address: str) -> tuple[str, int]:
    """Returns the two parts of an address; the host may contain colons.

    Raises:
        ValueError: the port is not a number.
    """
    host, _, port = address.rpartition(":")
    return host, int(port)
