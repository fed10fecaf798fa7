"""R2 MarkersFirst: a coordinator completes a transaction only once each of its partitions has the marker.

Several markers of one producer id and epoch cannot be distinguished (transaction version 1), so they are counted: for
each completed transaction, each of its partitions must have one more marker.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from laststand.emulator.core import events
from laststand.emulator.verification.facts.coordinators import COMPLETING, DECIDING, Term, terms
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.transactions import Marker
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check


class _Completion(NamedTuple):
    """A term's transition to a completed state; ``sent`` is ``None`` if the term had no markers written before."""

    term: Term
    begun: events.TransitionBegun
    sent: events.MarkersSent | None


@partition_check(
    "R2",
    "MarkersFirst",
    source="KIP-98, Transaction Coordinator; Kafka's TransactionMarkerChannelManager",
    needs={Evidence.EVENTS},
    premises={Premise.MARKERS_SENT},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    decided = _decisions(facts)
    needed: Counter[tuple[str, Marker]] = Counter()
    for term, begun, sent in _completions(facts):
        problem = f"{facts} offset {begun.offset}: {term} goes to {begun.new}, and"
        if sent is None:
            yield Finding(begun.offset, f"{problem} had no markers written")
            continue
        marker = (sent.producer_id, sent.producer_epoch)
        decisions = decided.get((sent.decided_at, sent.transactional_id, marker), set())
        decision = next(iter(decisions)) if len(decisions) == 1 else ()
        for partition in sorted({*sent.partitions, *decision}):
            needed[partition, marker] += 1
            count = facts.cluster.transactions.markers.appended[partition, marker]
            if count < needed[partition, marker] and not _is_deleted(facts, partition):
                yield Finding(
                    begun.offset,
                    f"{problem} {partition} has {count} of the {needed[partition, marker]} markers of producer "
                    f"{marker[0]} in epoch {marker[1]} that this takes",
                )


def _completions(facts: PartitionFacts) -> Iterator[_Completion]:
    """Yields the completions of transactions; a repeated one with the same markers comes once."""
    for term in terms(facts):
        sent: events.MarkersSent | None = None
        is_completed = False
        for step in term.steps:
            match step.event:
                case events.MarkersSent() as event:
                    sent, is_completed = event, False
                case events.TransitionBegun() as begun if begun.new in COMPLETING and not is_completed:
                    is_completed = sent is not None
                    yield _Completion(term, begun, sent)
                case _:
                    pass


def _decisions(facts: PartitionFacts) -> dict[tuple[int, str, Marker], set[tuple[str, ...]]]:
    """Returns the partitions of each decision, by offset, transactional id and marker.

    Another decision may take the offset of one that an unclean election lost: then there are several, and the events do
    not say which of them a later coordinator has read.
    """
    decisions: dict[tuple[int, str, Marker], set[tuple[str, ...]]] = defaultdict(set)
    for each in facts.events.of(events.TransitionBegun):
        begun = each.event
        if begun.new in DECIDING:
            key = (begun.offset, begun.transactional_id, (begun.producer_id, begun.producer_epoch))
            decisions[key].add(begun.partitions)
    return decisions


def _is_deleted(facts: PartitionFacts, partition: str) -> bool:
    topic = partition.rpartition("-")[0]
    return any(deleted.event.topic == topic for deleted in facts.cluster.events.of(events.TopicDeleted))
