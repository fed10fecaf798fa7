"""The meaning of an answer to a produce request for the producer.

The producer tries again after most errors; only what can never succeed ends a batch before its delivery timeout.
Source: ``RetriableException`` and its subclasses, and ``TransactionManager.canRetry`` of Apache Kafka's client.
"""

from enum import Enum
from typing import Final

from laststand.emulator.core.errors import ErrorCode


class Verdict(Enum):
    """The decision about a batch after one attempt."""

    ACKNOWLEDGED = "acknowledged"
    RETRY = "retry"
    RETRY_ELSEWHERE = "retry elsewhere"
    """Ask for the leader first."""

    SEQUENCE_LOST = "sequence lost"
    """The broker does not know what came before this batch (KIP-360)."""

    HOPELESS = "hopeless"


_ELSEWHERE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
_AGAIN: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.REQUEST_LIMIT_REACHED,
    }
)
_SEQUENCE: Final = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})


def judge(error: ErrorCode) -> Verdict:
    """Returns the meaning of an answer for its batch."""
    if error is ErrorCode.NONE:
        return Verdict.ACKNOWLEDGED
    if error in _ELSEWHERE:
        return Verdict.RETRY_ELSEWHERE
    if error in _AGAIN:
        return Verdict.RETRY
    if error in _SEQUENCE:
        return Verdict.SEQUENCE_LOST
    return Verdict.HOPELESS
