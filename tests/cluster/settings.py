"""Properties of the clusters that tests start: how soon they miss a broker."""

from collections.abc import Mapping
from typing import Final

QUICK: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "250",
    "replica.lag.time.max.ms": "2000",
}
"""For tests that take a broker away, and wait until the cluster goes on without it."""

PATIENT: Final[Mapping[str, str]] = {"broker.session.timeout.ms": "30000"}
"""For tests in which no broker fails: on a machine that stalls for some seconds none is fenced, and no leader moves."""
