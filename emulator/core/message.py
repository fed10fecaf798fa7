"""What all requests and responses have in common."""

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all requests and responses."""
