"""The verdict on a run, and its three forms: ``verdict.json``, ``junit.xml`` and text.

``verdict.json`` is ``VerdictReport`` as JSON, field by field; enums are their values. Fields are added, never renamed,
within one ``version``.

A violation that was found stays one even if something else is unknown; unknown is never success.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final, assert_never

import msgspec

from emulator.core.promises import PromiseKind
from emulator.verification.acks_comparison import AcksComparison
from emulator.verification.guarantee import Guarantee
from emulator.verification.losses import LossClass

VERSION: Final = 1
VERDICT_FILE: Final = "verdict.json"
JUNIT_FILE: Final = "junit.xml"
_SUMMARY_LINES: Final = 12


class Verdict(Enum):
    """What is known about a run."""

    VALID = "valid"
    VIOLATION = "violation"
    UNKNOWN = "unknown"


class Expected(Enum):
    """Whether a run came to what was expected of it."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"


class CheckStatus(Enum):
    """What a check says about a run."""

    OK = "ok"
    VIOLATED = "violated"
    NOT_PROMISED = "not promised"
    """A rule that the run's switches turn off."""

    NOT_ASKED = "not asked"
    """Nothing in the run is what it looks at, so that it had nothing to find."""

    UNKNOWN = "unknown"
    """The evidence that it leans on is not whole."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One check on one run.

    Attributes:
        check_id: of the promise.
        name: a word for the check.
        kind: of the promise.
        statement: what is promised.
        status: what the check says.
        count: of all findings.
        examples: the first findings, in plain words.
        not_asked_because: what the run lacks, where the check is ``not asked``.
    """

    check_id: str
    name: str
    kind: PromiseKind
    statement: str
    status: CheckStatus
    count: int
    examples: tuple[str, ...]
    not_asked_because: str | None = None


class OffsetRange(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets from ``first`` to ``last``, both inclusive."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """acks=all-acked records of one partition that share one fate.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        records: how many.
        offsets: where they were acknowledged to be.
        loss_class: what is left of them.
        guarantee: kind of the violation.
        reason: why it is of that kind.
        story: first who acknowledged and who held them, then what was not flushed, who was elected and why, who
            truncated; losses with other fates may share what follows the first.
    """

    topic: str
    partition: int
    records: int
    offsets: tuple[OffsetRange, ...]
    loss_class: LossClass
    guarantee: Guarantee
    reason: str
    story: tuple[str, ...]


class RecordCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Records sent with one kind of acks. Only those with acks=all decide.

    Attributes:
        acks: -1 (all), 0 or 1.
        sent: records of all sends.
        acked: acknowledged to the producer.
        lost: acknowledged with an offset, and not where they must be. Nothing is known of acks=0.
        never_acked: sent, and certainly or possibly failed.
    """

    acks: int
    sent: int
    acked: int
    lost: int
    never_acked: int


class VerdictReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that verification says about one run.

    Attributes:
        version: of this form.
        run: directory of the run.
        scenario: its scenario.
        era: its era, where ``cluster.yaml`` names one.
        switches: the rules that its controller had.
        verdict: the verdict.
        guarantee: ``broken`` if any loss is, else ``exceeded`` if any is, else ``None``.
        unknown_reasons: what is missing or went wrong with the run itself.
        checks: every check.
        counts: records by acks.
        losses: lost acks=all records, by partition and fate.
        acks_comparison: where the scenario asks for it.
        seed: of the run's random choices, where ``cluster.yaml`` names it.
        started: when the run began by the calendar (ISO 8601, UTC), where ``cluster.yaml`` says so.
        duration_s: how long it took by the machine's clock, where ``cluster.yaml`` says so.
        outcome: whether it came to what its scenario expects of the era; where nothing is expected, as the verdict.
        misses: in words, whatever is not as expected.
        leaders: the partitions' committed states in order, in plain words: what two runs are compared by.
    """

    version: int = VERSION
    run: str
    scenario: str
    era: str | None
    switches: dict[str, str]
    verdict: Verdict
    guarantee: Guarantee | None
    unknown_reasons: tuple[str, ...]
    checks: tuple[CheckResult, ...]
    counts: tuple[RecordCounts, ...]
    losses: tuple[Loss, ...]
    leaders: tuple[str, ...]
    acks_comparison: AcksComparison | None = None
    seed: int | None = None
    started: str | None = None
    duration_s: float | None = None
    outcome: Expected
    misses: tuple[str, ...] = ()

    @property
    def lost_records(self) -> int:
        """acks=all-acked records that are not where they must be."""
        return sum(loss.records for loss in self.losses)

    def violated(self) -> tuple[CheckResult, ...]:
        """Checks that fired."""
        return tuple(check for check in self.checks if check.status is CheckStatus.VIOLATED)


def decide(checks: tuple[CheckResult, ...], unknown_reasons: tuple[str, ...]) -> Verdict:
    """Returns the verdict that follows from checks and doubts."""
    if any(check.status is CheckStatus.VIOLATED for check in checks):
        return Verdict.VIOLATION
    if unknown_reasons or any(check.status is CheckStatus.UNKNOWN for check in checks):
        return Verdict.UNKNOWN
    return Verdict.VALID


def expected_of(verdict: Verdict) -> Expected:
    """Returns the outcome of a run of which nothing was expected: the verdict decides."""
    match verdict:
        case Verdict.VALID:
            return Expected.MET
        case Verdict.VIOLATION:
            return Expected.MISSED
        case Verdict.UNKNOWN:
            return Expected.UNDECIDED
        case _:
            assert_never(verdict)


def write_verdict(report: VerdictReport, directory: Path) -> None:
    """Writes ``verdict.json`` and ``junit.xml`` into the run's directory, each of them whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    _write_whole(directory / VERDICT_FILE, text + b"\n")
    _write_whole(directory / JUNIT_FILE, junit((report,)).encode())


def _write_whole(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def junit(reports: tuple[VerdictReport, ...]) -> str:
    """Returns JUnit XML: a suite with one case per run, which passes where the run's expectation was met.

    A failure tells the story of the first lost record, an error what is not known. Checks are properties of the case.
    """
    root = ElementTree.Element("testsuites", name="laststand")
    for report in reports:
        suite = ElementTree.SubElement(root, "testsuite", name=report.scenario, tests="1")
        if report.started is not None:
            suite.set("timestamp", report.started)
        case = _case(suite, report)
        for kind, attribute in (("failure", "failures"), ("error", "errors")):
            suite.set(attribute, str(int(case.find(kind) is not None)))
        if report.duration_s is not None:
            suite.set("time", f"{report.duration_s:.3f}")
            case.set("time", f"{report.duration_s:.3f}")
    for attribute in ("tests", "failures", "errors"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, report: VerdictReport) -> ElementTree.Element:
    case = ElementTree.SubElement(suite, "testcase", classname=report.scenario, name=report.era or "unnamed")
    properties = ElementTree.SubElement(case, "properties")
    for name, value in _properties(report):
        ElementTree.SubElement(properties, "property", name=name, value=_xml(value))
    match report.outcome:
        case Expected.MET:
            pass
        case Expected.MISSED:
            message = "; ".join(report.misses) or _headline(report)
            ElementTree.SubElement(case, "failure", message=_xml(message)).text = _xml("\n".join(_failure_text(report)))
        case Expected.UNDECIDED:
            doubts = _doubts(report)
            ElementTree.SubElement(case, "error", message=_xml(doubts[0])).text = _xml("\n".join(doubts))
        case _:
            assert_never(report.outcome)
    return case


def _properties(report: VerdictReport) -> Iterator[tuple[str, str]]:
    yield "run", report.run
    if report.seed is not None:
        yield "seed", str(report.seed)
    yield "verdict", report.verdict.value
    if report.guarantee is not None:
        yield "guarantee", report.guarantee.value
    yield "lost acks=all records", str(report.lost_records)
    for check in report.checks:
        yield f"{check.check_id} {check.name}", check.status.value


def _failure_text(report: VerdictReport) -> tuple[str, ...]:
    if report.losses:
        return report.losses[0].story
    return tuple(f"{check.check_id} {check.name}: {check.examples[0]}" for check in report.violated()) or (
        _headline(report),
    )


def _doubts(report: VerdictReport) -> tuple[str, ...]:
    unknown = (
        f"{check.check_id} {check.name}: the evidence for this check is not whole"
        for check in report.checks
        if check.status is CheckStatus.UNKNOWN
    )
    return (*report.unknown_reasons, *unknown) or (_headline(report),)


def _xml(text: str) -> str:
    # XML 1.0 has no form for control characters; event files may bring any.
    return "".join(c if c in "\n\t" or c >= " " else "\ufffd" for c in text)


def summary(report: VerdictReport) -> str:
    """Returns at most twelve lines for a terminal: verdict, counts, what fired, the first story or doubts."""
    lines = [_headline(report)]
    for counts in report.counts:
        acks = "all" if counts.acks == -1 else str(counts.acks)
        lost = "loss not tracked" if counts.acks == 0 else f"{counts.lost} lost"
        lines.append(f"  acks={acks}: {counts.sent} records sent, {counts.acked} acked, {lost}")
    lines.append(f"  checks: {_checks_in_words(report)}")
    details = [f"unknown: {reason}" for reason in report.unknown_reasons]
    details.extend(loss.story[0] for loss in report.losses)
    details.extend(dict.fromkeys(sentence for loss in report.losses for sentence in loss.story[1:]))
    if not report.losses:
        details.extend(f"{check.check_id}: {check.examples[0]}" for check in report.violated())
    left = _SUMMARY_LINES - len(lines)
    if len(details) > left:
        details = [*details[: left - 1], f"... {len(details) - left + 1} more lines in {VERDICT_FILE}"]
    return "\n".join([*lines, *(f"  {detail}" for detail in details)])


def _headline(report: VerdictReport) -> str:
    kind = "" if report.guarantee is None else f", guarantee {report.guarantee.value}"
    return f"{report.verdict.value.upper()}{kind}: {report.scenario}, era {report.era or 'unnamed'}"


_IN_WORDS: Final = {
    CheckStatus.OK: "held",
    CheckStatus.VIOLATED: "violated",
    CheckStatus.UNKNOWN: "unknown",
    CheckStatus.NOT_PROMISED: "not promised in this era",
    CheckStatus.NOT_ASKED: "had nothing to look at",
}
_NAMED: Final = (CheckStatus.VIOLATED, CheckStatus.UNKNOWN)


def _checks_in_words(report: VerdictReport) -> str:
    parts = []
    for status, words in _IN_WORDS.items():
        found = [check for check in report.checks if check.status is status]
        names = ", ".join(f"{check.check_id} {check.name}" for check in found)
        if found:
            parts.append(f"{len(found)} {words}{f' ({names})' if status in _NAMED else ''}")
    return ", ".join(parts) or "none"
