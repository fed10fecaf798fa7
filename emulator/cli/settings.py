"""Options of several verbs that play: ``--era`` and ``--set``, which choose a protocol, ``--profile`` and ``--out``."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from emulator.cli.completion import complete_eras, complete_profiles, complete_settings
from emulator.cli.user_error import UserError
from emulator.core.eras import ALL_ERAS
from emulator.core.switches import DEFAULT_ERA

if TYPE_CHECKING:
    from emulator.plan.overrides import Overrides

ERA_HELP: Final = f"{', '.join(ALL_ERAS)}. docs/eras.md compares them."
"""What can be given to ``--era``."""

PROFILE_NAMES: Final = (
    "steady",
    "isr-churn",
    "elections",
    "restarts",
    "controller",
    "partitions",
    "endurance",
    "last-standing",
    "min-isr",
    "reassignment",
    "administrator",
    "features",
    "races",
    "cancelled",
    "downgrade",
    "readers",
    "all-down",
    "recovery",
    "unclean",
    "unclean-races",
    "zk-sessions",
    "zk-control",
    "zk-isr",
    "zk-restarts",
    "zk-reassignment",
    "zk-power-losses",
    "zk-races",
    "zk-strays",
)
"""Names of ``emulator.simulator.profiles.ALL_PROFILES``, which takes long to import only for a help text."""

era_option = click.option(
    "--era",
    metavar="ERA",
    shell_complete=complete_eras,
    help=f"Whose rules hold: {ERA_HELP}  [default: {DEFAULT_ERA}]",
)
"""Adds ``--era``; the function gets ``era``, a name that is not checked yet, or ``None``."""

set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_settings,
    help="Change a rule of the era, such as elr=off, or a Kafka property of every node, such as min.insync.replicas=2. "
    "docs/eras.md lists the rules and their values, docs/properties.md the properties.",
)
"""Adds ``--set``; the function gets ``settings``, for ``parse_overrides``."""


profile_option = click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_profiles,
    help=f"Kind of plan to draw; repeat for several, all that apply if not given: {', '.join(PROFILE_NAMES)}.",
)
"""Adds ``--profile``; the function gets ``profiles``, for ``check_profiles``."""

store_option = click.option(
    "--out",
    "store",
    type=click.Path(path_type=Path),
    default=Path("store"),
    show_default=True,
    help="Store of the run directories.",
)
"""Adds ``--out``; the function gets ``store``."""


def check_profiles(profiles: tuple[str, ...], known: Iterable[str]) -> None:
    """Checks that there are such profiles.

    Raises:
        UserError: there is no such profile.
    """
    allowed = tuple(known)
    for name in profiles:
        if name not in allowed:
            raise UserError(f"--profile {name}: expected one of {', '.join(allowed)}")


def simulated_overrides(settings: tuple[str, ...]) -> "Overrides":
    """Returns what ``--set`` asks for, for plans that the simulator draws.

    Raises:
        ConfigError: it cannot be set.
        UserError: the simulator has no such property.
    """
    from emulator.plan.overrides import parse_overrides
    from emulator.plan.unsupported_properties import NO_TIMED_FLUSH, NODE_FLUSH_TIME

    overrides = parse_overrides(settings)
    if NODE_FLUSH_TIME in dict(overrides.properties):
        raise UserError(f"--set {NODE_FLUSH_TIME}: {NO_TIMED_FLUSH}")
    return overrides
