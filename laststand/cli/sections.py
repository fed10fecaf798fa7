"""A group of commands whose help lists them by purpose, and which imports only the command that is run."""

import importlib
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final

import click

_COMMANDS: Final = "laststand.cli.commands"
"""The package with a module for each verb."""


class LazyCommands(MutableMapping[str, click.Command]):
    """Commands by name, each imported when it is asked for: together they cost 0.2 s."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._commands: dict[str, click.Command | str] = {**places}

    def __getitem__(self, name: str) -> click.Command:
        """Returns a command by its name."""
        command = self._commands[name]
        if isinstance(command, str):
            module, _, function = command.partition(":")
            command = getattr(importlib.import_module(f"{_COMMANDS}.{module}"), function)
            assert isinstance(command, click.Command), name
            self._commands[name] = _as_text(command)
        return command

    def __setitem__(self, name: str, command: click.Command) -> None:
        """Adds a command that is imported already."""
        self._commands[name] = command

    def __delitem__(self, name: str) -> None:
        """Takes a command away."""
        del self._commands[name]

    def __iter__(self) -> Iterator[str]:
        """Yields the names."""
        return iter(self._commands)

    def __len__(self) -> int:
        """Returns the number of commands."""
        return len(self._commands)


class SectionedGroup(click.Group):
    """Lists its commands below headings.

    Args:
        sections: names of all commands, by heading.
        places: ``module:function`` of commands whose module or function has another name.
    """

    def __init__(
        self, *words: Any, sections: Mapping[str, Sequence[str]], places: Mapping[str, str], **settings: Any
    ) -> None:
        super().__init__(*words, **settings)
        self._sections = sections
        names = [name for section in sections.values() for name in section]
        self.commands = LazyCommands({name: places.get(name) or _same_name(name) for name in names})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a definition list per section, with names as wide as the widest of all."""
        width = max((len(name) for name in self.commands), default=0)
        limit = formatter.width - 6 - width
        for heading, names in self._sections.items():
            rows = [(name.ljust(width), self.commands[name].get_short_help_str(limit)) for name in names]
            with formatter.section(heading):
                formatter.write_dl(rows)


def _as_text(command: click.Command) -> click.Command:
    """Writes code in the help of a command and its subcommands between single backticks; docstrings have two."""
    command.help = None if command.help is None else command.help.replace("``", "`")
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        _as_text(each)
    return command


def _same_name(command: str) -> str:
    name = command.replace("-", "_")
    return f"{name}:{name}"
