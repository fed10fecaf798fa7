"""The options of ``laststand run`` that make it a suite."""

import functools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import click
import msgspec

from laststand.cli.program.user_error import UserError

if TYPE_CHECKING:
    from laststand.chaos.suite.cells import Shard

_Result = TypeVar("_Result")


class _ShardType(click.ParamType[tuple[int, int]]):
    """``K/N``: part K of N."""

    name = "K/N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        number, _, count = str(value).partition("/")
        if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
            self.fail(f"{value!r} is no part, expected K/N with K from 1 to N, such as 2/5", param, ctx)
        return int(number), int(count)


@dataclass(frozen=True, kw_only=True)
class Forms:
    """Files that a suite's results are written to, besides the terminal."""

    junit: Path | None
    summary: Path | None
    results: Path | None

    def check(self) -> None:
        """Checks that each can be written.

        Raises:
            UserError: a file cannot be written.
        """
        for option, path in (("--junit", self.junit), ("--summary", self.summary), ("--results", self.results)):
            if path is not None and not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
                raise UserError(f"{option} {path}: cannot be written")


class PlayChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The user's choices for playing cells; ``None`` and ``False`` without an option.

    Attributes:
        timeout_s: of a cell.
    """

    jobs: int | None
    fail_fast: bool
    timeout_s: float | None
    keep: str | None
    junit: Path | None
    summary: Path | None
    results: Path | None

    @property
    def stops_at_failure(self) -> bool:
        """No further cell begins after one that did not pass."""
        return self.fail_fast

    @property
    def jobs_or_default(self) -> int:
        """The number of cells played at a time: one more than there are cores, because clusters mostly wait."""
        return self.jobs or 1 + (os.cpu_count() or 1)

    @property
    def forms(self) -> Forms:
        """The files that results are written to."""
        return Forms(junit=self.junit, summary=self.summary, results=self.results)


class SuiteChoice(PlayChoice, frozen=True, kw_only=True):
    """The user's choices of cells in a suite; ``None`` and ``False`` without an option.

    Attributes:
        shard: number and count.
        rerun: results of a suite before.
    """

    repeat: int | None
    until_failure: bool
    shard: tuple[int, int] | None
    rerun: Path | None

    @property
    def stops_at_failure(self) -> bool:
        return self.fail_fast or self.until_failure

    @property
    def is_given(self) -> bool:
        """True if the user gave at least one of these options."""
        return any(value not in (None, False) for value in msgspec.structs.astuple(self))

    @property
    def repetitions(self) -> int | None:
        """The number of times that each cell is played; ``None`` for without end."""
        return self.repeat or (None if self.until_failure else 1)

    @property
    def part(self) -> "Shard":
        """The part of the cells to play."""
        from laststand.chaos.suite.cells import ALL, Shard

        return ALL if self.shard is None else Shard(number=self.shard[0], count=self.shard[1])


_FILE: Final = click.Path(path_type=Path, dir_okay=False)

_PLAY_OPTIONS: Final = (
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Cells (scenarios under an era) to play at a time; default: one more than there are cores.",
    ),
    click.option("--fail-fast", is_flag=True, help="Begin no further cell after one that did not pass."),
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Stop a cell that takes longer; its verdict is unknown.",
    ),
    click.option(
        "--keep", type=click.Choice(["all", "failures", "none"]), help="Run directories to keep; default: all."
    ),
    click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML, a test case per cell."),
    click.option("--summary", type=_FILE, metavar="FILE", help="Write the matrix as Markdown."),
    click.option("--results", type=_FILE, metavar="FILE", help="Write all results as JSON, for --rerun."),
)

_SUITE_OPTIONS: Final = (
    click.option(
        "--repeat", type=click.IntRange(min=1), metavar="N", help="Play each cell N times, with different seeds."
    ),
    click.option("--until-failure", is_flag=True, help="Repeat until a cell does not pass, at most --repeat times."),
    click.option("--shard", type=_ShardType(), help="Play part K of N; a cell is always in the same part."),
    click.option(
        "--rerun",
        type=_FILE,
        metavar="FILE",
        help="Play the cells again that did not pass in these results, with their seeds and settings.",
    ),
)

_Option: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


def suite_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Gives a command all options, and their values as its argument ``suite_choice``."""
    return _with_options(command, (*_PLAY_OPTIONS, *_SUITE_OPTIONS), SuiteChoice, "suite_choice")


def play_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Gives a command the options of how cells are played, and their values as its argument ``play_choice``."""
    return _with_options(command, _PLAY_OPTIONS, PlayChoice, "play_choice")


def _with_options(
    command: Callable[..., _Result], options: Iterable[_Option], choice: type[PlayChoice], argument: str
) -> Callable[..., _Result]:
    @functools.wraps(command)
    def with_choice(*arguments: Any, **values: Any) -> _Result:
        own = {name: values.pop(name) for name in choice.__struct_fields__}
        return command(*arguments, **{argument: choice(**own)}, **values)

    decorated: Callable[..., _Result] = with_choice
    for option in reversed(tuple(options)):
        decorated = option(decorated)
    return decorated
