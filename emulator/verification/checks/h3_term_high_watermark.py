"""H3 TermHW: within a leader's term the high watermark only rises."""

from collections.abc import Iterator

from emulator.core.events import HighWatermarkAdvanced
from emulator.verification.check import Finding, PartitionCheck, Premise
from emulator.verification.partition_facts import PartitionFacts


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    highest: dict[tuple[str, int, int, int], int] = {}
    for advanced in facts.events.of(HighWatermarkAdvanced):
        event = advanced.event
        term = (event.topic_id, advanced.node, advanced.incarnation, event.leader_epoch)
        before = highest.get(term, -1)
        if event.new <= event.old:
            problem = f"moved its high watermark from {event.old} back to {event.new}"
        elif event.old < before:
            problem = f"had its high watermark at {before} and continued from {event.old}"
        else:
            problem = None
        if problem is not None:
            yield Finding(event.new, f"{facts}: broker {advanced.node} in epoch {event.leader_epoch} {problem}")
        highest[term] = max(before, event.new)


CHECK = PartitionCheck(check_id="H3", name="TermHW", premises=frozenset({Premise.HIGH_WATERMARK_MOVED}), find=_find)
