"""M14 OneController: a metadata offset has one record, whichever controller process reports it.

At offsets that a leader of the quorum lacked (Q3), there may be two records. Where metadata is in ZooKeeper, one server
records every write. There a write that raises a partition's leader epoch is a controller's decision, and must
come from the session that made ``/controller`` last.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.types import ChangeReason
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import Finding, Premise, cluster_check

_RECORDS: Final[tuple[type[events.Event], ...]] = (
    events.PartitionChanged,
    events.BrokerRegistered,
    events.BrokerFenced,
    events.BrokerUnfenced,
    events.TopicDeleted,
    events.ConfigChanged,
)
_LAST: Final = 1 << 63
"""Greater than any session."""

_CLEARED_ELR: Final = (ChangeReason.MIN_ISR_CHANGED, ChangeReason.FEATURES_CHANGED)
"""A cleared ELR is one record about many partitions."""


@cluster_check(
    "M14",
    "OneController",
    source="KIP-631; with ZooKeeper KAFKA-6082, writes that check the controller's epoch",
    premises={Premise.TWO_CONTROLLERS},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    yield from _offsets_of_two(cluster)
    yield from _decisions_of_the_replaced(cluster)


def _decisions_of_the_replaced(cluster: ClusterFacts) -> Iterator[Finding]:
    elected = cluster.controller_elections
    writers = {each.event.metadata_offset: each.event.session_id for each in cluster.events.of(events.ZnodeWritten)}
    leader_epochs: dict[tuple[str, int], int] = {}
    changes = sorted(
        (each.event for each in cluster.events.of(events.PartitionChanged)), key=lambda each: each.metadata_offset
    )
    for change in changes:
        key = (change.topic_id, change.partition)
        is_decision = leader_epochs.get(key) != change.leader_epoch
        leader_epochs[key] = change.leader_epoch
        at = change.metadata_offset
        place = bisect_right(elected, (at, _LAST)) - 1
        if is_decision and place >= 0 and at in writers and writers[at] != elected[place][1]:
            what = f"{change.topic}-{change.partition} in leader epoch {change.leader_epoch}"
            yield Finding(
                at, f"write {at} decided {what}, and session {elected[place][1]} was the controller's by then"
            )


def _offsets_of_two(cluster: ClusterFacts) -> Iterator[Finding]:
    controllers: dict[int, set[tuple[int, int]]] = {}
    by_offset: dict[int, set[str]] = {}
    for kind in _RECORDS:
        for collected in cluster.events.of(kind):
            record = _record(collected.event)
            if record is not None:
                metadata_offset, what = record
                controllers.setdefault(metadata_offset, set()).add((collected.node, collected.incarnation))
                by_offset.setdefault(metadata_offset, set()).add(what)
    for metadata_offset, records in by_offset.items():
        if (
            len(records) > 1
            and len(controllers[metadata_offset]) > 1
            and not cluster.quorum.is_forgotten(metadata_offset)
        ):
            yield Finding(
                metadata_offset, f"metadata offset {metadata_offset} stands for {' and for '.join(sorted(records))}"
            )


def _record(event: events.Event) -> tuple[int, str] | None:
    match event:
        case events.PartitionChanged() if event.reason not in _CLEARED_ELR:
            return event.metadata_offset, f"a change of {event.topic}-{event.partition}"
        case events.BrokerRegistered():
            return event.metadata_offset, f"a registration of broker {event.broker_id}"
        case events.BrokerFenced():
            return event.metadata_offset, f"the fencing of broker {event.broker_id}"
        case events.BrokerUnfenced():
            return event.metadata_offset, f"the unfencing of broker {event.broker_id}"
        case events.TopicDeleted():
            return event.metadata_offset, f"the end of topic {event.topic}"
        case events.ConfigChanged():
            return event.metadata_offset, f"another {event.name}"
        case _:
            return None
