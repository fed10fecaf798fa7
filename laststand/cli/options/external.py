"""Options for a cluster that another party runs."""

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from laststand.cli.program.requirements import require_kio
from laststand.cli.program.user_error import UserError

if TYPE_CHECKING:
    from laststand.chaos.play.run_order import ExternalOrder
    from laststand.chaos.scenario.scenario import Scenario

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class ExternalChoice:
    """The values of the options.

    Attributes:
        bootstrap: addresses; empty if none are given.
        hooks: the file.
        owned: id of the cluster that the user says is theirs.
        keeps_topics: whether topics that the run makes stay.
    """

    bootstrap: tuple[str, ...]
    hooks: Path | None
    owned: str | None
    keeps_topics: bool

    def check(self, *, is_chosen: bool, is_alone: bool) -> None:
        """Checks that the options fit the driver.

        Args:
            is_chosen: whether ``--driver external`` is.
            is_alone: whether it is the only driver, and ``--set`` is not used.

        Raises:
            UserError: the options do not fit the driver.
        """
        if not is_chosen:
            if self.bootstrap or self.hooks is not None or self.owned is not None or self.keeps_topics:
                raise UserError("--bootstrap, --hooks, --i-own-this-cluster, --keep-topics: only for --driver external")
        elif not is_alone:
            raise UserError("--driver external stands alone, and what --set sets is the cluster's own")
        elif not self.bootstrap or self.hooks is None:
            raise UserError("--driver external needs --bootstrap HOST:PORT and --hooks FILE: docs/external.md")

    def find(self, scenario: "Scenario") -> "tuple[ExternalOrder, str]":
        """Returns cluster and hooks, and the era whose rules judge the run unless the user names one.

        Raises:
            ConfigError: there is no such cluster, or it must not be broken.
            ScenarioError: the file is not a file of hooks.
            UserError: cluster and hooks do not fit the scenario.
        """
        require_kio()
        from laststand.chaos.external.hooked import hook_problems
        from laststand.chaos.play.run_order import ExternalOrder
        from laststand.emulator.cluster.cluster_finder import find_cluster
        from laststand.emulator.cluster.hooks import read_hooks
        from laststand.emulator.plan.yaml_cursor import ScenarioError

        assert self.hooks is not None
        try:
            hooks = read_hooks(self.hooks.absolute())
        except ScenarioError as error:
            raise UserError(str(error)) from None
        if problems := hook_problems(scenario, hooks):
            raise UserError("; ".join(problems))
        cluster = asyncio.run(find_cluster(self.bootstrap, option="--bootstrap", owned=self.owned))
        there, wanted = sorted(cluster.addresses), list(scenario.broker_ids)
        if len(there) != len(wanted):
            raise UserError(f"{scenario.path}: its brokers are {wanted}, and those of the cluster {there}")
        order = ExternalOrder(
            cluster=cluster.numbered_as(scenario.broker_ids), hooks=hooks, keeps_topics=self.keeps_topics
        )
        return order, cluster.nearest_era


def external_options(command: _CommandT) -> _CommandT:
    """Adds the options; the function gets ``external``."""

    @click.option(
        "--bootstrap", metavar="HOST:PORT,...", help="For --driver external: addresses of brokers of the cluster."
    )
    @click.option(
        "--hooks",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="For --driver external: the commands that break and mend its nodes, docs/external.md.",
    )
    @click.option(
        "--i-own-this-cluster",
        "owned",
        metavar="CLUSTER_ID",
        help="For --driver external: allow addresses that are neither loopback nor private; the cluster has this id.",
    )
    @click.option(
        "--keep-topics",
        "keeps_topics",
        is_flag=True,
        help="For --driver external: leave the topics that the run makes; they are deleted at its end otherwise.",
    )
    @functools.wraps(command)
    def with_choice(
        *args: Any, bootstrap: str | None, hooks: Path | None, owned: str | None, keeps_topics: bool, **others: Any
    ) -> Any:
        addresses = tuple(filter(None, (bootstrap or "").split(",")))
        choice = ExternalChoice(bootstrap=addresses, hooks=hooks, owned=owned, keeps_topics=keeps_topics)
        return command(*args, external=choice, **others)

    return with_choice  # type: ignore[return-value]
