"""What a check says when it fires.

A loss within the guarantee means that the protocol is wrong; one outside of it is what the run asked for, and is only
counted. Which alarms are findings is in ``catalogue``, beside the list of all checks.
"""

from enum import Enum

import msgspec

from emulator.core.types import TopicPartition


class CheckKind(Enum):
    """What a check is about."""

    OUTCOME = "outcome"
    CANDIDATE = "candidate"
    """D3: an electable replica lacks committed records; one more election makes it an outcome."""

    RULE = "rule"
    LIVENESS = "liveness"
    CRASH = "crash"
    """The core raised ``InvariantError``, or any other exception."""


class Guarantee(Enum):
    """Whether too much was broken for the promise to hold."""

    HOLDS = "holds"
    EXCEEDED = "exceeded"


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """One check that fired.

    Attributes:
        check_id: such as ``D1``.
        kind: of the check.
        partition: which it is about, if about one.
        guarantee: whether it had to hold.
        sentence: what is wrong.
        step: of the cluster, when it fired.
    """

    check_id: str
    kind: CheckKind
    partition: TopicPartition | None
    guarantee: Guarantee
    sentence: str
    step: int

    def __str__(self) -> str:
        return f"{self.check_id} at step {self.step}: {self.sentence}"
