"""Limits on the simultaneous requests and bytes that a process accepts."""

from typing import Final

MESSAGE_BYTES_MAX: Final = 104_857_600
"""Longest message that is received: the default of Kafka's ``socket.request.max.bytes``."""
