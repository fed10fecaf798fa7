"""H2 HWGate: a high watermark moves only while the committed ISR has at least min ISR members (KIP-966)."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed
from laststand.emulator.verification.tables.matching import groups_of
from laststand.emulator.verification.tables.timeline import ProcessName


@partition_check(
    "H2",
    "HWGate",
    source="KIP-966, Additional High Watermark advancement requirement",
    premises={Premise.HIGH_WATERMARK_MOVED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    committed = {(c.new.topic_id, c.new.leader_epoch, frozenset(c.new.isr)) for c in facts.changes}
    moves = facts.events.rows(events.HighWatermarkAdvanced)
    for places in groups_of(moves["topic_id"], moves["leader_epoch"], moves["committed_isr"]):
        [first] = moves.rows(places[:1])
        isr, required = first.event.committed_isr, facts.required_isr.get(first.event.topic_id)
        if required is None:
            continue
        if len(isr) < required:
            problem = f"fewer than the {required} required"
        elif (first.event.topic_id, first.event.leader_epoch, frozenset(isr)) not in committed:
            problem = "which the controller never committed in that epoch"
        else:
            continue
        for advanced in moves.rows(places):
            event = advanced.event
            yield Finding(
                event.new,
                f"{facts}: broker {advanced.node} moved its high watermark from {event.old} to {event.new} in epoch "
                f"{event.leader_epoch} with ISR {listed(isr)}, {problem}",
                by=ProcessName(advanced.node, advanced.incarnation),
            )
