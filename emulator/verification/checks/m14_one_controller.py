"""M14 OneController: a metadata offset stands for one record, whichever controller process reports it."""

from collections.abc import Iterator
from typing import Final

from emulator.core.events import (
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    ConfigChanged,
    Event,
    PartitionChanged,
    TopicDeleted,
)
from emulator.core.types import ChangeReason
from emulator.verification.check import ClusterCheck, Finding, Premise
from emulator.verification.cluster_facts import ClusterFacts

_RECORDS: Final[tuple[type[Event], ...]] = (
    PartitionChanged,
    BrokerRegistered,
    BrokerFenced,
    BrokerUnfenced,
    TopicDeleted,
    ConfigChanged,
)
_CLEARED_ELR: Final = (ChangeReason.MIN_ISR_CHANGED, ChangeReason.FEATURES_CHANGED)
"""A cleared ELR is one record about many partitions."""


def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    controllers: dict[int, set[tuple[int, int]]] = {}
    told: dict[int, set[str]] = {}
    for kind in _RECORDS:
        for collected in cluster.events.of(kind):
            record = _record(collected.event)
            if record is not None:
                metadata_offset, what = record
                controllers.setdefault(metadata_offset, set()).add((collected.node, collected.incarnation))
                told.setdefault(metadata_offset, set()).add(what)
    for metadata_offset, records in told.items():
        if len(records) > 1 and len(controllers[metadata_offset]) > 1:
            yield Finding(
                metadata_offset, f"metadata offset {metadata_offset} stands for {' and for '.join(sorted(records))}"
            )


def _record(event: Event) -> tuple[int, str] | None:
    match event:
        case PartitionChanged() if event.reason not in _CLEARED_ELR:
            return event.metadata_offset, f"a change of {event.topic}-{event.partition}"
        case BrokerRegistered():
            return event.metadata_offset, f"a registration of broker {event.broker_id}"
        case BrokerFenced():
            return event.metadata_offset, f"the fencing of broker {event.broker_id}"
        case BrokerUnfenced():
            return event.metadata_offset, f"the unfencing of broker {event.broker_id}"
        case TopicDeleted():
            return event.metadata_offset, f"the end of topic {event.topic}"
        case ConfigChanged():
            return event.metadata_offset, f"another {event.name}"
        case _:
            return None


CHECK = ClusterCheck(check_id="M14", name="OneController", premises=frozenset({Premise.TWO_CONTROLLERS}), find=_find)
