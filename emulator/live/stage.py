"""The content of a live view besides the picture, and the actions that its page offers."""

from pathlib import Path
from typing import Protocol

import msgspec


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """An action that is possible now.

    Attributes:
        step: in the form of a scenario file.
        label: in few words.
    """

    step: str
    label: str


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node: its name, the state of its process, whether it is fenced, and the actions that are possible on it."""

    name: str
    state: str
    is_well: bool
    offers: tuple[Offer, ...]


class LinkRow(msgspec.Struct, frozen=True, kw_only=True):
    """A link: its ends, its fault (empty if there is none), and the actions that are possible on it."""

    name: str
    broken: str
    offers: tuple[Offer, ...]


class PartitionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A partition as the controller committed it."""

    name: str
    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]


class StageState(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster at one moment.

    Attributes:
        nodes: by id.
        links: those that can be broken.
        partitions: by name.
        offers: actions about the whole cluster.
        faults: descriptions of the faults in force.

    """

    nodes: tuple[NodeRow, ...] = ()
    links: tuple[LinkRow, ...] = ()
    partitions: tuple[PartitionRow, ...] = ()
    offers: tuple[Offer, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def steps(self) -> frozenset[str]:
        """Every step that is offered."""
        offers = [*self.offers]
        for node in self.nodes:
            offers += node.offers
        for link in self.links:
            offers += link.offers
        return frozenset(offer.step for offer in offers)


class Stage(Protocol):
    """A cluster that can be watched."""

    @property
    def name(self) -> str:
        """The name of the scenario or cluster."""
        ...

    @property
    def era(self) -> str:
        """The era of the cluster."""
        ...

    @property
    def directory(self) -> Path:
        """The directory of the run, in which its events are written."""
        ...

    def state(self) -> StageState:
        """Returns the status of nodes, partitions and faults."""
        ...

    async def play(self, step: str) -> str:
        """Plays a step and records it; returns what was observed.

        Raises:
            EmulatorError: the step could not be played.
        """
        ...
