"""Compares a verdict with the scenario's expectation for its era."""

from typing import Final

from laststand.chaos.scenario.scenario import Bound, Expectation, VerdictName
from laststand.emulator.core.promises import PromiseKind
from laststand.emulator.verification.rules.check import Premise
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.verdict.report import CheckStatus, Expected, Verdict, VerdictReport, expected_of

_ACKS_1: Final = 1
_OF_A_LOSS: Final = frozenset({"D1", "D2", "D4", "D5", "D14", "D15", "C2", "C3", "C4"})
"""Promises that a lost record breaks, or one that misses a consumer."""

_WITHOUT_A_GUARANTEE: Final = frozenset({"C3"})
"""The only check among them for which no guarantee is judged; a lost record may break it alone."""


def compare(report: VerdictReport, expected: Expectation | None) -> tuple[Expected, tuple[str, ...]]:
    """Returns the outcome, and a description of every difference.

    Without an expectation the verdict decides: valid counts as met, violation as missed. An unknown verdict is
    undecided, unless unknown was expected; so is a run that meets all but a guarantee that is not known.
    """
    if expected is None:
        return expected_of(report.verdict), ()
    if report.verdict is Verdict.UNKNOWN and expected.verdict.value != Verdict.UNKNOWN.value:
        return Expected.UNDECIDED, (f"the verdict is unknown, expected {expected.verdict.value}",)
    misses = tuple(_misses(report, expected))
    if misses:
        return Expected.MISSED, misses
    if expected.guarantee is not None and report.worst_guarantee is Guarantee.NOT_KNOWN:
        return Expected.UNDECIDED, (f"the guarantee is not known, expected {expected.guarantee}",)
    return Expected.MET, ()


def _misses(report: VerdictReport, expected: Expectation) -> list[str]:
    misses = []
    if expected.verdict is VerdictName.VALID_OR_EXCEEDED:
        misses += _not_excused(report)
    elif report.verdict.value != expected.verdict.value:
        misses.append(f"the verdict is {report.verdict.value}, expected {expected.verdict.value}")
    worst = report.worst_guarantee
    guarantee = None if worst is None else worst.value
    if expected.guarantee not in (None, guarantee) and worst is not Guarantee.NOT_KNOWN:
        misses.append(f"the guarantee is {guarantee or 'kept'}, expected {expected.guarantee}")
    fired = {
        check.check_id
        for check in report.checks
        if check.kind is PromiseKind.OUTCOME and check.status is CheckStatus.VIOLATED
    }
    unseen = {check.check_id for check in report.checks if check.not_asked_because == Premise.OWN_WORD.value}
    silent = [check_id for check_id in expected.checks if check_id not in fired | unseen]
    if silent:
        misses.append(f"{', '.join(silent)} did not fire")
    if expected.lost is not None and not expected.lost.holds(report.lost_records):
        misses.append(f"{report.lost_records} acks=all records lost, expected {expected.lost}")
    lost_acks_1 = sum(counts.lost for counts in report.counts if counts.acks == _ACKS_1)
    if expected.lost_acks_1 is not None and not expected.lost_acks_1.holds(lost_acks_1):
        misses.append(f"{lost_acks_1} acks=1 records lost, expected {expected.lost_acks_1}")
    misses += _missed_time(_longest_time(report), report.unavailable_s, expected.unavailable)
    misses += _missed_time("the 99th percentile of the time to an ack", report.p99_ack_s, expected.p99_ack)
    return misses


def _longest_time(report: VerdictReport) -> str:
    longest = report.longest_wait
    after = None if longest is None else longest.longest_after_step
    return "the longest time without an ack" + ("" if after is None else f", which began after {after},")


def _not_excused(report: VerdictReport) -> list[str]:
    """Returns the violations of a run that are no losses beyond the guarantee."""
    violated = {check.check_id for check in report.violated()}
    misses = [f"{check_id} fired" for check_id in sorted(violated - _OF_A_LOSS)]
    worst = report.worst_guarantee
    if worst is None and violated <= _WITHOUT_A_GUARANTEE:
        return misses
    if report.verdict is Verdict.VIOLATION and worst is not Guarantee.EXCEEDED and not misses:
        misses.append(_guarantee_in_words(report))
    return misses


def _guarantee_in_words(report: VerdictReport) -> str:
    if report.guarantee is not None:
        return f"the guarantee is {report.guarantee.value}"
    if any(check.loses_commits for check in report.violated()):
        kind = report.guarantee_of_commits
        judged = "" if kind is None else f"; for them the guarantee is {kind.value}"
        return f"committed records were lost, none of them acknowledged with acks=all{judged}"
    return "the guarantee is kept"


def _missed_time(what: str, seconds: float | None, expected: Bound | None) -> list[str]:
    if expected is None:
        return []
    if seconds is None:
        return [f"{what} is not known, as nothing was acknowledged, expected {expected} s"]
    return [] if expected.holds(seconds) else [f"{what} is {seconds:.3f} s, expected {expected} s"]
