"""``laststand chaos``: injects faults into a standing cluster. Its commands are loaded on first use."""

from collections.abc import MutableMapping
from typing import Final

import click

_WHOLE: Final = 1000
"""Characters of a sentence that is not cut."""


class _LazyGroup(click.Group):
    """A group whose commands come from ``chaos_commands``, which takes time to import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._loaded())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._loaded().get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a definition list for each kind of fault, with whole sentences."""
        from laststand.cli.standing.chaos_commands import COMMANDS_BY_HEADING

        width = max(len(name) for name in self._loaded())
        for heading, names in COMMANDS_BY_HEADING.items():
            rows = [(name.ljust(width), self._loaded()[name].get_short_help_str(_WHOLE)) for name in names]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def _loaded(self) -> MutableMapping[str, click.Command]:
        from laststand.cli.standing.chaos_commands import COMMANDS

        return COMMANDS.commands


@click.group(cls=_LazyGroup, short_help="Inject and heal faults.")
def chaos() -> None:
    """Inject and heal faults in a standing cluster, with the actions of scenarios.

    A fault that took no effect is reported as a no-op.

    Exit code: 0 it took effect, 1 it was a no-op, 2 it failed on the way, 254 nothing was done.
    """
