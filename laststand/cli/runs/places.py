"""Finds the runs of a command: on this machine, or at URIs from which they are copied."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click
import msgspec

from laststand.cli.options.run_argument import run_named
from laststand.cli.output.pictures import leave_report
from laststand.cli.output.results import store_verdict
from laststand.cli.program.user_error import UserError
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.verification.reading.run_directory import find_runs, open_run_directory
from laststand.emulator.verification.spark.hadoop_runs import HadoopRun, is_uri
from laststand.emulator.verification.story.story_file import STORY_FILE
from laststand.emulator.verification.verdict.forms import JUNIT_FILE, VERDICT_FILE
from laststand.emulator.verification.verdict.report import VerdictReport

if TYPE_CHECKING:
    from laststand.emulator.verification.spark.tasks import SparkTasks

_Found = TypeVar("_Found")
_RESULTS: Final = (VERDICT_FILE, JUNIT_FILE, STORY_FILE)


class RunPlace:
    """A run in the user's words.

    Attributes:
        name: the user's name for it.
        path: its directory, or that of its copy.
    """

    def __init__(self, name: str, copy: HadoopRun | None) -> None:
        self.name = name
        self._copy = copy
        self.path = Path(name).resolve() if copy is None else copy.path

    def kept(self, report: VerdictReport) -> tuple[VerdictReport, bool]:
        """Writes the verdict into the run; returns it under the run's own name, and whether it was written."""
        if self._copy is None:
            return report, store_verdict(report, self.path)
        report = msgspec.structs.replace(report, run=self.name)
        if not store_verdict(report, self.path):
            return report, False
        try:
            self._copy.store_results(_RESULTS)
        except OSError as error:
            click.echo(f"not written: the verdict on {self.name}: {error.strerror}", err=True)
            return report, False
        return report, True

    def report(self) -> Path | None:
        """Writes the report into the run, unless the run is only copied here or has no story to draw.

        Returns:
            The report's place; ``None`` if there is none.
        """
        is_drawn = self._copy is None and (self.path / VERDICT_FILE).is_file() and (self.path / STORY_FILE).is_file()
        return leave_report(self.path) if is_drawn else None


def named_runs(names: Sequence[str]) -> list[str]:
    """Returns names of runs: a directory of runs is replaced by its runs, URIs stay as they are."""
    return [str(run) for name in names for run in ([name] if is_uri(name) else find_runs(run_named(name)))]


def existing_runs(names: Sequence[str], *, work_directory: Path | None) -> list[str]:
    """Returns the names of runs that have ended; paths that are not runs are reported to the user.

    Args:
        names: paths, and URIs, which are not checked yet.
        work_directory: directory for copies of runs at URIs.

    Raises:
        ConfigError: none is a run.
        UserError: there is no place for a copy of a run, or the cluster of the only run is up.
    """
    uris = [name for name in names if is_uri(name)]
    if uris and work_directory is None:
        raise UserError(f"{uris[0]}: expected --work-dir DIR, where the run is copied while it is judged")

    def checked(name: str) -> str:
        if not is_uri(name):
            open_run_directory(Path(name))
            _check_is_down(Path(name))
        return name

    return _fit(names, checked)


@contextlib.contextmanager
def placed_runs(
    names: Sequence[str], *, work_directory: Path | None, spark: "SparkTasks | None"
) -> Iterator[list[RunPlace]]:
    """Copies runs at URIs while the context lasts; URIs that are not runs are left out, and reported to the user.

    Raises:
        ConfigError: none is a run.
    """
    with tempfile.TemporaryDirectory(dir=work_directory, prefix="runs-") as copies:

        def place(name: str) -> RunPlace:
            if spark is None or not is_uri(name):
                return RunPlace(name, None)
            copy = HadoopRun(name, Path(copies) / str(names.index(name)), spark=spark)
            open_run_directory(copy.path)
            return RunPlace(name, copy)

        yield _fit(names, place)


def _check_is_down(run: Path) -> None:
    """Checks that a run does not belong to a standing cluster that is up.

    Raises:
        UserError: the cluster is up.
    """
    from laststand.chaos.standing.order import ORDER_FILE

    if not (run / ORDER_FILE).is_file():
        return
    from laststand.chaos.standing.link import is_standing

    if is_standing(run):
        raise UserError(f"{run}: the cluster is up; end it with: laststand down {run}")


def _fit(names: Sequence[str], step: Callable[[str], _Found]) -> list[_Found]:
    found: list[_Found] = []
    problems: list[ConfigError | UserError] = []
    for name in names:
        try:
            found.append(step(name))
        except (ConfigError, UserError) as error:
            problems.append(error)
    if not found:
        raise problems[0]
    for problem in problems:
        click.echo(f"not judged: {problem}", err=True)
    return found
