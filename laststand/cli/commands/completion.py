"""``laststand completion``: prints a script for a shell's completion."""

from typing import Final

import click
from click.shell_completion import get_completion_class

PROGRAM: Final = "laststand"
COMPLETE_VARIABLE: Final = "_LASTSTAND_COMPLETE"
"""The variable in which click's scripts say that a completion is wanted."""

_SHELLS: Final = ("bash", "zsh", "fish")


_HELP: Final = """Print the script by which SHELL completes commands, options, scenarios, eras, rules, topics and nodes.

\b
bash: eval "$(laststand completion bash)"    in ~/.bashrc
zsh:  eval "$(laststand completion zsh)"     in ~/.zshrc
fish: laststand completion fish | source     in ~/.config/fish/config.fish
"""
"""The lines behind backspace are not wrapped."""


@click.command(short_help="Print a completion script for your shell.", help=_HELP)
@click.argument("shell", metavar="|".join(_SHELLS), type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the script of a shell."""
    kind = get_completion_class(shell)
    assert kind is not None, "click knows every shell of the list"
    click.echo(kind(click.get_current_context().find_root().command, {}, PROGRAM, COMPLETE_VARIABLE).source())
