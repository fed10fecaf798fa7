"""``laststand show``: the picture of a run as text."""

from pathlib import Path
from typing import Final

import click

from laststand.cli.options.run_argument import RUN
from laststand.cli.output.output import Output, json_option
from laststand.cli.program.user_error import UserError

_LEGEND: Final = """\
leader: a digit is a broker, . nobody
broker: L leads, i in the ISR, e in the ELR, . in neither, x no process
no ack: # nothing was acknowledged
copies E: logs with the last lost or acknowledged record of epoch E"""


@click.command(short_help="Show the picture of a run as text.")
@click.argument("run", type=RUN)
@click.option("--partition", metavar="TOPIC-N", help="Only this partition; else the worst come first.")
@json_option
def show(run: Path, *, partition: str | None, output: Output) -> None:
    """Show what became of the records of a RUN that was verified: leader, roles and copies over time.

    A digit in the row of the leader is a broker, a dot no leader. L leads, i is in the ISR, e in the ELR, a dot is out,
    x runs no process. A row of copies counts the logs that have the last lost record of an epoch, or of the last
    acknowledged one where nothing is lost.
    """
    from laststand.cli.output.tables import print_json
    from laststand.emulator.report.run_files import read_reported_run
    from laststand.emulator.report.text_picture import text_picture
    from laststand.emulator.report.worst_first import worst_first
    from laststand.emulator.verification.verdict.report import headline

    found = read_reported_run(run)
    partitions = worst_first(found.verdict, found.story)
    chosen = [each for each in partitions if partition in (None, f"{each.topic}-{each.partition}")]
    if partition is not None and not chosen:
        known = ", ".join(f"{each.topic}-{each.partition}" for each in partitions) or "there is none"
        raise UserError(f"--partition {partition}: unknown; partitions of this run: {known}")
    pictures = {
        f"{each.topic}-{each.partition}": text_picture(found.verdict, each, found.story).splitlines() for each in chosen
    }
    if output is Output.JSON:
        exempt = found.verdict.exempted()
        print_json(
            {"verdict": headline(found.verdict), "exempt": exempt, "problem": found.story.problem, "pictures": pictures}
        )
        return
    click.echo("\n".join([headline(found.verdict), *found.verdict.exempted()]))
    if found.story.problem is not None:
        click.echo(f"there is no picture: {found.story.problem}")
    for name, lines in pictures.items():
        click.echo("\n".join(["", name, *lines]))
    if pictures:
        click.echo(f"\n{_LEGEND}")
