"""Alarms of one run, each with whether the guarantee held.

A *moment* is the number of an event or of a line of the history. Alarms with the same sentence are kept once.
"""

from collections.abc import Callable

from laststand.emulator.core.promises import PROMISES, Exemption, PromiseKind
from laststand.emulator.core.types import NodeId, TopicPartition
from laststand.emulator.simulator.oracle.finding import Alarm, Guarantee
from laststand.emulator.simulator.oracle.guarantee import GuaranteeLedger
from laststand.emulator.simulator.oracle.truth import PartitionTruth

_OF_A_LOSS = (PromiseKind.OUTCOME, PromiseKind.CANDIDATE)


class AlarmLog:
    """All alarms of one run.

    Args:
        truths: by partition, for their guarantees.
        steps: returns the cluster's step.
        on_alarm: is called with each alarm.
        promised_by: returns whether a check is promised for an action of a node, whatever other nodes promise.

    Attributes:
        alarms: in order.
        moment: the present moment.
    """

    def __init__(
        self,
        truths: dict[TopicPartition, PartitionTruth],
        steps: Callable[[], int],
        on_alarm: Callable[[Alarm], None] | None,
        promised_by: Callable[[str, NodeId | None], bool],
    ) -> None:
        self.alarms: list[Alarm] = []
        self.moment = 0
        self._truths = truths
        self._steps = steps
        self._on_alarm = on_alarm
        self._promised_by = promised_by
        self._reported: set[tuple[str, TopicPartition | None, str]] = set()
        self._without_evidence: set[str] = set()

    def hide(self, *check_ids: str) -> None:
        """Marks later alarms of these checks as alarms without evidence on disk."""
        self._without_evidence.update(check_ids)

    def report(
        self,
        check_id: str,
        partition: TopicPartition | None,
        sentence: str,
        *,
        since: int = 0,
        until: int | None = None,
        ledger: GuaranteeLedger | None = None,
        guarantee: Guarantee | None = None,
        leaves_evidence: bool = True,
        by: NodeId | None = None,
    ) -> None:
        """Raises an alarm.

        Args:
            check_id: of ``PROMISES``.
            partition: the partition concerned, if there is one.
            sentence: the problem, in words.
            since: the moment from which an outcome was promised.
            until: the moment up to which the guarantee had to hold; now, if ``None``.
            ledger: guarantee ledger of the topic concerned; ``None`` for the partition's present topic.
            guarantee: whether the promise had to hold, if no ledger decides that.
            leaves_evidence: whether the run directory shows the problem, too.
            by: the broker that broke the promise, if a single one did.
        """
        key = (check_id, partition, sentence)
        if key in self._reported:
            return
        self._reported.add(key)
        kind = PROMISES[check_id].kind
        if ledger is None and partition in self._truths:
            ledger = self._truths[partition].ledger
        end = self.moment if until is None else until
        if guarantee is None:
            holds = kind not in _OF_A_LOSS or ledger is None or ledger.held(min(since, end), end)
            guarantee = Guarantee.HOLDS if holds else Guarantee.EXCEEDED
        exempts = PROMISES[check_id].leaves_out(Exemption.UNCLEAN_ELECTIONS)
        alarm = Alarm(
            check_id=check_id,
            kind=kind,
            partition=partition,
            guarantee=guarantee,
            sentence=sentence,
            step=self._steps(),
            leaves_evidence=leaves_evidence and check_id not in self._without_evidence,
            is_exempt=exempts and ledger is not None and ledger.elected_uncleanly(min(since, end), end),
            is_promised=self._promised_by(check_id, by),
        )
        self.alarms.append(alarm)
        if self._on_alarm is not None:
            self._on_alarm(alarm)
