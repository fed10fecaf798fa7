"""Options of several verbs that play: ``--era`` and ``--set``, which choose a protocol, ``--profile`` and ``--out``."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import click
from click.shell_completion import CompletionItem

from laststand.cli.options.completion import (
    complete_eras,
    complete_kraft_eras,
    complete_kraft_profiles,
    complete_profiles,
    complete_settings,
)
from laststand.cli.program.user_error import UserError
from laststand.emulator.core.eras import ALL_ERAS
from laststand.emulator.core.errors import suggestion
from laststand.emulator.core.switches import DEFAULT_ERA, ERAS

if TYPE_CHECKING:
    from laststand.emulator.plan.overrides import Overrides

_Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_Option: TypeAlias = Callable[[Callable[..., object]], Callable[..., object]]

ERA_HELP: Final = f"{', '.join(ALL_ERAS)}. docs/eras.md compares them."
"""The help text of ``--era``."""

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
    "quorum",
    "quorum-disks",
    "quorum-voters",
    "quorum-combined",
    "transactions",
    "transactions-restarts",
    "groups",
    "members",
    "mixed",
    "mixed-crashes",
    "segments",
)
"""Names of ``ALL_PROFILES`` in ``laststand.emulator.simulator.profiles.profiles``, which takes long to import."""

_PROCESS_PROFILE_NAMES: Final = tuple(name for name in PROFILE_NAMES if not name.startswith(("zk-", "quorum")))


def _era_option(eras: Iterable[str], complete: _Complete) -> _Option:
    return click.option(
        "--era",
        metavar="ERA",
        shell_complete=complete,
        help=f"Protocol whose rules hold: {', '.join(eras)}. docs/eras.md compares them.  [default: {DEFAULT_ERA}]",
    )


era_option = _era_option(ALL_ERAS, complete_eras)
"""Adds ``--era``; the function gets ``era``, a name that is not checked yet, or ``None``."""

kraft_era_option = _era_option(ERAS, complete_kraft_eras)
"""As ``era_option``, without the eras with ZooKeeper."""

set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_settings,
    help="Change a rule of the era, such as elr=off, or a Kafka property of every node, such as min.insync.replicas=2. "
    "May be repeated; docs/eras.md lists the rules and their values, docs/properties.md the properties.",
)
"""Adds ``--set``; the function gets ``settings``, for ``parse_overrides``."""


def _profile_option(names: Iterable[str], complete: _Complete) -> _Option:
    return click.option(
        "--profile",
        "profiles",
        multiple=True,
        metavar="NAME",
        shell_complete=complete,
        help=f"Kind of plan to draw; repeat for several, all that apply if not given: {', '.join(names)}.",
    )


profile_option = _profile_option(PROFILE_NAMES, complete_profiles)
"""Adds ``--profile``; the function gets ``profiles``, for ``check_profiles``."""

kraft_profile_option = _profile_option(_PROCESS_PROFILE_NAMES, complete_kraft_profiles)
"""As ``profile_option``, without the profiles for clusters with ZooKeeper, or with several controllers."""

tls_option = click.option(
    "--tls",
    "has_tls",
    is_flag=True,
    help="Use TLS with certificates on both sides, between nodes and with Kafka clients; the cluster issues them.",
)
"""Adds ``--tls``; the function gets ``has_tls``."""

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
    """Checks that the profiles exist.

    Raises:
        UserError: a profile does not exist.
    """
    allowed = tuple(known)
    for name in profiles:
        if name not in allowed:
            raise UserError(f"--profile {name}: expected one of {', '.join(allowed)}{suggestion(name, allowed)}")


def simulated_overrides(settings: tuple[str, ...]) -> "Overrides":
    """Returns the settings of ``--set`` for plans that the simulator draws.

    Raises:
        ConfigError: a setting cannot be set.
        UserError: the simulator has no such property.
    """
    from laststand.emulator.plan.overrides import parse_overrides
    from laststand.emulator.plan.unsupported_properties import NO_TIMED_FLUSH, NODE_FLUSH_TIME

    overrides = parse_overrides(settings)
    if NODE_FLUSH_TIME in dict(overrides.properties):
        raise UserError(f"--set {NODE_FLUSH_TIME}: {NO_TIMED_FLUSH}")
    return overrides
