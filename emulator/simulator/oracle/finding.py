"""The finding of a check that fires.

A loss within the guarantee means that the protocol is wrong; one outside of it is what the run asked for, and is only
counted.
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
        partition: which it is about, if about one.
        guarantee: whether it had to hold.
        sentence: what is wrong.
        step: of the cluster, when it fired.
        leaves_evidence: whether what a run leaves on disk shows it, too.
        is_exempt: whether an unclean election was held since, and the promise leaves that out.
        is_promised: whether those promised it on whose rules it rests, even if others of the cluster did not.
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
        alarm: what was seen.
        is_promised: whether the cluster promises what a check looks for.
    """
    return alarm.guarantee is Guarantee.HOLDS and (alarm.is_promised or is_promised(alarm.check_id))
