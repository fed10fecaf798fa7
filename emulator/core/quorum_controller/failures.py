"""Failures of operations of the active controller: their answers, and whether the controller resigns.

Kafka's ``EventHandlerExceptionInfo``: an error of the protocol is an ordinary answer; a controller that cannot append
any longer resigns; and after an unforeseen exception the state may be wrong, so that the controller resigns, too. A
record that cannot be applied is no failure of an operation: the process stops (``InvariantError``).

Two of Kafka's exceptions have no counterpart. Its event queue rejects operations once the process stops
(REQUEST_TIMED_OUT), and nobody hears that, as its socket server has stopped before; here whoever asks a controller that
stops is answered NOT_CONTROLLER. Its lists of records are bounded (POLICY_VIOLATION); here a request for too many
partitions is refused before anything is decided (``AdminHandler``).
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from laststand.emulator.core.errors import ErrorCode


class OperationFailure(Enum):
    """Reasons why an operation ends without an answer of its own."""

    NOT_LEADER = "the quorum takes its records no longer"
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
    OperationFailure.UNFORESEEN: Outcome(error=ErrorCode.UNKNOWN_SERVER_ERROR, resigns=True, is_fault=True),
}


def outcome_of(failure: OperationFailure | ErrorCode) -> Outcome:
    """Returns the outcome of a failure; of an error of the protocol, the error itself."""
    return Outcome(error=failure) if isinstance(failure, ErrorCode) else _OUTCOMES[failure]
