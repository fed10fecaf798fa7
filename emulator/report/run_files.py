"""Reads what a report is made of: ``verdict.json``, ``story.json`` and the recorded plan of a run directory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from laststand.emulator.user_files import read_text
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.story.run import RunStory
from laststand.emulator.verification.story.story_file import read_story
from laststand.emulator.verification.verdict.forms import VERDICT_FILE, read_form
from laststand.emulator.verification.verdict.report import VERSION, VerdictReport

_PLANS: Final = ("plan.yaml", "scenario.yaml")


@dataclass(frozen=True, kw_only=True)
class ReportedRun:
    """A judged run, as its files describe it.

    Attributes:
        directory: of the run.
        verdict: what was found.
        story: what happened.
        plan: text of the recorded plan, else of the scenario, if there is one.
        properties: of every node, by Kafka's names.
        driver: what played it, where that is known.
    """

    directory: Path
    verdict: VerdictReport
    story: RunStory
    plan: str | None
    properties: Mapping[str, str] = field(default_factory=dict)
    driver: str | None = None


def read_reported_run(directory: Path) -> ReportedRun:
    """Reads a judged run.

    Raises:
        ConfigError: it was not judged, or by a program whose files are of another version.
    """
    resolved = directory.resolve()
    verdict, story = read_form(resolved / VERDICT_FILE, VerdictReport, version=VERSION), read_story(resolved)
    run = open_run_directory(resolved)
    return ReportedRun(
        directory=resolved,
        verdict=verdict,
        story=story,
        plan=_plan(resolved),
        properties=dict(run.properties),
        driver=run.driver,
    )


def _plan(directory: Path) -> str | None:
    for name in _PLANS:
        try:
            return read_text(directory / name)
        except (OSError, UnicodeDecodeError):
            continue
    return None
