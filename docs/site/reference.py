"""The pages of the site that follow from the program: every command's help, the interface for programs, the schema."""

from collections.abc import Iterator
from typing import Final

import click
import msgspec

from laststand.chaos.scenario.schema import scenario_schema
from laststand.cli.main import cli

COMMANDS: Final = "reference/commands.md"
INTERFACE: Final = "reference/python.md"
SCHEMA: Final = "reference/scenario-schema.md"
_MODULES: Final = ("laststand", "laststand.analyses", "laststand.standing_cluster")
_WIDTH: Final = 110


def reference_pages() -> dict[str, str]:
    """Returns the generated pages by path."""
    return {
        COMMANDS: "# Every command\n\n" + "".join(_command("laststand", cli, None)),
        INTERFACE: "# For programs of your own\n\n" + "".join(f"::: {module}\n\n" for module in _MODULES),
        SCHEMA: _schema_page(),
    }


def _command(path: str, command: click.Command, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent, max_content_width=_WIDTH)
    yield f"## {path}\n\n```text\n{command.get_help(context)}\n```\n\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _command(f"{path} {name}", inner, context)


def _schema_page() -> str:
    schema = msgspec.json.format(msgspec.json.encode(scenario_schema()), indent=2).decode()
    return (
        "# Schema of scenario files\n\n`laststand scenarios schema` prints it; "
        f"[scenarios.md](../docs/scenarios.md) explains each key.\n\n```text\n{schema}\n```\n"
    )
