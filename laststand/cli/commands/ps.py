"""``laststand ps``: lists standing clusters."""

from pathlib import Path

import click

from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json, print_listing
from laststand.cli.standing.connections import DEFAULT_STORE


@click.command(short_help="List standing clusters.")
@click.argument("stores", nargs=-1, type=click.Path(path_type=Path), metavar="[STORE]...")
@click.option("-a", "--all", "show_all", is_flag=True, help="Also those that were taken down or never came up.")
@json_option
def ps(stores: tuple[Path, ...], *, show_all: bool, output: Output) -> None:
    """List the clusters in each STORE: those that are up, and those that can be started again.

    Without STORE, those in store/, and those that have a name, wherever they are.

    DIED: the supervisor was killed, or the machine went down; ``laststand start`` goes on with such a cluster, too.
    """
    from laststand.chaos.standing.listing import ClusterState, list_clusters, list_named_clusters

    finished = (ClusterState.DOWN, ClusterState.NOT_STARTED)
    listed = [cluster for store in stores or (DEFAULT_STORE,) for cluster in list_clusters(store)]
    if not stores:
        listed += [cluster for cluster in list_named_clusters() if cluster not in listed]
    clusters = [cluster for cluster in listed if show_all or cluster.state not in finished]
    if output is Output.JSON:
        print_json(clusters)
        return
    print_listing(
        ("NAME", "STATE", "PID", "ERA", "BROKERS", "SINCE", "DIRECTORY"),
        [
            (
                each.name,
                each.state.value,
                each.pid,
                each.era,
                each.brokers,
                None if each.since is None else f"{each.since:%Y-%m-%d %H:%M:%SZ}",
                each.directory,
            )
            for each in clusters
        ],
    )
