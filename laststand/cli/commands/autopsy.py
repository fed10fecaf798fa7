"""``laststand autopsy``: what electing each replica of a real cluster's partitions would lose."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from laststand.cli.options.partitions import parse_partition
from laststand.cli.output.output import Output, json_option
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.user_error import UserError

if TYPE_CHECKING:
    from laststand.emulator.autopsy.findings import AutopsyReport, PartitionAutopsy


@click.command(short_help="Show what electing each replica of a real cluster would lose.")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True)
@click.option("--partition", "names", metavar="TOPIC-N", multiple=True, help="Only this partition. Repeatable.")
@click.option("--deep", is_flag=True, help="Compare every batch with its CRC, not only those at the end of a log.")
@click.option("--all", "is_all", is_flag=True, help="Show partitions whose replicas hold the same, too.")
@click.option(
    "--html", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write a page with figures there."
)
@json_option
def autopsy(
    directories: tuple[str, ...],
    *,
    names: tuple[str, ...],
    deep: bool,
    is_all: bool,
    html: Path | None,
    output: Output,
) -> int:
    """Compare the replicas in copied log directories of Apache Kafka's brokers.

    DIR is a log directory, a folder with several log directories, or 3=DIR for a log directory of broker 3 that does
    not name its broker. The newest copy of the metadata log among them says which replicas may lead. Nothing is
    written, and Kafka need not run. Copy the directories of running brokers first: a log that is being written looks
    torn.

    Exits with 2 if anything could not be read, or if it is undecided which of several logs of a broker is current; the
    rest is still shown.
    """
    from laststand.emulator.autopsy.autopsy import examine
    from laststand.emulator.autopsy.log_directories import find_log_directories
    from laststand.emulator.autopsy.replica_reader import CrcScope
    from laststand.emulator.core.errors import StorageError
    from laststand.emulator.report.autopsy_page import write_autopsy

    only = frozenset(map(parse_partition, names)) or None
    try:
        found = find_log_directories(directories)
    except StorageError as error:
        raise UserError(str(error)) from None
    report = examine(found, scope=CrcScope.ALL if deep else CrcScope.TAIL, only=only)
    if not report.partitions and not report.problems:
        known = sorted({str(partition) for directory in found for partition, _ in directory.partitions()})
        raise UserError(
            f"no partition {', '.join(names)}; the directories have: {', '.join(known)}"
            if names and known
            else f"{', '.join(directories)}: no log of any partition"
        )
    if html is not None:
        write_autopsy(report, html)
    if output is Output.JSON:
        from laststand.cli.output.tables import print_json

        print_json(report)
    else:
        _print(report, is_all=is_all or bool(names))
    return ExitCode.VALID if report.is_whole else ExitCode.UNKNOWN


def _print(report: "AutopsyReport", *, is_all: bool) -> None:
    from laststand.emulator.report.autopsy_words import metadata_words, several_logs_words, summary

    click.echo(summary(report))
    click.echo(metadata_words(report))
    _print_brokers_to_return(report)
    for partition in report.partitions:
        if is_all or not partition.is_alike:
            click.echo()
            _print_partition(partition)
    several = list(several_logs_words(report))
    if several:
        click.echo("\n".join(["", "several logs of a partition on one broker:", *(f"  {each}" for each in several)]))
    if report.problems:
        click.echo("\n".join(["", "problems:", *(f"  {problem}" for problem in report.problems)]))


def _print_brokers_to_return(report: "AutopsyReport") -> None:
    from laststand.cli.output.tables import print_listing
    from laststand.emulator.report.autopsy_words import RETURN_COLUMNS, return_row_of, return_words

    words = return_words(report)
    if words is not None:
        click.echo(words)
        print_listing(RETURN_COLUMNS, [return_row_of(broker) for broker in report.brokers_to_return])


def _print_partition(partition: "PartitionAutopsy") -> None:
    from laststand.cli.output.tables import print_listing
    from laststand.emulator.report.autopsy_words import COLUMNS, details_of, row_of, state_words

    click.echo(f"{partition.topic}-{partition.partition}: {state_words(partition)}")
    print_listing(COLUMNS, [row_of(candidate, partition) for candidate in partition.candidates])
    for detail in details_of(partition):
        click.echo(f"  {detail}")
