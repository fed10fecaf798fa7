"""What the verbs for a standing cluster share: the option that names its directory, and the way to its supervisor."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from emulator.cli.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chaos.standing.messages import Answer, Command
    from chaos.standing.status import StatusReport

DEFAULT_STORE: Final = Path("store")
"""Where standing clusters are looked for if nothing is said."""

directory_option = click.option(
    "--dir",
    "place",
    type=click.Path(path_type=Path),
    default=DEFAULT_STORE,
    show_default="the latest in store/",
    metavar="DIR",
    help="Directory of the standing cluster, or a store, which stands for the latest one in it.",
)
"""Adds ``--dir``; the function gets ``place``, for ``locate``."""

directory_argument = click.argument(
    "place", type=click.Path(path_type=Path), default=DEFAULT_STORE, metavar="[DIR]", required=False
)
"""Adds an argument DIR that may be missing; the function gets ``place``, for ``locate``."""


def locate(place: Path) -> Path:
    """Returns the directory of a standing cluster, up or down.

    Raises:
        UserError: there is none.
    """
    from chaos.standing.link import NoClusterError, find_standing

    try:
        return find_standing(place)
    except NoClusterError as error:
        raise UserError(str(error)) from None


def ask(directory: Path, command: "Command") -> "Iterator[Answer]":
    """Sends a command to the supervisor and yields its answers.

    Raises:
        UserError: no supervisor listens, or it refused.
        SupervisorLost: it ended meanwhile.
    """
    from chaos.standing import link

    try:
        yield from link.ask(directory, command)
    except link.NoClusterError as error:
        raise UserError(str(error)) from None


def status_of(directory: Path) -> "StatusReport":
    """Returns how a standing cluster is.

    Raises:
        UserError: it is down.
        SupervisorLost: it went down meanwhile.
    """
    from chaos.standing.link import SupervisorLost
    from chaos.standing.messages import GetStatus, Status

    for answer in ask(directory, GetStatus()):
        if isinstance(answer, Status):
            return answer.report
    raise SupervisorLost(directory)
