"""Reads the sources of a report: ``verdict.json``, ``story.json`` and the recorded plan of a run directory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.report.export import logged_events
from laststand.emulator.report.tla import Rejection, outcomes_of, with_events
from laststand.emulator.user_files import read_text
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.story.run import RunStory
from laststand.emulator.verification.story.story_file import read_story
from laststand.emulator.verification.verdict.forms import VERDICT_FILE, read_form
from laststand.emulator.verification.verdict.report import VERSION, VerdictReport

TLC_FILE: Final = "tla.txt"
"""Output of TLC about the run's traces (``laststand export --to tla``), where somebody left it in the directory."""

_PLANS: Final = ("plan.yaml", "scenario.yaml")


@dataclass(frozen=True, kw_only=True)
class ReportedRun:
    """A judged run, as its files describe it.

    Attributes:
        directory: of the run.
        verdict: its verdict.
        story: its story.
        plan: text of the recorded plan, or else of the scenario, if there is one.
        properties: of every node, by Kafka's names.
        driver: its driver, if that is known.
        traces: whether each of its traces follows the specification in ``docs/tla``, if TLC was run.
    """

    directory: Path
    verdict: VerdictReport
    story: RunStory
    plan: str | None
    properties: Mapping[str, str] = field(default_factory=dict)
    driver: str | None = None
    traces: tuple[Rejection | None, ...] | None = None


def read_reported_run(directory: Path) -> ReportedRun:
    """Reads a judged run.

    Raises:
        ConfigError: the run was not judged, or by another version of Laststand, or TLC did not finish.
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
        traces=_traces(resolved),
    )


def _traces(directory: Path) -> tuple[Rejection | None, ...] | None:
    try:
        outcomes = outcomes_of(read_text(directory / TLC_FILE))
    except FileNotFoundError:
        return None
    except ConfigError as error:
        *_, last = ["", *(error.value or "").splitlines()]
        raise ConfigError(key=str(directory / TLC_FILE), value=last, expected=error.expected) from None
    return with_events(outcomes, logged_events(directory))


def _plan(directory: Path) -> str | None:
    for name in _PLANS:
        try:
            return read_text(directory / name)
        except (OSError, UnicodeDecodeError):
            continue
    return None
