"""Names of topics that no topic can have, and names that are Kafka's own (Kafka's ``Topic``)."""

import re
from typing import Final

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that clients may read, and only the broker writes."""


def is_legal(name: str) -> bool:
    """Returns whether a topic may have this name."""
    return _LEGAL.fullmatch(name) is not None and name not in (".", "..")
