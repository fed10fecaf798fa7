"""Alarms: checks that fired, and which of them are findings.

A loss within the guarantee means that the protocol is wrong. A loss outside of it follows from the run's own faults
and configuration, and is only counted.
"""

from collections.abc import Callable
from enum import Enum

import msgspec

from laststand.emulator.core.promises import PromiseKind
from laststand.emulator.core.types import TopicPartition


class Guarantee(Enum):
    """The state of the guarantee: broken, or exceeded because too much had failed."""

    HOLDS = "holds"
    EXCEEDED = "exceeded"


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """One check that fired.

    Attributes:
        check_id: such as ``D1``.
        kind: of the promise.
        partition: the partition concerned, if there is one.
        guarantee: whether the promise had to hold.
        sentence: the problem, in words.
        step: of the cluster, when it fired.
        leaves_evidence: whether the run directory shows the problem, too.
        is_exempt: whether an unclean election happened since, and the promise exempts that.
        is_promised: whether the processes that the check depends on promised it, even if other nodes did not.
    """

    check_id: str
    kind: PromiseKind
    partition: TopicPartition | None
    guarantee: Guarantee
    sentence: str
    step: int
    leaves_evidence: bool = True
    is_exempt: bool = False
    is_promised: bool = False

    def __str__(self) -> str:
        return f"{self.check_id} at step {self.step}: {self.sentence}"


def is_finding(alarm: Alarm, is_promised: Callable[[str], bool]) -> bool:
    """Returns whether an alarm means that the protocol is wrong.

    Args:
        alarm: the alarm.
        is_promised: returns whether the cluster makes the check's promise.
    """
    return alarm.guarantee is Guarantee.HOLDS and (alarm.is_promised or is_promised(alarm.check_id))
