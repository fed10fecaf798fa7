"""The names that a topic may have (Kafka's ``Topic.validate``)."""

import re
from typing import Final

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_legal(name: str) -> bool:
    """Returns whether a topic may have this name."""
    return _LEGAL.fullmatch(name) is not None and name not in (".", "..")
