"""All standing clusters of a store, up or not: what ``laststand ps`` lists."""

from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from pathlib import Path

import msgspec

from laststand.chaos.standing.link import find_all, is_standing
from laststand.chaos.standing.names import all_registered
from laststand.chaos.standing.order import ORDER_FILE, STANDING, read_order
from laststand.chaos.standing.state import Ended, read_state
from laststand.emulator.core.errors import ConfigError


class ClusterState(Enum):
    """The state of a standing cluster."""

    UP = "up"
    STOPPED = "stopped"
    DOWN = "down"
    DIED = "died"
    """Its supervisor was killed, or the machine went down."""

    NOT_STARTED = "not started"
    """It never came up."""


class ListedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """One standing cluster.

    Attributes:
        name: its name; ``None`` if it has none.
        directory: of the run.
        state: whether it is up, or how it ended.
        pid: of its supervisor, while that lives.
        era: name of the era.
        brokers: number of brokers.
        since: when it was started last; ``None`` if it never came up.
    """

    name: str | None
    directory: str
    state: ClusterState
    pid: int | None
    era: str
    brokers: int
    since: datetime | None


def list_clusters(store: Path) -> tuple[ListedCluster, ...]:
    """Returns the clusters of a store, the oldest run first; directories that cannot be read are left out."""
    return _listed_all(find_all(store))


def list_named_clusters() -> tuple[ListedCluster, ...]:
    """Returns this user's clusters with a name, wherever their stores are."""
    return _listed_all(each for each in all_registered() if (each / ORDER_FILE).is_file())


def _listed_all(directories: Iterable[Path]) -> tuple[ListedCluster, ...]:
    listed = []
    for directory in directories:
        try:
            listed.append(_listed(directory))
        except ConfigError:
            continue
    return tuple(listed)


def _listed(directory: Path) -> ListedCluster:
    order, remembered = read_order(directory), read_state(directory)
    if is_standing(directory):
        state = ClusterState.UP
    elif remembered is None:
        state = ClusterState.NOT_STARTED
    elif remembered.ended is None:
        state = ClusterState.DIED
    else:
        state = {Ended.STOPPED: ClusterState.STOPPED, Ended.DOWN: ClusterState.DOWN}[remembered.ended]
    folder = directory.parent.name
    return ListedCluster(
        name=None if folder == STANDING else folder,
        directory=str(directory),
        state=state,
        pid=remembered.pid if remembered is not None and state is ClusterState.UP else None,
        era=order.era_label,
        brokers=order.brokers,
        since=None if remembered is None else remembered.since,
    )
