"""R9 CommittedPosition: a coordinator returns a group's position only once it is committed."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.coordinators import OwnHighWatermarks
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check


@partition_check(
    "R9",
    "CommittedPosition",
    source="KIP-447; Kafka's OffsetMetadataManager.fetchOffsets and CoordinatorRuntime",
    needs={Evidence.EVENTS},
    premises={Premise.POSITION_RETURNED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    returned = facts.events.of(events.PositionReturned)
    if not returned:
        return
    high_watermarks = OwnHighWatermarks(facts)
    for each in returned:
        committed, event = high_watermarks.before(each), each.event
        if committed is not None and committed <= event.counts_from:
            yield Finding(
                event.counts_from,
                f"{facts} offset {event.counts_from}: broker {each.node} returned the position {event.position} of "
                f"{event.group_id} in {event.source}, which counts from there, when its high watermark was {committed}",
            )
