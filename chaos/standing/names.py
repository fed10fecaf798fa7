"""Clusters by name, wherever their stores are: a link for each in the user's state directory.

::

    $XDG_STATE_HOME/laststand/clusters/<name> -> the run directory of the cluster that got this name last

``~/.local/state`` is used if ``XDG_STATE_HOME`` is not set. A link whose run is gone is removed.
"""

import contextlib
import os
from pathlib import Path

from laststand.chaos.standing.order import STANDING


def register(directory: Path) -> None:
    """Registers a cluster's name, if it has one; if that cannot be written, it is known only in its store."""
    name = directory.parent.name
    if name == STANDING:
        return
    with contextlib.suppress(OSError):
        links = _links()
        links.mkdir(parents=True, exist_ok=True)
        fresh = links / f".{name}.{os.getpid()}"
        fresh.symlink_to(directory, target_is_directory=True)
        fresh.replace(links / name)


def registered(name: str) -> Path | None:
    """Returns the run directory of the cluster that got a name last; ``None`` if there is none."""
    path = _links() / name
    return path.resolve() if name and "/" not in name and path.is_dir() else None


def all_registered() -> tuple[Path, ...]:
    """Returns the run directories of all clusters with a name, the oldest first."""
    found = []
    with contextlib.suppress(OSError):
        for link in _links().iterdir():
            if link.is_dir():
                found.append(link.resolve())
            else:
                link.unlink(missing_ok=True)
    return tuple(sorted(found, key=lambda directory: directory.name))


def _links() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "laststand/clusters"
