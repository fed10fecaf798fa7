"""``laststand acls``: access control lists."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from laststand.cli.output.output import Output, json_option, report_done
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import administer, directory_option, locate

if TYPE_CHECKING:
    from collections.abc import Callable

    from laststand.emulator.core.acls import AclFilter, AclOperation

_OPERATIONS = (
    "All",
    "Alter",
    "AlterConfigs",
    "ClusterAction",
    "Create",
    "Delete",
    "Describe",
    "DescribeConfigs",
    "IdempotentWrite",
    "Read",
    "Write",
)
_PATTERNS = ("literal", "prefixed")


@click.group(short_help="Access control lists: list, add, remove.")
def acls() -> None:
    """Access control lists of a standing cluster, with the options of kafka-acls.sh.

    The nodes need Kafka's StandardAuthorizer as their authorizer.class.name.
    """


def _resource_options(command: "Callable[..., object]") -> "Callable[..., object]":
    options = (
        click.option("--topic", metavar="NAME", help="A topic; * for every one."),
        click.option("--group", metavar="NAME", help="A consumer group; * for every one."),
        click.option("--transactional-id", metavar="ID", help="A transactional id; * for every one."),
        click.option("--cluster", is_flag=True, help="The cluster itself."),
        click.option(
            "--resource-pattern-type",
            type=click.Choice(_PATTERNS),
            default=_PATTERNS[0],
            show_default=True,
            help="How names are compared.",
        ),
        click.option(
            "--allow-principal",
            metavar="PRINCIPAL",
            help="The principal that is allowed: User:alice, or User:* for all.",
        ),
        click.option("--deny-principal", metavar="PRINCIPAL", help="The principal that is denied, in the same form."),
        click.option("--host", metavar="IP", help="Host for which the entry holds; every host if not given."),
        click.option(
            "--operation",
            type=click.Choice(_OPERATIONS, case_sensitive=False),
            help="The operation that is allowed or denied.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@acls.command(name="list")
@directory_option
@json_option
def list_acls(*, place: Path, output: Output) -> None:
    """Print all entries."""
    from laststand.cli.output.tables import print_json, print_listing
    from laststand.emulator.core.acls import AclFilter

    entries = administer(locate(place), lambda admin: admin.describe_acls(AclFilter()))
    rows = [
        (
            entry.permission.name,
            entry.principal,
            entry.operation.name,
            entry.resource_type.name,
            entry.resource_name,
            entry.pattern_type.name,
            entry.host,
        )
        for entry in entries
    ]
    header = ("PERMISSION", "PRINCIPAL", "OPERATION", "RESOURCE", "NAME", "PATTERN", "HOST")
    if output is Output.JSON:
        print_json([dict(zip(map(str.lower, header), row, strict=True)) for row in rows])
    else:
        print_listing(header, rows)


@acls.command(short_help="Add an entry.")
@_resource_options
@directory_option
@json_option
def add(*, place: Path, output: Output, **words: str | bool | None) -> None:
    """Add an entry."""
    from laststand.emulator.core.acls import WILDCARD, AccessControlEntry

    asked = _filter(words)
    principal, name = asked.principal, asked.resource_name
    if principal is None or words["operation"] is None:
        raise UserError("give --operation, and one of --allow-principal and --deny-principal")
    assert name is not None, "each resource has a name"
    entry = AccessControlEntry(
        resource_type=asked.resource_type,
        resource_name=name,
        pattern_type=asked.pattern_type,
        principal=principal,
        host=asked.host or WILDCARD,
        operation=asked.operation,
        permission=asked.permission,
    )
    administer(locate(place), lambda admin: admin.create_acls((entry,)))
    report_done("added", entry, output)


@acls.command(short_help="Remove entries.")
@_resource_options
@directory_option
@json_option
def remove(*, place: Path, output: Output, **words: str | bool | None) -> None:
    """Remove all entries of a resource, or only those that match the other options."""
    removed = administer(locate(place), lambda admin: admin.delete_acls(_filter(words)))
    report_done(f"removed {len(removed)} {'entry' if len(removed) == 1 else 'entries'}", removed, output)


def _filter(words: "dict[str, str | bool | None]") -> "AclFilter":
    """Returns the filter that options name.

    Raises:
        UserError: not one resource, or two principals.
    """
    from laststand.emulator.core.acls import (
        CLUSTER_NAME,
        AclFilter,
        AclOperation,
        AclPermission,
        PatternType,
        ResourceType,
    )

    named = {
        ResourceType.TOPIC: words["topic"],
        ResourceType.GROUP: words["group"],
        ResourceType.TRANSACTIONAL_ID: words["transactional_id"],
        ResourceType.CLUSTER: CLUSTER_NAME if words["cluster"] else None,
    }
    resources = [(kind, str(name)) for kind, name in named.items() if name is not None]
    if len(resources) != 1:
        raise UserError("give one of --topic, --group, --transactional-id and --cluster")
    allowed, denied = words["allow_principal"], words["deny_principal"]
    if allowed is not None and denied is not None:
        raise UserError("--allow-principal excludes --deny-principal")
    principal = allowed if denied is None else denied
    if principal is None:
        permission = AclPermission.ANY
    else:
        permission = AclPermission.ALLOW if denied is None else AclPermission.DENY
    operation = words["operation"]
    ((kind, name),) = resources
    return AclFilter(
        resource_type=kind,
        resource_name=name,
        pattern_type=PatternType[str(words["resource_pattern_type"]).upper()],
        principal=None if principal is None else str(principal),
        host=None if words["host"] is None else str(words["host"]),
        operation=AclOperation.ANY if operation is None else _operation(str(operation)),
        permission=permission,
    )


def _operation(word: str) -> "AclOperation":
    from laststand.emulator.core.acls import AclOperation

    return next(each for each in AclOperation if each.name.replace("_", "").lower() == word.lower())
