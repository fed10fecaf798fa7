"""Judges a whole simulated run with the verdicts of ``laststand verify``, which reads runs from disk.

A *finding* means that the protocol is wrong: a promise was broken although the guarantee held. A verdict is about the
run: it is also a violation where too many failures had exceeded the guarantee, and unknown where acknowledged records
could not be read at the end.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

import msgspec

from laststand.emulator.core.promises import PROMISES, JudgedBy
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.simulator.oracle.finding import Alarm
from laststand.emulator.simulator.oracle.losses import LostBatch

_TRANSIENT: Final = frozenset({"D6", "D16"})
"""Checks whose alarms may pass: replicas that disagree until one truncates, and records that a consumer got from a log
that was not yet what had been committed. The alarms name them; the verdict is about the end of the run."""

_OF_MOMENTS: Final = frozenset({"D3", "D8", "D9", "H4", "L1", "L2", "L3", "L4", "L6"})
"""The simulator sees them at every moment, verification at the few that leave a trace: where they show there, what they
lead to shows, too."""

_CRASHES: Final = frozenset({"InvariantError", "Exception"})
"""Alarms about a process that ended by itself: what such a process leaves proves nothing."""

_STILL_DIFFERENT: Final = "L6"
"""Replicas differ at the end, so what is transient elsewhere was left behind."""


class RunVerdict(Enum):
    """The verdict on a run."""

    VALID = "valid"
    VIOLATION = "violation"
    UNKNOWN = "unknown"


class LossGuarantee(Enum):
    """The relation of a loss to the guarantee: whether the guarantee covered it."""

    BROKEN = "broken"
    EXCEEDED = "exceeded"


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a run.

    Attributes:
        verdict: the verdict.
        guarantee: ``broken`` if any loss is within the guarantee, ``exceeded`` if none is, ``None`` without loss.
        lost_records: number of records that were acknowledged with acks=all and lost.
        violated: checks that fired, and that verification also makes.
        doubts: reasons for the verdict ``unknown``, in words.
    """

    verdict: RunVerdict
    guarantee: LossGuarantee | None
    lost_records: int
    violated: tuple[str, ...]
    doubts: tuple[str, ...]

    def __str__(self) -> str:
        kind = "" if self.guarantee is None else f", guarantee {self.guarantee.value}"
        return f"{self.verdict.value}{kind}, {self.lost_records} acks=all records lost"


def judge(
    alarms: tuple[Alarm, ...],
    lost: tuple[LostBatch, ...],
    *,
    is_promised: Callable[[str], bool],
    unread: tuple[TopicPartition, ...],
    acks: int,
) -> Judgement:
    """Returns the verdict on a run that is over.

    Args:
        alarms: all alarms of the run.
        lost: all lost batches.
        is_promised: returns whether the cluster makes a check's promise.
        unread: partitions that could not be read at the end.
        acks: number of batches acknowledged, with acks=all or acks=1; a run without any proves nothing.
    """
    differing = {alarm.partition for alarm in alarms if alarm.check_id == _STILL_DIFFERENT}
    violated = {
        alarm.check_id
        for alarm in alarms
        if _counts(alarm, is_promised) and (alarm.check_id not in _TRANSIENT or alarm.partition in differing)
    }
    if lost:
        violated.add("D1")
    doubts = (
        *(() if acks else ("no record was acknowledged",)),
        *(f"a process ended by itself: {alarm}" for alarm in alarms if alarm.check_id in _CRASHES),
        *(f"{name} ended without a leader, as the protocol allows, so nobody could read it" for name in unread),
    )
    guarantee = None
    if lost:
        guarantee = LossGuarantee.BROKEN if any(each.is_covered for each in lost) else LossGuarantee.EXCEEDED
    verdict = RunVerdict.VIOLATION if violated else RunVerdict.UNKNOWN if doubts else RunVerdict.VALID
    return Judgement(
        verdict=verdict,
        guarantee=guarantee,
        lost_records=sum(each.records for each in lost),
        violated=tuple(check_id for check_id in PROMISES if check_id in violated),
        doubts=doubts,
    )


def _counts(alarm: Alarm, is_promised: Callable[[str], bool]) -> bool:
    is_shared = PROMISES[alarm.check_id].judged_by is JudgedBy.BOTH and alarm.check_id not in _OF_MOMENTS
    if not is_shared or not alarm.leaves_evidence or alarm.is_exempt:
        return False
    return alarm.is_promised or is_promised(alarm.check_id)
