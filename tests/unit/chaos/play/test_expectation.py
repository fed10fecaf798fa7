"""Expectations against verdicts."""

import dataclasses

import msgspec
import pytest

from laststand.chaos.play.expectation import compare
from laststand.chaos.scenario.scenario import Bound, Expectation, VerdictName
from laststand.emulator.core.promises import PromiseKind
from laststand.emulator.verification.rules.check import Premise
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.verdict.availability import PartitionAvailability, WorkloadAvailability
from laststand.emulator.verification.verdict.report import (
    CheckResult,
    CheckStatus,
    Expected,
    RecordCounts,
    Verdict,
    VerdictReport,
    expected_of,
)
from tests.unit.verification.some_loss import some_loss


def check(check_id: str, status: CheckStatus, kind: PromiseKind = PromiseKind.OUTCOME) -> CheckResult:
    return CheckResult(check_id=check_id, name="", kind=kind, statement="", status=status, count=1, examples=("x",))


def report(verdict: Verdict, *, lost: int = 0, checks: tuple[CheckResult, ...] = ()) -> VerdictReport:
    return VerdictReport(
        run="",
        scenario="",
        era=None,
        switches={},
        verdict=verdict,
        guarantee=Guarantee.BROKEN if lost else None,
        doubts=(),
        checks=checks,
        counts=(),
        partitions=(),
        losses=(some_loss(records=lost),) if lost else (),
        leaders=(),
        outcome=expected_of(verdict),
    )


def expected(
    verdict: VerdictName, *, checks: tuple[str, ...] = (), at_least: int | None = None, guarantee: bool = False
) -> Expectation:
    return Expectation(
        verdict=verdict,
        guarantee="broken" if guarantee else None,
        checks=checks,
        lost=None if at_least is None else Bound(comparison=">=", limit=at_least),
    )


D1 = check("D1", CheckStatus.VIOLATED)
OUTSIDE = msgspec.structs.replace(
    report(Verdict.VIOLATION, lost=10, checks=(D1, check("D2", CheckStatus.VIOLATED))), guarantee=Guarantee.EXCEEDED
)
NOT_KNOWN = msgspec.structs.replace(OUTSIDE, guarantee=Guarantee.NOT_KNOWN)
OUTSIDE_AND_WRONG = msgspec.structs.replace(OUTSIDE, checks=(D1, check("D7", CheckStatus.VIOLATED)))
READ_ONLY, READ_ONLY_WITHIN = (
    report(
        Verdict.VIOLATION,
        checks=(
            msgspec.structs.replace(check("D5", CheckStatus.VIOLATED), guarantee=guarantee),
            check("C3", CheckStatus.VIOLATED),
        ),
    )
    for guarantee in (Guarantee.EXCEEDED, Guarantee.BROKEN)
)
TOLD_ONLY = report(Verdict.VIOLATION, checks=(check("C3", CheckStatus.VIOLATED),))
MISSED_BY_A_CONSUMER = report(
    Verdict.VIOLATION,
    checks=(msgspec.structs.replace(check("C4", CheckStatus.VIOLATED), guarantee=Guarantee.EXCEEDED),),
)
DISORDER = report(Verdict.VIOLATION, checks=(check("D15", CheckStatus.VIOLATED),))
LOSS = report(Verdict.VIOLATION, lost=1500, checks=(D1, check("D5", CheckStatus.VIOLATED)))


@pytest.mark.parametrize(
    ("found", "wanted", "outcome"),
    [
        (report(Verdict.VALID), None, Expected.MET),
        (LOSS, None, Expected.MISSED),
        (report(Verdict.UNKNOWN), None, Expected.UNDECIDED),
        (report(Verdict.VALID), expected(VerdictName.VALID), Expected.MET),
        (LOSS, expected(VerdictName.VALID), Expected.MISSED),
        (report(Verdict.UNKNOWN), expected(VerdictName.VALID), Expected.UNDECIDED),
        (report(Verdict.UNKNOWN), expected(VerdictName.VIOLATION), Expected.UNDECIDED),
        (report(Verdict.UNKNOWN), expected(VerdictName.UNKNOWN), Expected.MET),
        (LOSS, expected(VerdictName.VIOLATION, checks=("D1",), at_least=1500, guarantee=True), Expected.MET),
        (LOSS, expected(VerdictName.VIOLATION, checks=("D4",)), Expected.MISSED),
        (NOT_KNOWN, expected(VerdictName.VIOLATION, checks=("D1",), guarantee=True), Expected.UNDECIDED),
        (NOT_KNOWN, expected(VerdictName.VIOLATION, checks=("D1",)), Expected.MET),
        (NOT_KNOWN, expected(VerdictName.VIOLATION, checks=("D4",), guarantee=True), Expected.MISSED),
        (LOSS, expected(VerdictName.VIOLATION, at_least=1501), Expected.MISSED),
        (report(Verdict.VIOLATION, checks=(D1,)), expected(VerdictName.VIOLATION, guarantee=True), Expected.MISSED),
        (report(Verdict.VALID), expected(VerdictName.VIOLATION, checks=("D1",)), Expected.MISSED),
        (report(Verdict.VALID), expected(VerdictName.VALID_OR_EXCEEDED), Expected.MET),
        (OUTSIDE, expected(VerdictName.VALID_OR_EXCEEDED), Expected.MET),
        (OUTSIDE_AND_WRONG, expected(VerdictName.VALID_OR_EXCEEDED), Expected.MISSED),
        (LOSS, expected(VerdictName.VALID_OR_EXCEEDED), Expected.MISSED),
        (READ_ONLY, expected(VerdictName.VALID_OR_EXCEEDED), Expected.MET),
        (READ_ONLY, expected(VerdictName.VALID), Expected.MISSED),
        (READ_ONLY_WITHIN, expected(VerdictName.VALID_OR_EXCEEDED), Expected.MISSED),
        (READ_ONLY_WITHIN, expected(VerdictName.VIOLATION, checks=("D5",), guarantee=True), Expected.MET),
        (READ_ONLY, expected(VerdictName.VIOLATION, checks=("D5",), guarantee=True), Expected.MISSED),
        (TOLD_ONLY, expected(VerdictName.VALID_OR_EXCEEDED), Expected.MET),
        (MISSED_BY_A_CONSUMER, expected(VerdictName.VALID_OR_EXCEEDED), Expected.MET),
        (MISSED_BY_A_CONSUMER, expected(VerdictName.VALID), Expected.MISSED),
        (DISORDER, expected(VerdictName.VALID_OR_EXCEEDED), Expected.MISSED),
        (report(Verdict.UNKNOWN), expected(VerdictName.VALID_OR_EXCEEDED), Expected.UNDECIDED),
    ],
)
def test_a_verdict_is_held_against_what_was_expected(
    found: VerdictReport, wanted: Expectation | None, outcome: Expected
) -> None:
    assert compare(found, wanted)[0] is outcome


def waited(seconds: float, *, p99_s: float | None, after: str | None = None) -> VerdictReport:
    workload = WorkloadAvailability(
        acks=-1,
        longest_without_ack_s=seconds,
        p99_ack_s=p99_s,
        slowest_after_fault=None,
        longest_after_step=after,
    )
    partition = PartitionAvailability(
        topic="orders", partition=0, leaderless_s=0, below_min_isr_s=0, workloads=(workload,)
    )
    return msgspec.structs.replace(report(Verdict.VALID), availability=(partition,))


@pytest.mark.parametrize(
    ("found", "misses"),
    [
        (waited(1.5, p99_s=0.04), ()),
        (waited(2.5, p99_s=0.04), ("the longest time without an ack is 2.500 s, expected <=2 s",)),
        (
            waited(2.5, p99_s=0.04, after="step 2 {kill: {node: 1}}"),
            (
                "the longest time without an ack, which began after step 2 {kill: {node: 1}}, is 2.500 s, "
                "expected <=2 s",
            ),
        ),
        (waited(1.5, p99_s=0.06), ("the 99th percentile of the time to an ack is 0.060 s, expected <0.05 s",)),
        (
            waited(1.5, p99_s=None),
            ("the 99th percentile of the time to an ack is not known, as nothing was acknowledged, expected <0.05 s",),
        ),
    ],
)
def test_a_valid_run_may_have_kept_its_clients_waiting_for_too_long(
    found: VerdictReport, misses: tuple[str, ...]
) -> None:
    wanted = dataclasses.replace(
        expected(VerdictName.VALID),
        unavailable=Bound(comparison="<=", limit=2),
        p99_ack=Bound(comparison="<", limit=0.05),
    )
    assert compare(found, wanted) == (Expected.MISSED if misses else Expected.MET, misses)


@pytest.mark.parametrize(
    ("bound", "misses"),
    [
        (Bound(comparison=">=", limit=3), ()),
        (Bound(comparison="==", limit=0), ("3 acks=1 records lost, expected ==0",)),
    ],
)
def test_lost_records_of_acks_1_are_counted_apart(bound: Bound, misses: tuple[str, ...]) -> None:
    counts = RecordCounts(acks=1, sent=9, acked=9, lost=3, never_acked=0)
    found = msgspec.structs.replace(report(Verdict.VALID), counts=(*report(Verdict.VALID).counts, counts))
    wanted = dataclasses.replace(expected(VerdictName.VALID), lost_acks_1=bound)
    assert compare(found, wanted)[1] == misses


def test_a_rule_check_that_fires_is_not_the_outcome_check_that_was_expected() -> None:
    found = report(Verdict.VIOLATION, checks=(check("M8", CheckStatus.VIOLATED, PromiseKind.RULE),))
    outcome, misses = compare(found, expected(VerdictName.VIOLATION, checks=("M8",)))
    assert outcome is Expected.MISSED
    assert misses == ("M8 did not fire",)


def test_a_check_that_cannot_be_asked_of_apache_kafka_need_not_fire() -> None:
    unseen = msgspec.structs.replace(check("Q5", CheckStatus.NOT_ASKED), not_asked_because=Premise.OWN_WORD.value)
    found = report(Verdict.VIOLATION, checks=(D1, unseen))
    assert compare(found, expected(VerdictName.VIOLATION, checks=("D1", "Q5"))) == (Expected.MET, ())
