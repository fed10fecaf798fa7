"""``laststand import``: a run directory of what a real cluster left behind."""

import shutil
from pathlib import Path

import click

from laststand.cli.options.partitions import parse_partition
from laststand.cli.output.output import Output, json_option, report_done
from laststand.cli.program.requirements import check_new
from laststand.cli.program.user_error import UserError


@click.command("import", short_help="Make a run directory of a real cluster's logs.")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True)
@click.option("--out", metavar="RUN", required=True, type=click.Path(path_type=Path), help="The new run directory.")
@click.option("--partition", "names", metavar="TOPIC-N", multiple=True, help="Only this partition. Repeatable.")
@json_option
def import_run(directories: tuple[str, ...], *, out: Path, names: tuple[str, ...], output: Output) -> None:
    """Make the run directory RUN of copied log directories of Apache Kafka, for show and report.

    DIR is as in laststand autopsy, and one of them must have the metadata log. RUN links to the folders of partitions.
    No log says what clients did, so the verdict is unknown; leaders, ISR, ELR and what each log holds are shown. What
    cannot be read, or is not certain, is reported on stderr, and in the verdict.
    """
    from laststand.chaos.kafka import imported_run
    from laststand.emulator.autopsy.log_directories import find_log_directories
    from laststand.emulator.core.errors import StorageError
    from laststand.emulator.verification.judge_here import judge_here

    check_new(out)
    only = frozenset(map(parse_partition, names)) or None
    try:
        problems = imported_run.import_run(find_log_directories(directories), out, only=only)
    except StorageError as error:
        raise UserError(str(error)) from None
    for problem in problems:
        click.echo(f"not certain: {problem}", err=True)
    try:
        judged = judge_here(out)
    except OSError:
        shutil.rmtree(out, ignore_errors=True)
        raise
    if judged.story.problem is not None:
        click.echo(f"not certain: the run cannot be shown: {'; '.join(judged.report.unknown_reasons[:1])}", err=True)
    report_done(f"{out}: laststand show {out}, laststand report {out}", {"run": str(out)}, output)
