"""``laststand features``: finalized features of a standing cluster."""

from pathlib import Path

import click

from laststand.cli.output.output import Output, json_option, report_done
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import administer, directory_option, locate


@click.group(short_help="Feature levels: describe, upgrade, downgrade.")
def features() -> None:
    """Features of a standing cluster, with the options of kafka-features.sh."""


_feature = click.option(
    "--feature",
    "updates",
    multiple=True,
    required=True,
    metavar="NAME=LEVEL",
    help="May be repeated: all or none. A level of metadata.version may be a name: 4.0-IV1, or a release such as 4.0.",
)
_dry_run = click.option("--dry-run", is_flag=True, help="Only check whether it is possible.")


@features.command(short_help="Print every feature and its levels.")
@directory_option
@json_option
def describe(place: Path, output: Output) -> None:
    """Print every feature with its supported levels and its finalized level."""
    from laststand.cli.output.tables import print_json

    found = administer(locate(place), lambda admin: admin.describe_features())
    if output is Output.JSON:
        print_json(found)
        return
    for each in found:
        click.echo(
            f"Feature: {each.name}\tSupportedMinVersion: {each.min_supported_version}\t"
            f"SupportedMaxVersion: {each.max_supported_version}\tFinalizedVersionLevel: {each.finalized_version}"
        )


@features.command()
@_feature
@_dry_run
@directory_option
@json_option
def upgrade(updates: tuple[str, ...], *, dry_run: bool, place: Path, output: Output) -> None:
    """Raise features to higher levels."""
    _update(updates, "UPGRADE", "upgraded", place, output, is_dry=dry_run)


@features.command()
@_feature
@click.option("--unsafe", is_flag=True, help="Allow it even if metadata is lost.")
@_dry_run
@directory_option
@json_option
def downgrade(updates: tuple[str, ...], *, unsafe: bool, dry_run: bool, place: Path, output: Output) -> None:
    """Lower features to lower levels; level 0 disables one."""
    _update(updates, "UNSAFE_DOWNGRADE" if unsafe else "SAFE_DOWNGRADE", "downgraded", place, output, is_dry=dry_run)


def _update(updates: tuple[str, ...], direction: str, done: str, place: Path, output: Output, *, is_dry: bool) -> None:
    from laststand.cli.options.assignments import assignments
    from laststand.emulator.client.admin import Effort
    from laststand.emulator.core import admin_messages
    from laststand.emulator.core.types import FeatureUpgradeType

    levels = {name: _level(name, text) for name, text in assignments("--feature", updates).items()}
    wanted = [
        admin_messages.FeatureUpdate(feature=name, max_version_level=level, upgrade_type=FeatureUpgradeType[direction])
        for name, level in levels.items()
    ]
    effort = Effort.VALIDATE_ONLY if is_dry else Effort.APPLY
    administer(locate(place), lambda admin: admin.update_features(wanted, effort=effort))
    sentences = [
        f"{name} {'can be' if is_dry else 'was'} {done} to {_text(name, level)}." for name, level in levels.items()
    ]
    report_done("\n".join(sentences), {"levels": levels, "dry_run": is_dry}, output)


def _level(name: str, text: str) -> int:
    """Returns the level that a number, or a name of ``metadata.version``, stands for."""
    from laststand.emulator.core.metadata_version import METADATA_VERSION, level_of

    if text.isdecimal():
        return int(text)
    if name == METADATA_VERSION:
        return level_of(text)
    raise UserError(f"--feature {name}={text}: expected a level, such as 1")


def _text(name: str, level: int) -> str:
    from laststand.emulator.core.metadata_version import LEVELS, METADATA_VERSION

    return f"{level} ({LEVELS[level]})" if name == METADATA_VERSION and level < len(LEVELS) else str(level)
