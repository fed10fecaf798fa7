"""``laststand kafka``: versions of Apache Kafka for ``--driver kafka``."""

from pathlib import Path

import click
import msgspec

from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json, print_listing
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.user_error import UserError


@click.group(short_help="Install and list versions of Apache Kafka.")
def kafka() -> None:
    """Install and list versions of Apache Kafka, for `run --driver kafka`."""


class InstalledVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version, and its place."""

    version: str
    folder: str


@kafka.command(short_help="Put a version into the user's cache.")
@click.argument("version")
@json_option
def install(version: str, *, output: Output) -> int:
    """Install VERSION of Apache Kafka, such as 4.2.0, or the distribution in a folder.

    A version comes from Maven's central repository, through the user's mvn and its settings, or without mvn through the
    Ivy that PySpark brings, and the settings file that LASTSTAND_IVY_SETTINGS names, if any. It takes 90 MB in
    ~/.cache/laststand/kafka. Downloaded jars must have the known SHA-256; jars of a folder that have another one are
    listed, and installed.

    Exit code: 0 installed, 254 for a user error.
    """
    from laststand.emulator.cluster.kafka_install import KafkaInstallError, install_distribution, install_kafka
    from laststand.emulator.cluster.kafka_jars import check_jars
    from laststand.emulator.verification.spark.java import find_java

    java = find_java().executable
    try:
        folder = Path(version)
        made = install_distribution(folder, java=java) if folder.is_dir() else install_kafka(version, java=java)
    except KafkaInstallError as error:
        raise UserError(str(error)) from None
    checked = check_jars(made.folder / "jars")
    if checked.changed:
        click.echo(f"{', '.join(checked.changed)}: not what was published, by their SHA-256", err=True)
    if checked.unknown:
        click.echo(f"no SHA-256 is known here of {len(checked.unknown)} jars, such as {checked.unknown[0]}", err=True)
    if output is Output.JSON:
        print_json(InstalledVersion(version=made.version, folder=str(made.folder)))
    else:
        click.echo(f"Kafka {made.version} is in {made.folder}")
    return ExitCode.VALID


@kafka.command("list", short_help="List the versions in the user's cache.")
@json_option
def list_versions(*, output: Output) -> int:
    """List the versions that `run --driver kafka` can play with, newest first."""
    from laststand.emulator.cluster.kafka_distribution import installed_versions, kafka_cache

    there = [InstalledVersion(version=each, folder=str(kafka_cache() / each)) for each in installed_versions()]
    if output is Output.JSON:
        print_json(there)
    else:
        print_listing(("VERSION", "FOLDER"), [(each.version, each.folder) for each in there])
    return ExitCode.VALID
