"""Arguments that are runs: a path, or the name of a standing cluster."""

from os import PathLike
from pathlib import Path
from typing import Final

import click


class RunPath(click.Path):
    """A path, or, where nothing is there, the name that ``laststand up --name`` gave to a cluster."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: str | PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Returns the path, or the cluster's run directory."""
        path = Path(str(super().convert(value, param, ctx)))
        return path if path.exists() else cluster_named(str(path)) or path


RUN: Final = RunPath()


def cluster_named(name: str) -> Path | None:
    """Returns the run directory of the standing cluster with that name; ``None`` if there is none."""
    from chaos.standing.link import NoClusterError, find_standing

    if "/" in name:
        return None
    try:
        return find_standing(Path(name))
    except NoClusterError:
        return None
