"""Failures of operations of the active controller: their answers, and what they cost.

Kafka's ``EventHandlerExceptionInfo``: an error of the protocol is an ordinary answer; a controller that cannot append
any longer resigns; and after an unforeseen exception the state may be wrong, so that the controller resigns, too. A
record that cannot be applied is no failure of an operation: the process stops (``InvariantError``).
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from laststand.emulator.core.errors import ErrorCode


class OperationFailure(Enum):
    """Reasons why an operation ends without an answer of its own."""

    NOT_LEADER = "the quorum takes its records no longer"
    STOPPING = "the controller takes no more operations, since its process is about to stop"
    TOO_MANY_RECORDS = "it would have written more records than one operation may"
    UNFORESEEN = "anything else, which is a bug"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an operation that failed.

    Attributes:
        error: its answer.
        resigns: the controller gives its leadership up.
        is_fault: it should never occur, and is reported.
    """

    error: ErrorCode
    resigns: bool = False
    is_fault: bool = False


_OUTCOMES: Final[Mapping[OperationFailure, Outcome]] = {
    OperationFailure.NOT_LEADER: Outcome(error=ErrorCode.NOT_CONTROLLER, resigns=True),
    OperationFailure.STOPPING: Outcome(error=ErrorCode.REQUEST_TIMED_OUT),
    OperationFailure.TOO_MANY_RECORDS: Outcome(error=ErrorCode.POLICY_VIOLATION),
    OperationFailure.UNFORESEEN: Outcome(error=ErrorCode.UNKNOWN_SERVER_ERROR, resigns=True, is_fault=True),
}


def outcome_of(failure: OperationFailure | ErrorCode) -> Outcome:
    """Returns the outcome of a failure; of an error of the protocol, the error itself."""
    return Outcome(error=failure) if isinstance(failure, ErrorCode) else _OUTCOMES[failure]
