"""Serves the live view of a standing cluster, at the same place whenever the cluster is started again.

``view.json`` in the run directory says where. It is readable by its owner alone, because it has the token by which
nodes can be broken.
"""

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import msgspec

from laststand.chaos.process.stage import ProcessStage
from laststand.chaos.standing.cluster import StandingCluster
from laststand.chaos.standing.order import STANDING, StandingOrder
from laststand.emulator.cluster.ports import is_free
from laststand.emulator.live.server import LiveView, ViewPlace
from laststand.emulator.user_files import read_bytes

_FILE: Final = "view.json"


@contextlib.asynccontextmanager
async def view_of_standing(order: StandingOrder, cluster: StandingCluster) -> AsyncIterator[None]:
    """Serves a page with a cluster that stands, as long as the context lasts; the cluster's status has its address.

    Raises:
        OSError: the page cannot be served.
    """
    name = order.path.name if order.path.parent.name == STANDING else order.path.parent.name
    stage = ProcessStage(
        name=f"cluster {name}",
        era=order.era_label,
        directory=order.path,
        driver=order.driver,
        target=lambda: cluster.target,
        play=cluster.play,
    )
    async with LiveView([stage], title=stage.name, place=_place_before(order.path)) as view:
        _remember(order.path, view.place)
        cluster.view = view.address
        yield
        cluster.view = None
        await view.end("the cluster is being taken down")


def _place_before(directory: Path) -> ViewPlace | None:
    try:
        place = msgspec.json.decode(read_bytes(directory / _FILE), type=ViewPlace)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
    return place if is_free(place.port) else None


def _remember(directory: Path, place: ViewPlace) -> None:
    with open(directory / _FILE, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(msgspec.json.encode(place))
