"""Fields that all requests and responses share."""

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all requests and responses."""
