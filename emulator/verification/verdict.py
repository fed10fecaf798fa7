"""The verdict on a run, and its three forms: ``verdict.json``, ``junit.xml`` and text.

``verdict.json`` is ``VerdictReport`` as JSON, field by field; enums are their values. Fields are added, never renamed,
within one ``version``.

A violation that was found stays one even if something else is unknown; unknown is never success.
"""

import xml.etree.ElementTree as ElementTree
from enum import Enum
from pathlib import Path
from typing import Final

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


def write_verdict(report: VerdictReport, directory: Path) -> None:
    """Writes ``verdict.json`` and ``junit.xml`` into the run's directory.

    Raises:
        OSError: it cannot be written.
    """
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    (directory / VERDICT_FILE).write_bytes(text + b"\n")
    (directory / JUNIT_FILE).write_text(junit((report,)))


def junit(reports: tuple[VerdictReport, ...]) -> str:
    """Returns JUnit XML: a suite per scenario and era, a case per check and one for the verdict itself."""
    root = ElementTree.Element("testsuites", name="laststand")
    for report in reports:
        name = report.scenario if report.era is None else f"{report.scenario} [{report.era}]"
        suite = ElementTree.SubElement(root, "testsuite", name=name)
        for check in report.checks:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=f"{check.check_id} {check.name}")
            match check.status:
                case CheckStatus.VIOLATED:
                    failure = ElementTree.SubElement(case, "failure", message=_xml(check.examples[0]))
                    failure.text = _xml("\n".join(check.examples))
                case CheckStatus.UNKNOWN:
                    ElementTree.SubElement(case, "error", message="the evidence for this check is not whole")
                case CheckStatus.NOT_PROMISED:
                    ElementTree.SubElement(case, "skipped", message="not promised by the run's switches")
                case CheckStatus.NOT_ASKED:
                    ElementTree.SubElement(case, "skipped", message=f"not asked: {check.not_asked_because}")
                case CheckStatus.OK:
                    pass
        case = ElementTree.SubElement(suite, "testcase", classname=name, name="evidence")
        if report.unknown_reasons:
            error = ElementTree.SubElement(case, "error", message=_xml(report.unknown_reasons[0]))
            error.text = _xml("\n".join(report.unknown_reasons))
        cases = suite.findall("testcase")
        suite.set("tests", str(len(cases)))
        for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            suite.set(attribute, str(sum(case.find(kind) is not None for case in cases)))
    for attribute in ("tests", "failures", "errors"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    # XML 1.0 has no form for control characters; event files may bring any.
    return "".join(c if c in "\n\t" or c >= " " else "\ufffd" for c in text)


def summary(report: VerdictReport) -> str:
    """Returns at most twelve lines for a terminal: verdict, counts, what fired, the first story or doubts."""
    kind = "" if report.guarantee is None else f", guarantee {report.guarantee.value}"
    lines = [f"{report.verdict.value.upper()}{kind}: {report.scenario}, era {report.era or 'unnamed'}"]
    for counts in report.counts:
        acks = "all" if counts.acks == -1 else str(counts.acks)
        lost = "loss not tracked" if counts.acks == 0 else f"{counts.lost} lost"
        lines.append(f"  acks={acks}: {counts.sent} records sent, {counts.acked} acked, {lost}")
    by_status = {status: [c.check_id for c in report.checks if c.status is status] for status in CheckStatus}
    lines.append(
        "  checks: " + ", ".join(f"{status.value} {' '.join(ids)}" for status, ids in by_status.items() if ids)
    )
    details = [f"unknown: {reason}" for reason in report.unknown_reasons]
    details.extend(loss.story[0] for loss in report.losses)
    details.extend(dict.fromkeys(sentence for loss in report.losses for sentence in loss.story[1:]))
    if not report.losses:
        details.extend(f"{check.check_id}: {check.examples[0]}" for check in report.violated())
    left = _SUMMARY_LINES - len(lines)
    if len(details) > left:
        details = [*details[: left - 1], f"... {len(details) - left + 1} more lines in {VERDICT_FILE}"]
    return "\n".join([*lines, *(f"  {detail}" for detail in details)])
