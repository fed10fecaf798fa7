"""Limits on what a process accepts from others at once."""

from typing import Final

MESSAGE_BYTES_MAX: Final = 104_857_600
"""Longest message that is received: the default of Kafka's ``socket.request.max.bytes``."""
