"""Mounts the run directory into the nodes' containers, at the path at which the harness has it.

Paths in configurations are then the same everywhere, and the harness works on the nodes' disks as it does for
processes. A harness that runs in a container itself passes on the volume or folder that holds the directory there.
"""

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from laststand.emulator.core.errors import ConfigError

if TYPE_CHECKING:  # a compose file is written without it
    from docker.models.containers import Container
    from docker.types import Mount

IMAGE_USER: Final = 10001
"""User and group of the image, as which nodes run where the harness is root."""


def run_mount(directory: Path, own: "Container | None") -> "Mount":
    """Returns the mount that shows a directory of this process to another container.

    Raises:
        ConfigError: it lies in this container's own file system, which no other container sees.
    """
    from docker.types import Mount

    if own is None:
        return Mount(target=str(directory), source=str(directory), type="bind")
    for mount in sorted(own.attrs["Mounts"], key=lambda each: -len(each["Destination"])):
        if directory.is_relative_to(mount["Destination"]):
            if mount["Type"] == "volume":
                return Mount(target=mount["Destination"], source=mount["Name"], type="volume")
            source = Path(mount["Source"]) / directory.relative_to(mount["Destination"])
            return Mount(target=str(directory), source=str(source), type="bind")
    raise ConfigError(key="--out", value=str(directory), expected="a directory in a volume of this container")


def node_user() -> tuple[int, int]:
    """Returns user and group of the nodes' processes: those of this process, but never root."""
    if os.getuid() == 0:
        return IMAGE_USER, IMAGE_USER
    return os.getuid(), os.getgid()


def change_owner(path: Path, user: tuple[int, int]) -> None:
    """Creates a directory, and makes a user the owner of it and its content, unless this process runs as that user."""
    path.mkdir(parents=True, exist_ok=True)
    if os.getuid() == user[0]:
        return
    os.chown(path, *user)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            os.chown(Path(folder, name), *user, follow_symlinks=False)


def let_through(path: Path, user: tuple[int, int]) -> None:
    """Lets the nodes reach their files in a directory, if they run as another user than this process."""
    if os.getuid() != user[0]:
        os.chown(path, -1, user[1])
        path.chmod(path.stat().st_mode | stat.S_IXGRP)
