"""``laststand configs``: dynamic configuration of topics, brokers and the cluster."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from laststand.cli.options.deprecated import warn_of_deprecated
from laststand.cli.output.output import Output, json_option, report_done
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import administer, directory_option, era_of, locate

if TYPE_CHECKING:
    from laststand.emulator.core.types import ConfigResource

_ENTITY_TYPES = ("topics", "brokers")


@click.group(short_help="Dynamic configuration: describe, alter.")
def configs() -> None:
    """Dynamic configuration of a standing cluster, with the options of kafka-configs.sh."""


_entity_type = click.option(
    "--entity-type", type=click.Choice(_ENTITY_TYPES), required=True, help="Kind of the entity."
)
_entity_name = click.option("--entity-name", metavar="NAME", help="The topic, or the id of the broker.")
_entity_default = click.option("--entity-default", is_flag=True, help="The default of all brokers.")


@configs.command()
@_entity_type
@_entity_name
@_entity_default
@click.option("--all", "show_all", is_flag=True, help="Include properties that were never set.")
@directory_option
@json_option
def describe(
    entity_type: str,
    entity_name: str | None,
    *,
    entity_default: bool,
    show_all: bool,
    place: Path,
    output: Output,
) -> None:
    """Print the configuration, and the source of each value."""
    from laststand.cli.output.tables import print_json, print_listing
    from laststand.emulator.core import admin_messages

    resource, name = _resource(entity_type, entity_name, is_default=entity_default)
    entries = administer(locate(place), lambda admin: admin.describe_configs(resource, name))
    shown = [entry for entry in entries if show_all or entry.source is not admin_messages.ConfigSource.DEFAULT_CONFIG]
    if output is Output.JSON:
        print_json(shown)
        return
    print_listing(
        ("NAME", "VALUE", "SOURCE", "SYNONYMS"),
        [
            (
                entry.name,
                entry.value,
                entry.source.value,
                ", ".join(f"{each.source.value}:{each.name}={each.value}" for each in entry.synonyms),
            )
            for entry in shown
        ],
    )


@configs.command(short_help="Set properties, or reset them.")
@_entity_type
@_entity_name
@_entity_default
@click.option("--add-config", "added", multiple=True, metavar="KEY=VALUE", help="A property to set. May be repeated.")
@click.option("--delete-config", "deleted", multiple=True, metavar="KEY", help="A property to reset. May be repeated.")
@directory_option
@json_option
def alter(
    entity_type: str,
    entity_name: str | None,
    *,
    entity_default: bool,
    added: tuple[str, ...],
    deleted: tuple[str, ...],
    place: Path,
    output: Output,
) -> None:
    """Set properties, or reset them to their defaults: all of them or none."""
    from laststand.cli.options.assignments import assignments, changes_of

    resource, name = _resource(entity_type, entity_name, is_default=entity_default)
    properties = assignments("--add-config", added)
    changes = changes_of(resource, properties, deleted)
    if not changes:
        raise UserError("nothing to alter: give --add-config or --delete-config")
    directory = locate(place)
    warn_of_deprecated(properties, era=era_of(directory))
    administer(directory, lambda admin: admin.alter_configs(resource, name, changes))
    done = f"Completed updating config for {entity_type.removesuffix('s')} {name or 'default'}."
    report_done(done, {"entity_type": entity_type, "entity_name": name or None}, output)


def _resource(entity_type: str, name: str | None, *, is_default: bool) -> "tuple[ConfigResource, str]":
    from laststand.emulator.core.types import ConfigResource

    if is_default:
        if entity_type != "brokers" or name is not None:
            raise UserError("--entity-default goes with --entity-type brokers, and without --entity-name")
        return ConfigResource.BROKER, ""
    if name is None:
        raise UserError("give --entity-name, or for brokers --entity-default")
    if entity_type == "topics":
        return ConfigResource.TOPIC, name
    if not name.isdecimal():
        raise UserError(f"--entity-name {name}: expected a broker id")
    return ConfigResource.BROKER, name
