"""Two runs of one scenario, step by step: their differences, as text and as a document."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from laststand.emulator.report.step_comparison import Difference, StepComparison


def print_steps(found: "StepComparison") -> None:
    """Prints where two runs first differ, and all differences at steps."""
    from laststand.cli.output.tables import print_listing

    click.echo(found.sentence)
    if found.differences:
        click.echo()
        print_listing(
            ["AFTER STEP", "ABOUT", "WHAT", found.left, found.right],
            [[_after(each), each.about, each.what, each.left, each.right] for each in found.differences],
        )


def steps_as_json(found: "StepComparison") -> dict[str, object]:
    """Returns the same differences as a document."""
    return {**found._asdict(), "differences": [each._asdict() for each in found.differences]}


def _after(difference: "Difference") -> str:
    return "the end" if difference.step is None else f"{difference.step} {difference.text}"
