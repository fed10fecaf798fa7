"""Arguments that are runs: a path, or the name of a standing cluster."""

from os import PathLike
from pathlib import Path
from typing import Final

import click


class RunPath(click.Path):
    """A path, or, if nothing is at it, the name that ``laststand up --name`` gave to a cluster."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: str | PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Returns the path, or the cluster's run directory."""
        return run_named(str(super().convert(value, param, ctx)))


RUN: Final = RunPath()


def run_named(name: str) -> Path:
    """Returns the path with that name or, if there is none, the run directory of the standing cluster."""
    from laststand.chaos.standing.link import NoClusterError, find_standing

    path = Path(name)
    if path.exists() or "/" in name:
        return path
    try:
        return find_standing(path)
    except NoClusterError:
        return path
