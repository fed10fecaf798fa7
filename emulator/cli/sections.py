"""A group of commands whose help lists them by what they are for."""

from collections.abc import Mapping
from types import MappingProxyType

import click

from emulator.cli.signals import ClosedPipeError


class SectionedGroup(click.Group):
    """Lists its commands below headings. Every command is added by ``add_section``.

    Attributes:
        sections: commands by heading.
    """

    sections: Mapping[str, tuple[click.Command, ...]] = MappingProxyType({})

    def add_section(self, heading: str, *commands: click.Command) -> None:
        """Adds commands, which the help lists in this order below a heading."""
        for command in commands:
            self.add_command(command)
        self.sections = {**self.sections, heading: commands}

    def invoke(self, ctx: click.Context) -> object:
        """Runs the command that was asked for.

        Raises:
            ClosedPipeError: nobody reads what it prints; click would end with 1 here.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ClosedPipeError from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a definition list per section, with names as wide as the widest of all."""
        width = max((len(name) for name in self.commands), default=0)
        limit = formatter.width - 6 - width
        for heading, commands in self.sections.items():
            rows = [((command.name or "").ljust(width), command.get_short_help_str(limit)) for command in commands]
            with formatter.section(heading):
                formatter.write_dl(rows)
