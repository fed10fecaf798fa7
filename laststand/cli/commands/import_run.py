"""``laststand import``: makes a run directory from a real cluster's files, or from a foreign history."""

import shutil
from pathlib import Path
from typing import Final

import click

from laststand.cli.options.partitions import parse_partition
from laststand.cli.output.output import Output, json_option, report_done
from laststand.cli.program.requirements import check_new
from laststand.cli.program.user_error import UserError

_ERA: Final = "kafka-4.2"


@click.command("import", short_help="Make a run directory of a real cluster's logs, or of a history.")
@click.argument("directories", metavar="DIR|FILE...", nargs=-1, required=True)
@click.option("--out", metavar="RUN", required=True, type=click.Path(path_type=Path), help="The new run directory.")
@click.option("--partition", "names", metavar="TOPIC-N", multiple=True, help="Only this partition. Repeatable.")
@click.option("--era", metavar="NAME", help=f"For FILE: by whose rules it is judged; {_ERA} if not given.")
@click.option("--read-to-end", "has_read_to_end", is_flag=True, help="For FILE: its last readers have read to the end.")
@json_option
def import_run(
    directories: tuple[str, ...],
    *,
    out: Path,
    names: tuple[str, ...],
    era: str | None,
    has_read_to_end: bool,
    output: Output,
) -> None:
    """Make the run directory RUN from copied log directories of Apache Kafka, or from a history of clients.

    DIR is as in laststand autopsy, and one of them must have the metadata log. RUN links to the folders of partitions.
    No log says what clients did, so the verdict is unknown; leaders, ISR, ELR and what each log holds are shown. What
    cannot be read, or is not certain, is reported on stderr, and in the verdict.

    FILE is a history of clients, for verify and sql: of Jepsen's Kafka workload or list-append (.edn), what
    kafka-verifiable-producer and kafka-verifiable-consumer print, or JSON lines (docs/histories.md). Several are merged
    by their times.
    """
    from laststand.chaos.kafka import imported_run
    from laststand.emulator.autopsy.log_directories import find_log_directories
    from laststand.emulator.core.errors import StorageError
    from laststand.emulator.verification.judge_here import judge_here

    check_new(out)
    files = [Path(name) for name in directories if Path(name).is_file()]
    if files:
        if len(files) < len(directories) or names:
            raise UserError("a history is imported alone, without --partition")
        _import_history(files, out, era or _ERA, has_read_to_end=has_read_to_end)
        report_done(f"{out}: laststand verify {out}", {"run": str(out)}, output)
        return
    if era is not None or has_read_to_end:
        raise UserError("--era and --read-to-end are for the files of a history")
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


def _import_history(files: list[Path], out: Path, era: str, *, has_read_to_end: bool) -> None:
    from laststand.chaos.external.imported_history import import_history
    from laststand.emulator.core.switches import era_switches

    era_switches(era)
    import_history(files, out, era=era, has_read_to_end=has_read_to_end)
