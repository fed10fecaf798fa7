"""The help of every command says whole sentences, in what a terminal shows."""

from collections.abc import Iterator

import click
import pytest

from laststand.cli.main import cli


def commands_below(
    command: click.Command, path: tuple[str, ...], parent: click.Context | None
) -> Iterator[click.Context]:
    context = click.Context(command, info_name=path[-1], parent=parent)
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands_below(below, (*path, name), context)


CONTEXTS = {context.command_path: context for context in commands_below(cli, ("laststand",), None)}


@pytest.mark.parametrize("path", CONTEXTS)
def test_the_help_of_a_command_is_text_for_people(path: str) -> None:
    text = CONTEXTS[path].get_help()
    usage, _, rest = text.partition("\n\n")
    assert len(usage) < 400, "a list of values in the usage hides the arguments"
    assert "``" not in rest, "a terminal shows code between single backticks"
    assert "\\b" not in rest
    assert " TEXT " not in rest.replace("--key-separator TEXT", "").replace("--after-output TEXT", ""), "name the value"


@pytest.mark.parametrize(
    "path", [path for path, context in CONTEXTS.items() if isinstance(context.command, click.Group)]
)
def test_a_list_of_commands_has_whole_sentences(path: str) -> None:
    listing = [line for line in CONTEXTS[path].get_help().splitlines() if line.startswith("  ") and "Usage" not in line]
    assert [line for line in listing if line.endswith("...")] == []
