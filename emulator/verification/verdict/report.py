"""The verdict on a run.

``verdict.json`` is ``VerdictReport`` as JSON, field by field; enums are their values. Fields are added, never renamed,
within one ``version``. ``docs/verdict.md`` describes them, ``verdict.schema.json`` beside this file is its JSON Schema.

A violation stays a violation even if something else is unknown; unknown is never success.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, assert_never

import msgspec

from laststand.emulator.core.eras import era_label
from laststand.emulator.core.promises import Exemption, PromiseKind
from laststand.emulator.verification.doubts.doubt import Doubt
from laststand.emulator.verification.rules.check import Evidence
from laststand.emulator.verification.rules.guarantee import Guarantee, worst_of
from laststand.emulator.verification.verdict.acks_comparison import AcksComparison
from laststand.emulator.verification.verdict.availability import PartitionAvailability, WorkloadAvailability
from laststand.emulator.verification.verdict.loss_report import Loss
from laststand.emulator.verification.verdict.readers import Reader

VERSION: Final = 2

_OF_COMMITTED: Final = frozenset({"D2", "D5", "D15"})
"""Checks that a lost committed record violates, whatever its acks."""


class Verdict(Enum):
    """The verdict on a run."""

    VALID = "valid"
    VIOLATION = "violation"
    UNKNOWN = "unknown"


class Expected(Enum):
    """The comparison of a run with its expectation."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"


class CheckStatus(Enum):
    """The result of a check for a run."""

    OK = "ok"
    VIOLATED = "violated"
    NOT_PROMISED = "not promised"
    """A rule that the run's switches turn off."""

    NOT_ASKED = "not asked"
    """The run lacks a premise of the check, so the check had nothing to look at."""

    EXEMPT = "exempt"
    """The promise leaves out all findings: that is no violation, and no success either."""

    UNKNOWN = "unknown"
    """The evidence that the check needs is not whole."""


class Exempted(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of a check that its promise leaves out.

    Attributes:
        exemption: the case that is left out.
        count: of the findings.
        example: the first of them, in words.
    """

    exemption: Exemption
    count: int
    example: str

    def __str__(self) -> str:
        """Returns number, case and example in one line."""
        return f"{self.count} exempt, {self.exemption.value}: {self.example}"


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One check on one run.

    Attributes:
        check_id: of the promise.
        name: a word for the check.
        kind: of the promise.
        statement: the promise.
        status: the result.
        count: number of findings, but for exempted ones.
        examples: the first findings, in plain words.
        not_asked_because: the premise that the run lacks, if the check is ``not asked``.
        unknown_because: the incomplete evidence, if the check is ``unknown``.
        guarantee: the worst kind of violation: for D2, D5 and D15 of lost committed records, whatever their acks; for
            C4 of records that did not reach a consumer.
        exempted: findings that the promise leaves out; if there are no others, the check is ``exempt``.
    """

    check_id: str
    name: str
    kind: PromiseKind
    statement: str
    status: CheckStatus
    count: int
    examples: tuple[str, ...]
    not_asked_because: str | None = None
    unknown_because: tuple[Evidence, ...] = ()
    guarantee: Guarantee | None = None
    exempted: tuple[Exempted, ...] = ()

    @property
    def loses_commits(self) -> bool:
        """True if a violation of this check means that committed records are lost, whatever their acks."""
        return self.check_id in _OF_COMMITTED


class RecordCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Records sent with one kind of acks. Only those with acks=all decide.

    Attributes:
        acks: -1 (all), 0 or 1.
        sent: records of all sends.
        acked: acknowledged to the producer.
        lost: acknowledged with an offset, and not where they must be; always 0 for acks=0.
        never_acked: sent, and certainly or possibly failed.
    """

    acks: int
    sent: int
    acked: int
    lost: int
    never_acked: int


class ProducerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Records that one producer sent to one partition with one kind of acks.

    Attributes:
        process: the producer's name in the history.
        acks: -1 (all), 0 or 1.
        sent: records of all sends.
        acked: acknowledged to the producer.
        lost: acknowledged with an offset, and not where they must be.
        never_acked: sent, and certainly or possibly failed.
    """

    process: str
    acks: int
    sent: int
    acked: int
    lost: int
    never_acked: int


class GoneRange(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets of records that were acknowledged with acks=all and that no final log has; both ends inclusive.

    Attributes:
        topic_id: UUID of the topic.
        leader_epoch: in which they were appended: an offset may be used again in a later one.
        first: the first offset.
        last: the last offset.
    """

    topic_id: str
    leader_epoch: int | None
    first: int
    last: int


class PartitionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of the records of one partition.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        producers: counts by producer and acks.
        gone: records acknowledged with acks=all that no final log has; by epoch and offset.
        unseen: records that a broker acknowledged without a client that saw it: the answer was lost, or is not in the
            history.
    """

    topic: str
    partition: int
    producers: tuple[ProducerCounts, ...]
    gone: tuple[GoneRange, ...]
    unseen: int = 0


class VerdictReport(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one run, with all that verification reports about it.

    Attributes:
        version: of this form.
        run: directory of the run.
        scenario: name of the scenario.
        era: name of the era, if ``cluster.yaml`` has it.
        switches: the rules that its controller had.
        verdict: the verdict.
        guarantee: ``broken`` if any loss is, else ``not known`` or ``exceeded`` if any is, else ``None``.
        doubts: reasons why the run proves nothing.
        checks: every check.
        counts: records by acks.
        partitions: counts of each partition and producer, and the records that are gone.
        losses: lost acks=all records, by partition and fate.
        availability: how long each partition made its clients wait; the verdict does not depend on that.
        acks_comparison: a comparison by acks, if the scenario asks for it.
        readers: consumers that are not Laststand's own: the offsets that they received twice or never.
        seed: of the run's random choices, if ``cluster.yaml`` has it.
        started: calendar time of the run's beginning (ISO 8601, UTC), if ``cluster.yaml`` has it.
        duration_s: duration by the machine's clock, if ``cluster.yaml`` has it.
        changed: the run's changes of the era's rules and the scenario's properties, as ``name=value``, from
            ``cluster.yaml``.
        outcome: whether the run met its scenario's expectation for the era; without an expectation, by the verdict.
        misses: each difference from the expectation, in words.
        leaders: the partitions' committed states in order, in words; two runs are compared by them.
    """

    version: int = VERSION
    run: str
    scenario: str
    era: str | None
    switches: dict[str, str]
    verdict: Verdict
    guarantee: Guarantee | None
    doubts: tuple[Doubt, ...]
    checks: tuple[CheckResult, ...]
    counts: tuple[RecordCounts, ...]
    partitions: tuple[PartitionCounts, ...]
    losses: tuple[Loss, ...]
    leaders: tuple[str, ...]
    availability: tuple[PartitionAvailability, ...] = ()
    acks_comparison: AcksComparison | None = None
    readers: tuple[Reader, ...] = ()
    seed: int | None = None
    started: str | None = None
    duration_s: float | None = None
    changed: tuple[str, ...] = ()
    outcome: Expected
    misses: tuple[str, ...] = ()

    @property
    def era_label(self) -> str:
        """The era, and the run's changes of it."""
        return era_label(self.era, self.changed)

    @property
    def unknown_reasons(self) -> tuple[str, ...]:
        """The doubts in words."""
        return tuple(doubt.sentence for doubt in self.doubts)

    @property
    def lost_records(self) -> int:
        """The number of lost records that were acknowledged with acks=all."""
        return sum(loss.records for loss in self.losses)

    @property
    def guarantee_of_commits(self) -> Guarantee | None:
        """The worst kind of loss of committed records, whatever their acks; ``None`` if no check finds one."""
        return _worst(check for check in self.violated() if check.loses_commits)

    @property
    def worst_guarantee(self) -> Guarantee | None:
        """The kind of the losses of acks=all records; without such losses, the worst kind of any finding."""
        return self.guarantee or _worst(self.violated())

    @property
    def unavailable_s(self) -> float | None:
        """The longest time in seconds that a workload waited for an ack; ``None`` if nothing was sent for one."""
        longest = self.longest_wait
        return None if longest is None else longest.longest_without_ack_s

    @property
    def longest_wait(self) -> WorkloadAvailability | None:
        """The workload that waited longest for an ack; ``None`` if nothing was sent for one."""
        return max(self._workloads(), key=lambda each: each.longest_without_ack_s, default=None)

    @property
    def p99_ack_s(self) -> float | None:
        """The slowest workload's ``p99_ack_s``; ``None`` if nothing was acknowledged."""
        return max((each.p99_ack_s for each in self._workloads() if each.p99_ack_s is not None), default=None)

    @property
    def leaderless_s(self) -> float | None:
        """The longest time in seconds that a partition had no leader; ``None`` if it is known for no partition."""
        return max((each.leaderless_s for each in self.availability if each.leaderless_s is not None), default=None)

    @property
    def below_min_isr_s(self) -> float | None:
        """The longest time in seconds that a partition was below min ISR; ``None`` if it is known for no partition."""
        return max(
            (each.below_min_isr_s for each in self.availability if each.below_min_isr_s is not None), default=None
        )

    @property
    def fault_to_ack_s(self) -> float | None:
        """The longest time in seconds from a fault to an ack; ``None`` if there was no fault, or no ack after one."""
        found = [each.slowest_after_fault for each in self._workloads()]
        return max((each.seconds for each in found if each is not None and each.seconds is not None), default=None)

    def _workloads(self) -> Iterator[WorkloadAvailability]:
        return (workload for partition in self.availability for workload in partition.workloads)

    def exempted(self) -> tuple[str, ...]:
        """Returns a line for each exemption: the checks with such findings, and their number."""
        found: dict[Exemption, list[str]] = {}
        for check in self.checks:
            for each in check.exempted:
                found.setdefault(each.exemption, []).append(f"{check.check_id} {check.name} {each.count}")
        return tuple(
            f"exempt, {exemption.value}: {', '.join(found[exemption])}" for exemption in Exemption if exemption in found
        )

    def violated(self) -> tuple[CheckResult, ...]:
        """Returns the checks with violations."""
        return tuple(check for check in self.checks if check.status is CheckStatus.VIOLATED)


def _worst(checks: Iterable[CheckResult]) -> Guarantee | None:
    return worst_of({check.guarantee for check in checks if check.guarantee is not None})


def decide(checks: tuple[CheckResult, ...], doubts: Sequence[Doubt]) -> Verdict:
    """Returns the verdict that follows from checks and doubts."""
    if any(check.status is CheckStatus.VIOLATED for check in checks):
        return Verdict.VIOLATION
    if doubts or any(check.status is CheckStatus.UNKNOWN for check in checks):
        return Verdict.UNKNOWN
    return Verdict.VALID


def expected_of(verdict: Verdict) -> Expected:
    """Returns the outcome of a run without an expectation: the verdict decides."""
    match verdict:
        case Verdict.VALID:
            return Expected.MET
        case Verdict.VIOLATION:
            return Expected.MISSED
        case Verdict.UNKNOWN:
            return Expected.UNDECIDED
        case _:
            assert_never(verdict)


def headline(report: VerdictReport) -> str:
    """Returns outcome, verdict, guarantee, scenario and era in one line.

    It begins with ``FAILED`` if the outcome was not expected, and ``AS EXPECTED`` if another verdict than valid was
    expected.
    """
    kind = "" if report.guarantee is None else f", guarantee {report.guarantee.value}"
    found, where = f"{report.verdict.value}{kind}", f"{report.scenario}, era {report.era_label}"
    if report.misses and report.outcome is Expected.MISSED:
        return f"FAILED: {where}: {'; '.join(report.misses)} ({found})"
    if report.outcome is Expected.MET and report.verdict is not Verdict.VALID:
        return f"AS EXPECTED, {found}: {where}"
    return f"{report.verdict.value.upper()}{kind}: {where}"
