"""Finds and removes what harnesses that were killed left on a Docker engine."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import docker
from docker.errors import APIError, NotFound

from laststand.emulator.cluster.containers import labels
from laststand.emulator.cluster.containers.engine import EngineError, checked, connect
from laststand.emulator.cluster.containers.network import own_container

_ATTEMPTS: Final = 50
_INTERVAL_S: Final = 0.1
_BUSY: Final = (403, 409)
"""Somebody else removes the container already; a container that is being removed is still on the network."""


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A container or network with Laststand's label.

    Attributes:
        kind: ``container`` or ``network``.
        name: the engine's.
        run: the run's id.
        is_abandoned: whether its harness is gone, as far as this process can see.
    """

    kind: str
    name: str
    run: str
    is_abandoned: bool


def find_leftovers() -> tuple[Leftover, ...]:
    """Returns every container and network that a harness made, containers first.

    Raises:
        MissingToolError: no engine answers.
        EngineError: the engine refused.
    """
    client = connect()
    try:
        return _find(client, labels.LOCK)
    finally:
        client.close()


def remove(leftovers: tuple[Leftover, ...]) -> None:
    """Removes leftovers, in the order of ``find_leftovers``; a leftover that is gone already is no error.

    Raises:
        MissingToolError: no engine answers.
        EngineError: the engine refused.
    """
    client = connect()
    try:
        for each in leftovers:
            _remove(client, each)
    finally:
        client.close()


def remove_of_run(directory: Path) -> int:
    """Removes the leftovers of a killed harness; returns the number of containers and networks.

    Nothing is removed while the harness lives.

    Args:
        directory: of the run.

    Raises:
        MissingToolError: no engine answers.
        EngineError: the engine refused.
    """
    client = connect()
    try:
        lock = directory / labels.LOCK_FILE
        is_abandoned = all(each.is_abandoned for each in _find(client, f"{labels.LOCK}={lock}"))
        return remove_of(client, lock) if is_abandoned else 0
    finally:
        client.close()


def remove_of(client: docker.DockerClient, lock: Path) -> int:
    """Removes every container and network of the harness with that lock file; returns their number.

    Raises:
        EngineError: the engine refused.
    """
    removed: set[str] = set()
    # Again until there is nothing: an engine still makes what it was asked for before the harness died.
    for _ in range(_ATTEMPTS):
        found = _find(client, f"{labels.LOCK}={lock}")
        if not found:
            return len(removed)
        for each in found:
            _remove(client, each)
        removed |= {each.name for each in found}
    raise EngineError(what="removal", reason=f"there is always more with the label {labels.LOCK}={lock}")


def _find(client: docker.DockerClient, label: str) -> tuple[Leftover, ...]:
    def list_leftovers() -> tuple[Leftover, ...]:
        own = own_container(client)
        own_id = "" if own is None else own.id or ""
        running = frozenset(each.id for each in client.containers.list(sparse=True))
        by_label: dict[str, str | list[str] | bool] = {"label": label}
        containers = client.containers.list(all=True, filters=by_label, ignore_removed=True)
        named = [("container", each.name, each.labels) for each in containers]
        named += [("network", each.name, each.attrs["Labels"]) for each in client.networks.list(filters=by_label)]
        return tuple(
            Leftover(
                kind=kind,
                name=name or "",
                run=found[labels.RUN],
                is_abandoned=_is_abandoned(found, own_id=own_id, running=running),
            )
            for kind, name, found in named
        )

    return checked("listing", list_leftovers)


def _is_abandoned(found: Mapping[str, str], *, own_id: str, running: frozenset[str | None]) -> bool:
    """Returns whether a harness is gone: with its container, if it ran in another container than this process."""
    harness = found.get(labels.HARNESS, "")
    if harness and harness != own_id:
        return harness not in running
    return labels.is_abandoned(found)


def _remove(client: docker.DockerClient, leftover: Leftover) -> None:
    if leftover.kind == "container":
        call = partial(client.api.remove_container, leftover.name, force=True)
    else:
        call = partial(_remove_network, client, leftover.name)
    checked(f"removal of {leftover.name}", partial(_until_gone, call))


def _until_gone(call: Callable[[], None]) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            call()
        except NotFound:
            return
        except APIError as error:
            if error.status_code not in _BUSY or attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_INTERVAL_S)
        else:
            return


def _remove_network(client: docker.DockerClient, name: str) -> None:
    """Removes a network from which a harness in a container was not taken off."""
    for container in client.api.inspect_network(name)["Containers"]:
        client.api.disconnect_container_from_network(container, name, force=True)
    client.api.remove_network(name)
