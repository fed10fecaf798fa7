"""Three families of errors, never mixed.

*Protocol errors* are ``ErrorCode`` members that travel in responses. *Environment errors* derive from
``EmulatorError``, carry fields and are mapped where they enter. *Bugs* raise ``InvariantError`` and stop the
process; nothing catches them.
"""

import re
from collections.abc import Iterable
from enum import IntEnum
from typing import Final


class ErrorCode(IntEnum):
    """Kafka's protocol errors, with Kafka's names and numbers (``org.apache.kafka.common.protocol.Errors``)."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    UNKNOWN_PRODUCER_ID = 59
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    PRODUCER_FENCED = 90
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    REQUEST_LIMIT_REACHED = 1000  # KIP-966 names no number, and Kafka never shipped it.

    @property
    def is_definite(self) -> bool:
        """A definite error proves that the produce request has appended nothing, and never will."""
        return self not in _INDEFINITE


_INDEFINITE = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,  # also answers an operation that waited when leadership was lost
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


_SHOWN_CHARACTERS: Final = 80
_RESEMBLANCE: Final = 0.6
"""Least similarity, from 0 to 1, at which one word is offered as a correction of another."""

_MEMBER: Final = re.compile(r"([\w./-]+)(?=,)|(?<=, )([\w./-]+)")


def shown(text: str) -> str:
    """Returns a text from a user's file for use in a message; a long text is shortened, and its length added."""
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}... ({len(text)} characters)"


class EmulatorError(Exception):
    """An environment error: something outside the protocol went wrong. Subclasses carry fields, not prose."""


_VALUE_CHARACTERS: Final = 400
"""The limit is large, as a value on a command line may be a list of paths, and users want to see all of them."""


def _shortened(value: str) -> str:
    return value if len(value) <= _VALUE_CHARACTERS else shown(value)


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """Returns ``"; did you mean ...?"`` for a word that resembles an allowed one, else nothing."""
    import difflib  # no process needs it before a mistake

    close = difflib.get_close_matches(word, list(allowed), n=1, cutoff=_RESEMBLANCE)
    return f"; did you mean {close[0]!r}?" if close else ""


def _members(text: str) -> list[str]:
    """Returns the words of the comma-separated lists in a text."""
    return [first or second for first, second in _MEMBER.findall(text)]


class ConfigError(EmulatorError):
    """A property, switch or era that does not exist or has an impossible value.

    Attributes:
        key: the name as the user wrote it.
        value: the value as the user wrote it, or ``None`` if the key itself is unknown.
        expected: the accepted values, in words.
    """

    def __init__(self, *, key: str, value: str | None, expected: str) -> None:
        what = (
            f"unknown key {shown(key)!r}" if value is None else f"{_shortened(key)}={_shortened(value)} is not allowed"
        )
        meant = "" if "did you mean" in expected else suggestion(value or key, _members(expected))
        super().__init__(f"{what}; expected {expected}{meant}")
        self.key = key
        self.value = value
        self.expected = expected


class MissingToolError(ConfigError):
    """A program that Laststand needs is not installed, or too old.

    Attributes:
        key: the program's name.
        expected: the accepted values, and the places searched, in words.
    """

    def __init__(self, *, tool: str, expected: str) -> None:
        EmulatorError.__init__(self, f"{tool} was not found; expected {expected}")
        self.key = tool
        self.value = None
        self.expected = expected


class FailingToolError(MissingToolError):
    """A program that Laststand needs is installed but does not run.

    Attributes:
        key: the program's name.
        expected: why it does not run, in words.
    """

    def __init__(self, *, tool: str, program: str, reason: str) -> None:
        super().__init__(tool=tool, expected=reason)
        self.args = (f"{tool} does not run: {program}: {reason}",)


class UnsupportedFeatureError(EmulatorError):
    """A controller read a finalized feature level that its release does not have; its process has to end."""


class StorageError(EmulatorError):
    """A file could not be read or written.

    Attributes:
        path: the file or directory.
        reason: the cause in words.
    """

    def __init__(self, *, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class CorruptRecordError(StorageError):
    """Bytes that do not form a valid record batch, at ``position`` of ``path``."""

    def __init__(self, *, path: str, position: int, reason: str) -> None:
        super().__init__(path=path, reason=f"at byte {position}: {reason}")
        self.position = position


class TransportError(EmulatorError):
    """A peer could not be reached or did not answer.

    Attributes:
        node_id: the peer.
        reason: the cause in words.
    """

    def __init__(self, *, node_id: int, reason: str) -> None:
        super().__init__(f"node {node_id}: {reason}")
        self.node_id = node_id
        self.reason = reason


class InvariantError(AssertionError):
    """An invariant of the program is violated. Never caught; the process stops."""


def causes_of(error: BaseException) -> list[BaseException]:
    """Returns the errors in an exception group, in order; for any other error, the error itself."""
    if isinstance(error, BaseExceptionGroup):
        return [cause for each in error.exceptions for cause in causes_of(each)]
    return [error]
