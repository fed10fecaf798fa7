"""M3 ELRonlyUnderMin: eligible leader replicas exist only while the ISR is below the minimum (KIP-966)."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed


@partition_check("M3", "ELRonlyUnderMin", source="KIP-966, ELR invariants", premises={Premise.ELR})
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for change in facts.changes:
        state = change.new
        if len(state.isr) >= state.effective_min_isr and (state.elr or state.last_known_elr):
            yield Finding(
                state.metadata_offset,
                f"{facts} at metadata offset {state.metadata_offset}: ISR {listed(state.isr)} has the "
                f"{state.effective_min_isr} members required, yet ELR is {listed(state.elr)} and last-known ELR "
                f"{listed(state.last_known_elr)}",
                by=change.reported_by,
            )
