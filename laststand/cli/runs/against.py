"""``laststand run SCENARIO [--set A] --against [--set B]``: one scenario under two sets of rules, side by side.

Options of click have no order, so the words after ``--against`` are separated before click sees them: ``--set`` and
``--era`` belong to the other run, and all other options to both.
"""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from laststand.cli.program.user_error import UserError

if TYPE_CHECKING:
    from laststand.chaos.campaign import EraOrder
    from laststand.chaos.scenario.scenario import Scenario

AGAINST: Final = "--against"
_OF_ONE_RUN: Final = ("--set", "--era")


class OtherRun(NamedTuple):
    """The options after ``--against``; ``era`` is ``None`` for the era of the first run."""

    settings: tuple[str, ...]
    era: str | None


class CommandWithOtherRun(click.Command):
    """A command whose ``--set`` and ``--era`` after ``--against`` are those of another run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses all words; those of the other run become the parameter ``against``.

        Raises:
            click.UsageError: they cannot be parsed.
        """
        if AGAINST not in args:
            return super().parse_args(ctx, args)
        words, others = _sorted(args)
        rest = super().parse_args(ctx, words)
        ctx.params["against"] = _parsed(others, ctx)
        return rest


against_option = click.option(
    AGAINST,
    is_flag=True,
    callback=lambda *_: None,
    help="Play the scenario a second time, side by side and with the same seed, and say where the two runs differ: the "
    "--set and the --era that follow are those of the second run.",
)
"""Adds ``--against`` to a ``CommandWithOtherRun``; the function gets ``against``, an ``OtherRun`` or ``None``."""


def _sorted(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the words of the first run and of both, and those of the other run."""
    place = args.index(AGAINST)
    words, others = list(args[: place + 1]), []
    rest = iter(args[place + 1 :])
    for word in rest:
        option, equals, _ = word.partition("=")
        if option in _OF_ONE_RUN:
            others += [word, *itertools.islice(rest, 0 if equals else 1)]
        else:
            words.append(word)
    return words, others


def _parsed(others: list[str], ctx: click.Context) -> OtherRun:
    settings = click.Option(["--set", "settings"], multiple=True)
    eras = click.Option(["--era", "eras"], multiple=True)
    command = click.Command(AGAINST, params=[settings, eras], add_help_option=False)
    try:
        found = command.make_context(AGAINST, others, resilient_parsing=ctx.resilient_parsing).params
    except click.UsageError as error:
        raise click.UsageError(f"behind {AGAINST}: {error.format_message()}", ctx=ctx) from None
    if len(found["eras"]) > 1:
        raise click.UsageError(f"behind {AGAINST} there is one era, not {', '.join(found['eras'])}", ctx=ctx)
    return OtherRun(found["settings"], next(iter(found["eras"]), None))


def only_era(eras: Sequence[str]) -> str:
    """Returns the era of a run that another one is compared with.

    Raises:
        UserError: there are several.
    """
    if len(set(eras)) > 1:
        raise UserError(f"{AGAINST} compares two runs, and the first one would be {', '.join(eras)}: give it one --era")
    return eras[0]


def check_orders_differ(scenario: "Scenario", one: "EraOrder", other: "EraOrder") -> None:
    """Checks that two orders of a scenario differ.

    Raises:
        UserError: both orders are the same.
    """
    from laststand.chaos.scenario.requirements import changes_of

    rules = [(each.era, changes_of(scenario, each.era, each.switches, each.properties)) for each in (one, other)]
    if rules[0] == rules[1]:
        raise UserError(f"{AGAINST}: both runs would be of {one.era} with the same rules and properties")
