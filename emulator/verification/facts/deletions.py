"""Finds the records that may be gone: deleted for an administrator, or by retention.

How far a log start rose is recorded by the judged cluster. How far it was allowed to rise is recorded by the harness
(the deletions of its steps) and, for orders of Kafka clients, by the broker that relayed them. Both name a partition
without a topic id, so a deletion also counts for a topic that is created again under the name. Where retention may
delete records, the cluster's own record is trusted: only the node's clock decided which segments were too old.
"""

from collections.abc import Iterator
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.verification.facts.cluster import ClusterFacts

_TIME_LIMITS: Final = ("retention.ms", "log.retention.ms")
_SIZE_LIMITS: Final = ("retention.bytes", "log.retention.bytes")
_UNLIMITED: Final = -1
_DAY_MS: Final = 24 * 3600 * 1000
_NS_PER_MS: Final = 1_000_000


def wanted_log_start(cluster: ClusterFacts, partition: str) -> int | None:
    """Returns the offset below which records of a partition may be gone; ``None`` if all committed records may be."""
    steps = (step.event.deletions for step in cluster.events.of(events.StepReached))
    orders = (order.event.deletions for order in cluster.events.of(events.OrderRelayed))
    asked = [
        deletion.offset for deletions in (*steps, *orders) for deletion in deletions if deletion.partition == partition
    ]
    if None in asked or may_expire(cluster):
        return None
    return max((offset for offset in asked if offset is not None), default=0)


def may_expire(cluster: ClusterFacts) -> bool:
    """Returns whether any topic may have had records that were too old or too many."""
    if cluster.has_changed_clocks:
        return True
    oldest_ms = _oldest_ms(cluster)
    for name, value in _configured(cluster):
        limit = int(value) if name in (*_TIME_LIMITS, *_SIZE_LIMITS) else _UNLIMITED
        if limit != _UNLIMITED and (name in _SIZE_LIMITS or limit <= oldest_ms):
            return True
    return False


def _oldest_ms(cluster: ClusterFacts) -> int:
    """Returns the greatest age of a record: the run's duration, but at least a day, because clients set timestamps."""
    times = [
        ended.time_ns - started.time_ns
        for ended in cluster.events.of(events.RunEnded)
        if (started := cluster.started.get((ended.node, ended.incarnation))) is not None
    ]
    return max(_DAY_MS, max(times, default=0) // _NS_PER_MS)


def _configured(cluster: ClusterFacts) -> Iterator[tuple[str, str]]:
    for started in cluster.events.of(events.NodeStarted):
        yield from started.event.properties.items()
    for changed in cluster.events.of(events.ConfigChanged):
        if changed.event.value is not None:
            yield changed.event.name, changed.event.value
