"""``laststand docker``: what clusters in containers left on the engine."""

from typing import TYPE_CHECKING

import click

from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json, print_listing

if TYPE_CHECKING:
    from laststand.emulator.cluster.containers.prune import Leftover


@click.group(short_help="List and remove containers that were left behind.")
def docker() -> None:
    """Find and remove containers and networks of clusters whose harness was killed."""


@docker.command(short_help="List what was left behind.")
@json_option
def ps(output: Output) -> None:
    """List containers and networks of clusters; ABANDONED: their harness is gone."""
    from laststand.emulator.cluster.docker_sdk import require_docker_sdk

    require_docker_sdk()
    from laststand.emulator.cluster.containers.prune import find_leftovers

    _print(find_leftovers(), output)


@docker.command(short_help="Remove what was left behind.")
@click.option("--all", "is_all", is_flag=True, help="Also those of clusters whose harness lives, or is not known here.")
@json_option
def prune(output: Output, *, is_all: bool) -> None:
    """Remove containers and networks of clusters whose harness is gone, and list them. Run directories stay."""
    from laststand.emulator.cluster.docker_sdk import require_docker_sdk

    require_docker_sdk()
    from laststand.emulator.cluster.containers.prune import find_leftovers, remove

    chosen = tuple(each for each in find_leftovers() if is_all or each.is_abandoned)
    remove(chosen)
    _print(chosen, output)


def _print(leftovers: "tuple[Leftover, ...]", output: Output) -> None:
    if output is Output.JSON:
        print_json(leftovers)
        return
    print_listing(
        ("KIND", "RUN", "ABANDONED", "NAME"),
        [(each.kind, each.run, "yes" if each.is_abandoned else "no", each.name) for each in leftovers],
    )
