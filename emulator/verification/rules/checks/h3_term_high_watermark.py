"""H3 TermHW: within a leader's term the high watermark only rises."""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.matching import groups_of


@partition_check(
    "H3",
    "TermHW",
    source="Kafka's Partition.maybeIncrementLeaderHW",
    needs={Evidence.TOPIC_IDS},
    premises={Premise.HIGH_WATERMARK_MOVED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    moves = facts.events.rows(events.HighWatermarkAdvanced)
    old, new = moves["old"], moves["new"]
    highest = np.full(len(moves), -1)
    for places in groups_of(moves["topic_id"], moves["node"], moves["incarnation"], moves["leader_epoch"]):
        highest[places[1:]] = np.maximum(np.maximum.accumulate(new[places[:-1]]), -1)
    is_wrong = (new <= old) | (old < highest)
    for advanced, before in zip(moves.rows(is_wrong), highest[is_wrong].tolist(), strict=True):
        event = advanced.event
        if event.new <= event.old:
            problem = f"moved its high watermark from {event.old} back to {event.new}"
        else:
            problem = f"had its high watermark at {before} and continued from {event.old}"
        yield Finding(event.new, f"{facts}: broker {advanced.node} in epoch {event.leader_epoch} {problem}")
