"""Warnings about properties that an era has deprecated."""

from collections.abc import Iterable
from typing import Final

import click

UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
_DEPRECATED_BY: Final = "kip-966"
"""Eras whose names begin like this have ``unclean.recovery.strategy`` in its place."""


def warn_of_deprecated(names: Iterable[str], *, era: str) -> None:
    """Warns on stderr of deprecated properties that are set, and names what replaces them.

    Args:
        names: of the properties that are set.
        era: era whose rules hold.
    """
    if era.startswith(_DEPRECATED_BY) and UNCLEAN_ELECTION in names:
        click.echo(
            f"warning: {UNCLEAN_ELECTION} is deprecated (KIP-966), use unclean.recovery.strategy: "
            "true is Aggressive, false is Balanced",
            err=True,
        )
