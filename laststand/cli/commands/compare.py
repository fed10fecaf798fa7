"""``laststand compare``: two runs of one scenario, step by step."""

from pathlib import Path

import click

from laststand.cli.options.run_argument import RUN
from laststand.cli.output.output import Output, json_option
from laststand.cli.program.exit_codes import ExitCode


@click.command(short_help="Compare two runs of a scenario, step by step.")
@click.argument("run", type=RUN)
@click.argument("other", type=RUN)
@json_option
def compare(run: Path, *, other: Path, output: Output) -> int:
    """Compare RUN with OTHER, both verified: of two eras, two drivers, or two sets of rules.

    For each step that both reached: leader, order of leader epochs, ISR, ELR and last known ELR as they were committed
    when the step was done; in the end the records that were lost, by acks. The first line says where they first differ.

    Exit code: 0 they agree, 1 they do not, 254 for a user error.
    """
    from laststand.cli.output.step_comparison import print_steps, steps_as_json
    from laststand.cli.output.tables import print_json
    from laststand.emulator.report.run_files import read_reported_run
    from laststand.emulator.report.step_comparison import compare_steps

    found = compare_steps(read_reported_run(run), read_reported_run(other))
    if output is Output.JSON:
        print_json(steps_as_json(found))
    else:
        print_steps(found)
    return ExitCode.VIOLATION if found.differences else ExitCode.VALID
