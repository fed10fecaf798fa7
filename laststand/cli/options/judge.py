"""``--judge``: chooses the judge of runs, for all commands that judge them."""

import functools
from collections.abc import Callable
from typing import Final, TypeVar

import click

from laststand.cli.program.user_error import UserError
from laststand.emulator.verification.judges import JudgeName

_Result = TypeVar("_Result")

_NAMES: Final = click.Choice([name.value for name in JudgeName])
_HELP: Final = "Judge by Spark, or in this process: quick for small runs, and without Java; the verdicts are the same."


def judge_option(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Gives a command ``--judge``, and its value as the argument ``judge``."""

    @functools.wraps(command)
    def with_judge(*arguments: object, judge: str, **others: object) -> _Result:
        return command(*arguments, judge=JudgeName(judge), **others)

    return click.option("--judge", type=_NAMES, default=JudgeName.SPARK.value, show_default=True, help=_HELP)(
        with_judge
    )


def verdict_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Gives a command that plays runs ``--judge`` and ``--no-verify``; ``judge`` is ``None`` with ``--no-verify``."""

    @functools.wraps(command)
    def with_judge(*arguments: object, judge: str | None, is_judged: bool, **others: object) -> _Result:
        if judge is not None and not is_judged:
            raise UserError("--no-verify excludes --judge: nobody judges what was played")
        chosen = JudgeName(judge or JudgeName.SPARK.value) if is_judged else None
        return command(*arguments, judge=chosen, **others)

    judged = click.option(
        "--verify/--no-verify",
        "is_judged",
        default=True,
        show_default=True,
        help="Judge what was played; without it the exit code is 0 played, 2 a problem.",
    )
    return judged(click.option("--judge", type=_NAMES, help=f"{_HELP}  [default: spark]")(with_judge))
