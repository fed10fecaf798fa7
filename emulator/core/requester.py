"""Senders of requests: a principal and its host."""

from typing import Final

import msgspec

from laststand.emulator.core.types import CLIENT_ID, NodeId

_FIRST_CONTROLLER_ID: Final = NodeId(100)
LOCAL_HOST: Final = "127.0.0.1"
ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of everybody who does not say, or prove, who it is."""


class Requester(msgspec.Struct, frozen=True):
    """The sender of a request.

    Attributes:
        principal: such as ``User:alice``.
        host: its IP address.
        forwarder: the broker that passes on the request of a client (Kafka's Envelope, KIP-590).
    """

    principal: str
    host: str = LOCAL_HOST
    forwarder: str | None = None


def node_name(node_id: NodeId) -> str:
    """Returns the name of a node, or of clients, in principals and certificates: ``broker-1``, ``client``."""
    if node_id == CLIENT_ID:
        return "client"
    if node_id > CLIENT_ID:
        return f"client-{node_id - CLIENT_ID}"
    return f"{'broker' if node_id < _FIRST_CONTROLLER_ID else 'controller'}-{node_id}"


def node_principal(node_id: NodeId) -> str:
    """Returns the principal of a node or client that proves no other: ``User:broker-1``, ``User:client``."""
    return f"User:{node_name(node_id)}"
