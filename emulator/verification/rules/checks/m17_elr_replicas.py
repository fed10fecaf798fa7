"""M17 ELRReplicas: no replica that was reassigned away stays in an ELR (KIP-966)."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed


@partition_check("M17", "ELRReplicas", source="KIP-966, Other behaviors", premises={Premise.ELR})
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for change in facts.changes:
        state = change.new
        if set(state.elr) - set(state.replicas):
            yield Finding(
                state.metadata_offset,
                f"{facts} at metadata offset {state.metadata_offset}: ELR {listed(state.elr)} has members that are "
                f"not among the replicas {listed(state.replicas)}",
                by=change.reported_by,
            )
