"""What a live view shows beside the picture, and how it has deeds done: a cluster as its harness knows it."""

from pathlib import Path
from typing import Protocol

import msgspec


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A deed that is possible now.

    Attributes:
        step: as a scenario file writes it.
        label: in few words.
    """

    step: str
    label: str


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node: its name, the state of its process, whether it is fenced, and what can be done to it."""

    name: str
    state: str
    is_well: bool
    offers: tuple[Offer, ...]


class LinkRow(msgspec.Struct, frozen=True, kw_only=True):
    """A link: its ends, what is wrong with it (empty if nothing is), and what can be done to it."""

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
        offers: deeds about the whole cluster.
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
        """What is played."""
        ...

    @property
    def era(self) -> str:
        """Whose protocol it is."""
        ...

    @property
    def directory(self) -> Path:
        """The run's, in which its events are written."""
        ...

    def state(self) -> StageState:
        """Returns how everything is now."""
        ...

    async def play(self, step: str) -> str:
        """Plays a step and puts it on record; returns what was seen.

        Raises:
            EmulatorError: it could not be played.
        """
        ...
