"""The operations that a client may do, as answers have them: all of them, since nothing is denied here.

Bits are the codes of Kafka's ``AclOperation``.
"""

from typing import Final

TOPIC_OPERATIONS: Final = 3576
CLUSTER_OPERATIONS: Final = 8096
GROUP_OPERATIONS: Final = 3400

_NOT_ASKED: Final = -2147483648


def authorized_operations(operations: int, *, is_asked: bool) -> int:
    """Returns the operations for a client that asked for them, and Kafka's number for "not asked" for others."""
    return operations if is_asked else _NOT_ASKED
