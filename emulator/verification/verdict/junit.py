"""Verdicts as JUnit XML: a suite per scenario, a case per run."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from laststand.emulator.verification.verdict.report import CheckStatus, Expected, VerdictReport, headline


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run, or a planned run that did not take place.

    Attributes:
        suite: name of its scenario.
        name: what distinguishes it from the scenario's other runs, such as its era.
        report: the verdict; ``None`` for a run that did not take place.
        skipped: why the run was skipped, if that was planned.
        missing: why the run is missing although it was planned; this is an error.
        picture: of the run as lines, for a run that was not as expected.

    """

    suite: str
    name: str
    report: VerdictReport | None
    skipped: str = ""
    missing: str | None = None
    picture: Sequence[str] = ()

    @staticmethod
    def of(report: VerdictReport, *, picture: Sequence[str] = ()) -> "Case":
        """Returns the case of a single run: its suite is the scenario, its name the era."""
        return Case(suite=report.scenario, name=report.era_label, report=report, picture=picture)


def junit(cases: Sequence[Case]) -> str:
    """Returns the document. A case passes where its run's expectation was met.

    A failure has the story of the first lost record, an error the doubts; both end with the picture of the run, if
    there is one. Run, era, seed, verdict, guarantee, lost records and exempted findings are properties of the case.
    """
    root = ElementTree.Element("testsuites", name="laststand")
    for name in dict.fromkeys(case.suite for case in cases):
        _suite(root, name, [case for case in cases if case.suite == name])
    for attribute in _COUNTED:
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


_KINDS = {"failures": "failure", "errors": "error", "skipped": "skipped"}
_COUNTED = ("tests", *_KINDS)


def _suite(root: ElementTree.Element, name: str, cases: Sequence[Case]) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=_xml(name), tests=str(len(cases)))
    reports = [case.report for case in cases if case.report is not None]
    if started := [report.started for report in reports if report.started is not None]:
        suite.set("timestamp", min(started))
    if times := [report.duration_s for report in reports if report.duration_s is not None]:
        suite.set("time", f"{sum(times):.3f}")
    made = [_case(suite, case) for case in cases]
    for attribute, kind in _KINDS.items():
        suite.set(attribute, str(sum(element.find(kind) is not None for element in made)))


def _case(suite: ElementTree.Element, case: Case) -> ElementTree.Element:
    element = ElementTree.SubElement(suite, "testcase", classname=_xml(case.suite), name=_xml(case.name))
    report = case.report
    if case.missing is not None:
        _add(element, "error", case.missing, (case.missing,))
        return element
    if report is None:
        ElementTree.SubElement(element, "skipped", message=_xml(case.skipped))
        return element
    if report.duration_s is not None:
        element.set("time", f"{report.duration_s:.3f}")
    properties = ElementTree.SubElement(element, "properties")
    for name, value in _properties(report):
        ElementTree.SubElement(properties, "property", name=name, value=_xml(value))
    match report.outcome:
        case Expected.MET:
            pass
        case Expected.MISSED:
            message = "; ".join(report.misses) or headline(report)
            _add(element, "failure", message, (*failure_text(report), *_apart(case.picture)))
        case Expected.UNDECIDED:
            found = doubts(report)
            _add(element, "error", found[0], (*found, *_apart(case.picture)))
        case _:
            assert_never(report.outcome)
    return element


def _add(element: ElementTree.Element, kind: str, message: str, lines: Sequence[str]) -> None:
    ElementTree.SubElement(element, kind, message=_xml(message)).text = _xml("\n".join(lines))


def _apart(picture: Sequence[str]) -> tuple[str, ...]:
    return ("", *picture) if picture else ()


def _properties(report: VerdictReport) -> Iterator[tuple[str, str]]:
    """Yields the properties that people search a CI's results for; ``verdict.json`` has every check."""
    yield "run", report.run
    yield "era", report.era_label
    if report.seed is not None:
        yield "seed", str(report.seed)
    yield "verdict", report.verdict.value
    yield "guarantee", "kept" if report.guarantee is None else report.guarantee.value
    yield "lost acks=all records", str(report.lost_records)
    for line in report.exempted():
        yield "exempt", line


def failure_text(report: VerdictReport) -> tuple[str, ...]:
    """Returns the story of the first lost record, or the findings of each violated check."""
    if report.losses:
        return tuple(line.text for line in report.losses[0].story)
    return tuple(f"{check.check_id} {check.name}: {check.examples[0]}" for check in report.violated()) or (
        headline(report),
    )


def doubts(report: VerdictReport) -> tuple[str, ...]:
    """Returns the doubts, in words."""
    unknown = (
        f"{check.check_id} {check.name}: the evidence for this check is not whole"
        for check in report.checks
        if check.status is CheckStatus.UNKNOWN
    )
    return (*report.unknown_reasons, *unknown) or (headline(report),)


def _xml(text: str) -> str:
    # XML 1.0 cannot express control characters, and event files may contain any.
    return "".join(c if c in "\n\t" or c >= " " else "\ufffd" for c in text)
