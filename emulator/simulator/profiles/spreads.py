"""Times and limits that schedules draw, so that no rule depends on the order of two of them unnoticed.

With one fixed set of times, a leader would always remove a slow member from the ISR before it is fenced, or never. A
spread has a range for each property, and the ranges overlap: of any two times, each is the shorter one in some
schedule. Only the heartbeat interval is always shorter than the session timeout: otherwise no broker would stay
unfenced.

The heartbeat interval also determines how soon an unregistered broker tries to register again.
"""

from collections.abc import Mapping
from math import exp, log
from random import Random
from types import MappingProxyType
from typing import Final

import msgspec

SESSION: Final = "broker.session.timeout.ms"
HEARTBEAT: Final = "broker.heartbeat.interval.ms"

_HEARTBEAT_MIN_MS: Final = 30
_SESSION_PERCENT_MAX: Final = 70
"""The longest heartbeat interval, as part of the session: a broker whose clock is right is never late."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of every node that are drawn together.

    Attributes:
        ranges: by Kafka's name, the lowest and the highest value; the logarithm is distributed evenly.
        share: fraction of a profile's schedules that draw from the spread; the others keep the defaults.
    """

    ranges: Mapping[str, tuple[int, int]]
    share: float = 1.0

    def draw(self, random: Random) -> dict[str, int]:
        """Returns a value for each property; none where the schedule does not draw from this spread."""
        if random.random() >= self.share:
            return {}
        drawn = {name: round(exp(random.uniform(log(least), log(most)))) for name, (least, most) in self.ranges.items()}
        if SESSION in drawn:
            drawn[HEARTBEAT] = random.randint(_HEARTBEAT_MIN_MS, drawn[SESSION] * _SESSION_PERCENT_MAX // 100)
        return drawn


TIMES: Final = Spread(
    ranges=MappingProxyType(
        {
            SESSION: (150, 2_000),
            "replica.lag.time.max.ms": (80, 2_000),
            "replica.fetch.wait.max.ms": (10, 1_200),
            "replica.fetch.backoff.ms": (10, 1_200),
            "alter.partition.retry.backoff.ms": (10, 1_200),
            "unclean.recovery.retry.backoff.ms": (10, 1_200),
            "unclean.recovery.timeout.ms": (100, 2_000),
            "leader.imbalance.check.interval.seconds": (1, 5),
            "unclean.leader.election.interval.ms": (300, 3_000),
        }
    )
)
"""Sessions and heartbeats, lag, waits, retries, and the searches for leaderships that may move."""

ZOOKEEPER_TIMES: Final = Spread(
    ranges=MappingProxyType(
        {
            SESSION: (200, 1_500),
            "replica.lag.time.max.ms": (100, 1_500),
            "replica.fetch.wait.max.ms": (20, 1_200),
            "replica.fetch.backoff.ms": (20, 400),
            "leader.imbalance.check.interval.seconds": (1, 5),
        }
    ),
    share=0.5,
)
"""The times of clusters with ZooKeeper, whose properties are fewer."""

LIMITS: Final = Spread(
    ranges=MappingProxyType(
        {
            "replica.fetch.max.bytes": (60, 400),
            "replica.fetch.response.max.bytes": (60, 600),
            "log.segment.bytes": (1_024, 2_048),
        }
    ),
    share=0.5,
)
"""A fetch brings one batch or a few, and a log rolls every few batches, too."""

SEGMENTS: Final = Spread(
    ranges=MappingProxyType(
        {
            "log.segment.bytes": (1_024, 1_536),
            "log.retention.bytes": (1, 6_000),
            "log.retention.check.interval.ms": (100, 4_000),
        }
    )
)
"""A log rolls every few batches, and its oldest segments go soon or late."""

SPREADS: Final[Mapping[str, Spread]] = MappingProxyType(
    {"times": TIMES, "zookeeper-times": ZOOKEEPER_TIMES, "limits": LIMITS, "segments": SEGMENTS}
)
"""The spreads, by the name that profiles use."""


def draw_properties(spreads: tuple[str, ...], random: Random) -> dict[str, str]:
    """Returns the properties that a schedule draws; none if the schedule does not draw from this spread."""
    drawn: dict[str, str] = {}
    for name in spreads:
        drawn |= {key: str(value) for key, value in SPREADS[name].draw(random).items()}
    return drawn
