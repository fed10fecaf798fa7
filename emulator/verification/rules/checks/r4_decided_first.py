"""R4 DecidedFirst: a coordinator has markers written only of a decision that is committed."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.coordinators import OwnHighWatermarks
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.timeline import ProcessName


@partition_check(
    "R4",
    "DecidedFirst",
    source="KIP-98, Transaction Coordinator; docs/failures.md, T07",
    needs={Evidence.EVENTS},
    premises={Premise.MARKERS_SENT},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    sent = facts.events.of(events.MarkersSent)
    if not sent:
        return
    high_watermarks = OwnHighWatermarks(facts)
    for each in sent:
        committed, event = high_watermarks.before(each), each.event
        if committed is not None and committed <= event.decided_at:
            yield Finding(
                event.decided_at,
                f"{facts} offset {event.decided_at}: broker {each.node} sent the markers of "
                f"{event.transactional_id} ({event.result}) when its high watermark was {committed}",
                by=ProcessName(each.node, each.incarnation),
            )
