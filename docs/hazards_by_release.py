"""The page of what each release of Apache Kafka loses, ``docs/hazards-by-release.md``, by the tests of ``hazards/``.

``make hazards`` runs the tests by Maven, a release at a time, and writes the page from the reports that they leave. The
arguments are the releases, oldest first. ``--reports`` writes the page from reports that are there, without a run.
"""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from docs.rule_tables import table

ROOT: Final = Path(__file__).parents[1]
HAZARDS: Final = ROOT / "hazards"
PAGE: Final = Path(__file__).parent / "hazards-by-release.md"
LOSES: Final = "still loses"
SAFE: Final = "loses nothing"
NEVER: Final = "never"
_HEADER: Final = """\
# Hazards by release of Apache Kafka

`make hazards` writes this page: it runs the tests of [hazards/](../hazards/README.md) on Kafka's published jars.
*{loses}*: the test fails, and its message says which records are gone. *fixed in*: it passes, and failed on an older
release. *never*: it passes, or the release has not what the hazard is about, and no older one lost.

"""


def hazard_folders() -> dict[str, Path]:
    """Returns the folder of each hazard that has a test, by the hazard's name."""
    return {
        test.stem.removesuffix("Test"): test.parent for test in sorted(HAZARDS.glob("[sq]*/[SQ]*Test.java"), key=_order)
    }


def _order(test: Path) -> tuple[bool, int]:
    """Returns the place of a hazard: those of data come before those of the metadata's quorum."""
    return test.stem.startswith("Q"), int(test.stem[1:-4])


def outcome(report: Path) -> str:
    """Returns what the report of Maven's Surefire on one test class says of its hazard."""
    if not report.is_file():
        return "not testable here: the test did not run"
    case = ElementTree.parse(report).getroot().find("testcase")
    if case is None:
        return "not testable here: the test did not run"
    if case.find("failure") is not None:
        return LOSES
    skipped = case.find("skipped")
    if skipped is not None:
        return f"{NEVER}: {_first_line(skipped).removeprefix('Assumption failed: ')}"
    error = case.find("error")
    if error is not None:
        return f"not testable here: {_first_line(error)}"
    return SAFE


def _first_line(problem: ElementTree.Element) -> str:
    """Returns the message of an exception in a report, which Surefire has as an attribute or before the stack trace."""
    text = (
        problem.get("message") or (problem.text or "").removeprefix(f"{problem.get('type')}: ") or problem.get("type")
    )
    return (text or "an error").splitlines()[0]


def outcomes(releases: Sequence[str], target: Path) -> dict[str, dict[str, str]]:
    """Returns what each hazard does on each release, from the folders of builds below a target.

    A release whose build failed has a line in ``build-error.txt`` there.
    """
    found = {}
    for release in releases:
        failed = target / release / "build-error.txt"
        reports = target / release / "surefire-reports"
        found[release] = {
            hazard: f"not testable here: {failed.read_text(encoding='utf-8').strip()}"
            if failed.is_file()
            else outcome(reports / f"TEST-hazards.{hazard}Test.xml")
            for hazard in hazard_folders()
        }
    return found


def page(found: Mapping[str, Mapping[str, str]]) -> str:
    """Returns the page; releases are in the order in which they appeared."""
    rows = []
    notes: dict[str, int] = {}
    for hazard, folder in hazard_folders().items():
        cells = []
        lost_before = False
        for by_hazard in found.values():
            said = by_hazard[hazard]
            if said == LOSES:
                lost_before = True
                cells.append(said)
            elif said == SAFE:
                cells.append("fixed in" if lost_before else NEVER)
            else:
                kind, _, why = said.partition(": ")
                cells.append(f"{kind} ({notes.setdefault(why, len(notes) + 1)})")
        rows.append((f"[{hazard}](../hazards/{folder.name}/README.md)", *cells))
    legend = "".join(f"\n({number}) {why}\n" for why, number in notes.items())
    return _HEADER.format(loses=LOSES) + table(("Hazard", *found), rows) + legend


def run(release: str, target: Path) -> None:
    """Runs all tests on one release; leaves their reports, or the first error of a build that failed."""
    command = [
        "mvn",
        "-f",
        str(HAZARDS),
        "-B",
        "-q",
        "test",
        f"-Dkafka.version={release}",
        "-Dmaven.test.failure.ignore",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    failed = target / release / "build-error.txt"
    failed.unlink(missing_ok=True)
    if ended.returncode:
        failed.parent.mkdir(parents=True, exist_ok=True)
        failed.write_text(build_error(ended.stdout), encoding="utf-8")


def build_error(output: str) -> str:
    """Returns why a build failed, in Maven's words and without names of hosts."""
    missing = re.search(r"Could not find artifact (\S+)|(\S+:jar:\S+) was not found", output)
    if missing is not None:
        return f"there is no {missing[1] or missing[2]}"
    failed = re.search(r"Failed to execute goal \S+:(\S+) .*", output)
    return f"{failed[1]} failed" if failed is not None else "the build failed"


def main(arguments: Sequence[str]) -> None:
    """Runs the tests on the given releases unless told not to, and writes the page."""
    releases = [argument for argument in arguments if argument != "--reports"]
    target = HAZARDS / "target"
    if "--reports" not in arguments:
        for release in releases:
            run(release, target)
    PAGE.write_text(page(outcomes(releases, target)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
