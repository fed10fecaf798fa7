"""A profile: which moves a schedule prefers, on which clusters.

A *move* is a short sequence of actions with one intention; ``moves`` has them by name. A profile gives each a weight. A
*swarm* draw switches half of the fault moves off and scales the others, so that rare combinations get room (swarm
testing); moves that make progress are never switched off.
"""

from collections.abc import Mapping
from enum import Enum
from random import Random
from typing import Final

import msgspec

from laststand.emulator.core.disk import TruncationFate

PROGRESS: Final = frozenset(
    {"produce", "produce_one", "step", "pass", "linger", "start", "release", "rejoin", "heal", "fork", "bounce"}
)
"""Moves without which no work is done, or no fault ends."""


class Budget(Enum):
    """The limit of moves: whether they may cause more failures than the guarantee covers."""

    WITHIN = "within"
    """Never more replicas outstanding than the guarantee covers: every loss is a finding."""

    BEYOND = "beyond"
    """Anything: losses are expected, wrong order, wrong data and no convergence are findings."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The distribution that schedules are drawn from.

    Attributes:
        name: its name for ``--profile``.
        weights: relative frequency of moves; a move that is not named does not occur.
        moves: maximal number of moves.
        brokers: to choose from.
        controllers: number of controllers.
        combined: whether each controller shares a process with a broker.
        min_isr: to choose from, at most the replication factor.
        partitions: at most.
        budget: whether moves may cause more failures than the guarantee covers.
        fates: possible fates of unsynced truncations in a power loss.
        properties: of every node, by Kafka's name.
        internal_topics: topics of coordinators; the topic of transactions brings a transactional producer with it.
        spreads: names of ``spreads.SPREADS``, from which schedules draw further properties.
    """

    name: str
    weights: Mapping[str, int]
    moves: int = 48
    brokers: tuple[int, ...] = (3, 3, 4)
    controllers: int = 1
    combined: bool = False
    min_isr: tuple[int, ...] = (2,)
    partitions: int = 1
    budget: Budget = Budget.WITHIN
    fates: tuple[TruncationFate, ...] = (TruncationFate.KEPT, TruncationFate.UNDONE)
    properties: tuple[tuple[str, str], ...] = ()
    internal_topics: tuple[str, ...] = ()
    spreads: tuple[str, ...] = ("times",)


COMMON: Final = {
    "produce": 28,
    "produce_one": 4,
    "step": 14,
    "pass": 14,
    "linger": 4,
    "start": 8,
    "release": 8,
    "rejoin": 5,
    "heal": 1,
    "fork": 3,
    "bounce": 2,
}

WITHOUT_CRASHES: Final = {name: weight for name, weight in COMMON.items() if name != "bounce"}
"""Schedules in which no broker ends uncleanly: what is promised then holds without eligible leader replicas, too."""


def swarm(profile: Profile, random: Random) -> Profile:
    """Returns the profile with about half of its fault moves off and the others scaled."""
    weights: dict[str, int] = {}
    for move, weight in profile.weights.items():
        if move in PROGRESS:
            weights[move] = weight
        elif random.random() < 0.6:
            weights[move] = max(1, round(weight * random.choice((0.5, 1, 1, 2, 4))))
    return msgspec.structs.replace(profile, weights=weights)
