"""Times and limits that schedules draw, so that no rule hides behind the order of two of them.

With one set of times a leader always drops a slow member before it is fenced, or never does. A spread has a range for
each property, and the ranges overlap: whichever of two times is shorter, some schedule has it so. Only a heartbeat is
always more frequent than sessions end, without which nobody stays unfenced.
"""

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Final, TypeAlias

Spread: TypeAlias = Mapping[str, tuple[int, int]]
"""Properties of every node by Kafka's name, each with its least and its largest value."""

TIMES: Final[Spread] = MappingProxyType(
    {
        "broker.session.timeout.ms": (200, 1_500),
        "broker.heartbeat.interval.ms": (40, 180),
        "replica.lag.time.max.ms": (100, 1_500),
        "replica.fetch.wait.max.ms": (20, 1_200),
        "replica.fetch.backoff.ms": (20, 400),
        "leader.imbalance.check.interval.seconds": (1, 5),
    }
)
"""Sessions, lag, heartbeats, waits, retries and the search for preferred leaders."""

LIMITS: Final[Spread] = MappingProxyType(
    {
        "replica.fetch.max.bytes": (60, 400),
        "replica.fetch.response.max.bytes": (60, 600),
        "log.segment.bytes": (1_024, 2_048),
    }
)
"""A fetch brings one batch or a few, and a log rolls every few batches."""

SPREADS: Final[Mapping[str, Spread]] = MappingProxyType({"times": TIMES, "limits": LIMITS})
"""By the name that profiles use."""

_DRAWN: Final = 0.5
"""How many of the schedules of a profile draw from a spread; the others have what is usual."""


def draw_properties(spreads: tuple[str, ...], random: Random) -> dict[str, str]:
    """Returns the properties that a schedule draws; none of a spread that it does not draw from."""
    drawn: dict[str, str] = {}
    for name in spreads:
        if random.random() < _DRAWN:
            drawn |= {key: str(random.randint(*ends)) for key, ends in SPREADS[name].items()}
    return drawn
