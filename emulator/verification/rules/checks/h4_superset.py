"""H4 Superset: a leader's maximal ISR contains every replica that the controller may elect (KIP-497).

Judged at each move of a high watermark by the maximal ISR of the leader, which must contain the ISR that it knew as
committed, and each ISR that it proposed and the controller committed. Such a proposal counts until the leader knows its
outcome, even if the answer was a refusal (S45). Of equal proposals the last one counts: earlier ones may never have
been sent. The ELR is empty then, by M3.
"""

from collections.abc import Iterable, Iterator, Mapping

from laststand.emulator.core import events
from laststand.emulator.core.types import ChangeReason, IsrAnswer
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.partition_evidence import Change
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed
from laststand.emulator.verification.tables.matching import groups_of
from laststand.emulator.verification.tables.timeline import CollectedEvent

_Term = tuple[int, int, str, int]
"""Node, incarnation, topic id and leader epoch."""

_CarriedOut = tuple[CollectedEvent[events.AlterPartitionProposed], Change]
"""A proposal, and the change that the controller committed for it."""


@partition_check(
    "H4",
    "Superset",
    source="KIP-497; KIP-966, ELR invariants; Kafka's PartitionState.maximalIsr",
    needs={Evidence.EVENTS},
    premises={Premise.HIGH_WATERMARK_MOVED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    carried_out = _carried_out(facts)
    moves = facts.events.rows(events.HighWatermarkAdvanced)
    term_columns = (moves["node"], moves["incarnation"], moves["topic_id"], moves["leader_epoch"])
    for places in groups_of(*term_columns, moves["committed_isr"], moves["maximal_isr"], moves["effective_min_isr"]):
        [first] = moves.rows(places[:1])
        if len(first.event.committed_isr) < first.event.effective_min_isr:
            continue
        term = (first.node, first.incarnation, first.event.topic_id, first.event.leader_epoch)
        maximal_isr = set(first.event.maximal_isr)
        proposals = [each for each in carried_out.get(term, ()) if set(each[1].new.isr) - maximal_isr]
        if set(first.event.committed_isr) <= maximal_isr and not proposals:
            continue
        for advanced in moves.rows(places):
            yield from _missing(facts, advanced, proposals)


def _missing(
    facts: PartitionFacts, advanced: CollectedEvent[events.HighWatermarkAdvanced], proposals: Iterable[_CarriedOut]
) -> Iterator[Finding]:
    event = advanced.event
    expected = set(event.committed_isr)
    for proposed, change in proposals:
        if proposed.sequence < advanced.sequence and not _is_known(facts, proposed, change, advanced):
            expected.update(change.new.isr)
    missing = sorted(expected - set(event.maximal_isr))
    if missing:
        yield Finding(
            event.new,
            f"{facts}: broker {advanced.node} in epoch {event.leader_epoch} moved its high watermark to {event.new} by "
            f"maximal ISR {listed(event.maximal_isr)}, though the controller might elect {listed(missing)}",
        )


def _carried_out(facts: PartitionFacts) -> Mapping[_Term, Iterable[_CarriedOut]]:
    """Returns the proposals that the controller committed, by the leader's term, each with the committed change."""
    changes: dict[tuple[str, int, int], Change] = {
        (change.new.topic_id, change.new.leader_epoch, change.new.partition_epoch): change
        for change in facts.changes
        if change.new.reason is ChangeReason.ALTER_PARTITION
    }
    found: dict[_Term, dict[int, _CarriedOut]] = {}
    for proposed in facts.events.of(events.AlterPartitionProposed):
        event = proposed.event
        change = changes.get((event.topic_id, event.leader_epoch, event.partition_epoch + 1))
        if change is not None and set(change.new.isr) == set(event.proposed_isr):
            term = (proposed.node, proposed.incarnation, event.topic_id, event.leader_epoch)
            found.setdefault(term, {})[change.new.partition_epoch] = (proposed, change)
    return {term: by_epoch.values() for term, by_epoch in found.items()}


def _is_known(
    facts: PartitionFacts,
    proposed: CollectedEvent[events.AlterPartitionProposed],
    change: Change,
    advanced: CollectedEvent[events.HighWatermarkAdvanced],
) -> bool:
    """Returns whether a leader knew of a change, from metadata or an answer, when it moved its high watermark."""
    applied = facts.cluster.applied_before(advanced.node, advanced.incarnation, advanced.sequence)
    if applied is not None and applied > change.new.metadata_offset:
        return True
    # A leader that receives an answer moves its high watermark first, and records the answer afterwards.
    return set(advanced.event.committed_isr) == set(change.new.isr) or any(
        answer.event.outcome is IsrAnswer.COMMITTED and answer.event.partition_epoch >= change.new.partition_epoch
        for answer in facts.events.of(events.AlterPartitionAnswered)
        if (answer.node, answer.incarnation) == (advanced.node, advanced.incarnation)
        and answer.event.topic_id == change.new.topic_id
        and proposed.sequence < answer.sequence < advanced.sequence
    )
