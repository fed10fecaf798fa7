"""A compose project that another party started: its containers, and the places of its files for this process."""

import enum
import io
import os
import tarfile
from pathlib import Path
from typing import Final

import docker
from docker.errors import NotFound
from docker.models.containers import Container
from docker.types import Mount

from laststand.emulator.cluster.containers import labels, volume_messages
from laststand.emulator.cluster.containers.engine import checked
from laststand.emulator.cluster.containers.network import own_container
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import NodeId
from laststand.emulator.node.environment import PREFIX, PROPERTIES_FILE, TOKEN_FILE
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.rpc.authority import FILES, replace_file
from laststand.emulator.rpc.certificates import FOLDER
from laststand.emulator.rpc.run_token import RunToken

_PROJECT: Final = "com.docker.compose.project"
_EVENTS: Final = Path("events")

VOLUMES_VARIABLE: Final = "LASTSTAND_VOLUMES"
"""In the environment of whoever attaches: which ``VolumeAccess``."""


class VolumeAccess(enum.Enum):
    """The way in which a harness reaches the volumes of a project."""

    DIRECT = "direct"
    """The harness reads and writes the volumes in its own file system."""
    CONTAINER = "container"
    """The harness uses a helper container."""


class Project:
    """The containers of a project, found by their labels.

    Args:
        client: of the engine.
        name: of the project; ``None`` for the project of the container in which this process runs.

    Attributes:
        name: of the project.
        members: containers by the id of their node, and ``toxiproxy``.
        own: the container in which this process runs, if any.

    Raises:
        ConfigError: there is no such project, or it is no cluster.
        EngineError: the engine refused.
    """

    def __init__(self, client: docker.DockerClient, name: str | None) -> None:
        self._client = client
        self._networks: dict[str, tuple[str, tuple[str, ...]]] = {}  # which each container left, and its names there
        self.own = checked("own container", lambda: own_container(client))
        found = name or (None if self.own is None else self.own.labels.get(_PROJECT))
        if found is None:
            raise ConfigError(key="--compose-project", value=None, expected="the name of a project: docker compose ls")
        self.name = found
        self.members: dict[str, Container] = {
            each.labels[labels.NODE]: each
            for each in checked(
                "project",
                lambda: client.containers.list(
                    all=True, filters={"label": [f"{_PROJECT}={found}", labels.NODE]}, ignore_removed=True
                ),
            )
        }
        if str(CONTROLLER) not in self.members:
            raise ConfigError(key="--compose-project", value=found, expected="a project with a cluster that is up")

    @property
    def broker_ids(self) -> tuple[NodeId, ...]:
        """All brokers, ascending."""
        return tuple(sorted(NodeId(int(each)) for each in self.members if each.isdigit() and int(each) < CONTROLLER))

    @property
    def controllers(self) -> int:
        """The number of controllers; 1 for a ZooKeeper server in their place."""
        return sum(each.isdigit() and int(each) >= CONTROLLER for each in self.members)

    @property
    def _first_broker(self) -> Container:
        return self.members[str(self.broker_ids[0])]

    def disconnect(self, member: str) -> bool:
        """Takes a container off the project's network; returns whether it was on it."""
        container = self.members[member]
        container.reload()
        found = container.attrs["NetworkSettings"]["Networks"]
        if not found:
            return False
        ((name, settings),) = found.items()
        self._networks[member] = name, tuple(settings["Aliases"] or ())
        self._client.networks.get(name).disconnect(container)
        return True

    def connect(self, member: str) -> bool:
        """Connects a container again, with its former names; returns whether it was disconnected."""
        if member not in self._networks:
            return False
        name, aliases = self._networks.pop(member)
        self._client.networks.get(name).connect(self.members[member], aliases=list(aliases))
        self.members[member].reload()
        return True

    def variables(self) -> dict[str, str]:
        """Returns the environment of the first broker, by variables without their prefix."""
        entries = self._first_broker.attrs["Config"]["Env"]
        pairs = (entry.partition("=")[::2] for entry in entries)
        return {name.removeprefix(PREFIX): value for name, value in pairs if name.startswith(PREFIX)}

    def properties_file(self) -> str:
        """Returns the content of the first broker's properties file; empty if there is none.

        Raises:
            EngineError: the engine refused.
        """
        path = self.variables().get(PROPERTIES_FILE)
        return self._content(path).decode() if path else ""

    def token(self) -> RunToken:
        """Returns the token that the nodes drew.

        Raises:
            ConfigError: the nodes have no token in their environment.
            EngineError: the engine refused.
        """
        path = self.variables().get(TOKEN_FILE, "")
        try:
            return RunToken.parse(self._content(path) if path else b"")
        except ValueError:
            expected = (
                f"a project whose nodes have {PREFIX}{TOKEN_FILE}; this one is of an earlier version: make it again"
            )
            raise ConfigError(key="--compose-project", value=self.name, expected=expected) from None

    def copy_authority(self, folder: Path) -> None:
        """Copies the certificate authority, which the nodes created beside the token, into a folder of this machine.

        Raises:
            EngineError: the engine refused.
        """
        folder.mkdir(mode=0o700, exist_ok=True)
        for name in FILES:
            content = self._content(str(Path(self.variables()[TOKEN_FILE]).with_name(FOLDER) / name))
            replace_file(folder / name, content)

    def _content(self, path: str) -> bytes:
        """Returns the content of a file of the first broker's container; empty for the null device."""
        chunks, _ = checked(f"copy of {path}", lambda: self._first_broker.get_archive(path))
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            entry = archive.extractfile(archive.next() or tarfile.TarInfo())
            return b"" if entry is None else entry.read()

    def volume_access(self) -> VolumeAccess:
        """Returns the access to the volumes: as ``LASTSTAND_VOLUMES`` says, else direct access if that is allowed.

        Raises:
            ConfigError: the variable asks for direct access, which is not permitted; or it has an unknown value.
        """
        wanted = os.environ.get(VOLUMES_VARIABLE) or None
        if wanted not in (None, *(each.value for each in VolumeAccess)):
            expected = " or ".join(each.value for each in VolumeAccess)
            raise ConfigError(key=VOLUMES_VARIABLE, value=wanted, expected=expected)
        closed = [
            mount["Name"]
            for mount in self._mounts().values()
            if not os.access(self._local_path(mount), os.R_OK | os.W_OK | os.X_OK)
        ]
        if wanted == VolumeAccess.DIRECT.value and closed:
            raise ConfigError(
                key=VOLUMES_VARIABLE,
                value=wanted,
                expected=f"volumes that this user can read and write, and {closed[0]} is none; leave it out",
            )
        return VolumeAccess.CONTAINER if closed or wanted == VolumeAccess.CONTAINER.value else VolumeAccess.DIRECT

    def check_unattached(self, access: VolumeAccess) -> None:
        """Checks that no harness was attached before.

        Raises:
            ConfigError: a harness is attached.
            EngineError: the engine refused.
        """
        if access is VolumeAccess.DIRECT:
            was_attached = any(self._local_path(self._mounts()[_EVENTS]).glob("harness-*"))
        else:
            events = f"{self.run_directory}/{_EVENTS}"
            was_attached = any(
                self._exists(f"{events}/{name}") for name in (volume_messages.ATTACHED_MARK, "harness-0.jsonl")
            )
        if was_attached:
            raise ConfigError(
                key="--compose-project",
                value=self.name,
                expected="a project to which nobody was attached yet, its own service `harness` included; start one "
                "with: docker compose up --wait --scale harness=0",
            )

    def _exists(self, path: str) -> bool:
        def exists() -> bool:
            try:
                self._first_broker.get_archive(path)
            except NotFound:
                return False
            return True

        return checked(f"look for {path}", exists)

    @property
    def run_directory(self) -> str:
        """The run's directory in the nodes' containers."""
        return self.variables()["DIRECTORY"]

    @property
    def node_image(self) -> str:
        """Id of the image of the nodes."""
        return str(self._first_broker.attrs["Image"])

    def volumes(self) -> list[Mount]:
        """Returns mounts with which another container sees all volumes of the nodes, at the nodes' places."""
        return [
            Mount(target=mount["Destination"], source=mount["Name"], type="volume") for mount in self._mounts().values()
        ]

    def link_directories(self, directory: Path) -> None:
        """Makes ``events``, ``history`` and ``nodes/<id>`` of a run directory lead to the volumes."""
        for place, mount in self._mounts().items():
            link = directory / place
            if link.is_dir():
                link.rmdir()  # the empty one of a new run directory
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(self._local_path(mount), target_is_directory=True)

    def _mounts(self) -> dict[Path, dict[str, str]]:
        """Returns the nodes' mounts in the run directory, by their path relative to it."""
        run = self.run_directory
        mounts = [mount for name, each in self.members.items() if name.isdigit() for mount in each.attrs["Mounts"]]
        return {
            Path(mount["Destination"]).relative_to(run): mount
            for mount in mounts
            if Path(mount["Destination"]).is_relative_to(run)
        }

    def _local_path(self, mount: dict[str, str]) -> Path:
        """Returns the path of a volume for this process: in its own container's file system, or in the engine's."""
        mounts = [] if self.own is None else self.own.attrs["Mounts"]
        own = [each["Destination"] for each in mounts if each.get("Name") == mount["Name"]]
        return Path(own[0] if own else mount["Source"])
