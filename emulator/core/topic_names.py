"""The names that a topic may have, and those of Kafka's own topics (Kafka's ``Topic``)."""

import re
from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
"""The topic of groups and their positions."""

TRANSACTIONS_TOPIC: Final = "__transaction_state"
"""The topic of transactional ids and their transactions."""

INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""Topics that clients may read, and only brokers write."""

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_legal(name: str) -> bool:
    """Returns whether a topic may have this name."""
    return _LEGAL.fullmatch(name) is not None and name not in (".", "..")
