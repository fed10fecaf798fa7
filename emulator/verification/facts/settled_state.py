"""The state of a run at the moment when its cluster had settled, once every fault was over.

The harness records that moment (``ClusterSettled``) when it has seen every broker unfenced, and every partition with a
leader and a full ISR, or with an excuse. Liveness checks find contradictions to that, and states that did not last.
"""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.core.types import NodeRole
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.partition import PartitionFacts


def settled_at(cluster: ClusterFacts) -> tuple[int, ...]:
    """Returns the end of the committed metadata (exclusive) at each moment at which the cluster had settled."""
    return tuple(settled.event.metadata_offset for settled in cluster.events.of(events.ClusterSettled))


def lasting_processes(cluster: ClusterFacts, *, at: int) -> Iterator[tuple[int, int]]:
    """Yields the last process of each broker, if it was registered before ``at`` and stopped in order."""
    for started in cluster.events.of(events.NodeStarted):
        process = (started.node, started.incarnation)
        is_last = cluster.last_incarnation[started.node] == started.incarnation and process not in cluster.killed
        if started.event.role is NodeRole.BROKER and is_last and cluster.registered_at.get(process, at) < at:
            yield process


def settled_states(facts: PartitionFacts) -> Iterator[events.PartitionChanged]:
    """Yields the committed states of a partition when the cluster had settled, but for deleted topics."""
    for at in settled_at(facts.cluster):
        states = {change.new.topic_id: change.new for change in facts.changes if change.new.metadata_offset < at}
        for topic_id, state in states.items():
            if facts.cluster.deleted_topics.get(topic_id, at) >= at:
                yield state
