"""R2 MarkersFirst: a coordinator completes a transaction only once each of its partitions has the marker.

Several markers of one producer id and epoch cannot be told apart (transaction version 1), so they are counted: for each
completed transaction, each of its partitions must have one more marker.
"""

from collections import Counter
from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.coordinators import COMPLETING, terms
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.transactions import Marker
from laststand.emulator.verification.rules.check import Evidence, Finding, PartitionCheck, Premise


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    decided = {
        (each.event.offset, each.event.transactional_id, (each.event.producer_id, each.event.producer_epoch)): each
        for each in facts.events.of(events.TransitionBegun)
    }
    completed: Counter[tuple[str, Marker]] = Counter()
    for term in terms(facts):
        sent: events.MarkersSent | None = None
        is_completed = False
        for step in term.steps:
            match step.event:
                case events.MarkersSent() as event:
                    sent, is_completed = event, False
                case events.TransitionBegun() as begun if begun.new in COMPLETING and sent is None:
                    yield Finding(
                        begun.offset,
                        f"{facts} offset {begun.offset}: {term} goes to {begun.new}, and had no markers written",
                    )
                case events.TransitionBegun() as begun if begun.new in COMPLETING and sent is not None:
                    if is_completed:
                        continue
                    is_completed = True
                    marker = (sent.producer_id, sent.producer_epoch)
                    decision = decided.get((sent.decided_at, sent.transactional_id, marker))
                    partitions = {*sent.partitions, *(decision.event.partitions if decision is not None else ())}
                    for partition in sorted(partitions):
                        completed[partition, marker] += 1
                        count = facts.cluster.transactions.markers.appended[partition, marker]
                        if count < completed[partition, marker] and not _is_deleted(facts, partition):
                            yield Finding(
                                begun.offset,
                                f"{facts} offset {begun.offset}: {term} goes to {begun.new}, and {partition} has "
                                f"{count} of the {completed[partition, marker]} markers of producer {marker[0]} in "
                                f"epoch {marker[1]} that this takes",
                            )
                case _:
                    pass


def _is_deleted(facts: PartitionFacts, partition: str) -> bool:
    topic = partition.rpartition("-")[0]
    return any(deleted.event.topic == topic for deleted in facts.cluster.events.of(events.TopicDeleted))


CHECK = PartitionCheck(
    check_id="R2",
    name="MarkersFirst",
    source="KIP-98, Transaction Coordinator; Kafka's TransactionMarkerChannelManager",
    needs=frozenset({Evidence.EVENTS}),
    premises=frozenset({Premise.MARKERS_SENT}),
    find=_find,
)
