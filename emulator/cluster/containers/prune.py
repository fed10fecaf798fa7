"""Finds and removes what harnesses that were killed left on a Docker engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from emulator.cluster.containers import labels
from emulator.cluster.containers.engine import checked, connect

_BY_LABEL: Final[dict[str, str | list[str] | bool]] = {"label": labels.RUN}


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """Something with our label.

    Attributes:
        kind: ``container`` or ``network``.
        name: the engine's.
        run: the run's id.
        is_abandoned: whether its harness is gone, as far as can be seen from here.
    """

    kind: str
    name: str
    run: str
    is_abandoned: bool


def find_leftovers() -> tuple[Leftover, ...]:
    """Returns every container and network that a harness made, containers first.

    Raises:
        MissingToolError: no engine answers.
        EngineError: it refused.
    """
    client = connect()
    try:
        return checked(
            "listing",
            lambda: (
                *(
                    _leftover("container", each.name or each.short_id, each.labels)
                    for each in client.containers.list(all=True, filters=_BY_LABEL)
                ),
                *(
                    _leftover("network", each.name or each.short_id, each.attrs["Labels"])
                    for each in client.networks.list(filters=_BY_LABEL)
                ),
            ),
        )
    finally:
        client.close()


def remove(leftovers: tuple[Leftover, ...]) -> None:
    """Removes them, in the order of ``find_leftovers``.

    Raises:
        MissingToolError: no engine answers.
        EngineError: it refused.
    """
    client = connect()
    try:
        for each in leftovers:
            if each.kind == "container":
                checked(f"removal of {each.name}", partial(client.api.remove_container, each.name, force=True))
            else:
                checked(f"removal of {each.name}", partial(client.api.remove_network, each.name))
    finally:
        client.close()


def _leftover(kind: str, name: str, found: Mapping[str, str]) -> Leftover:
    return Leftover(kind=kind, name=name, run=found[labels.RUN], is_abandoned=labels.is_abandoned(found))
