"""M1 Members: the ISR contains replicas only, has no member in common with the ELR, and includes the leader."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import broker, listed


@partition_check(
    "M1", "Members", source="KIP-966, ELR invariants; Kafka's PartitionChangeBuilder", premises={Premise.COMMITTED}
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for change in facts.changes:
        state = change.new
        problem = _problem(state)
        if problem is not None:
            yield Finding(
                state.metadata_offset,
                f"{facts} at metadata offset {state.metadata_offset}: leader {broker(state.leader)}, replicas "
                f"{listed(state.replicas)}, ISR {listed(state.isr)}, ELR {listed(state.elr)}: {problem}",
            )


def _problem(state: events.PartitionChanged) -> str | None:
    if set(state.isr) - set(state.replicas):
        return "the ISR has members that are no replicas"
    if set(state.isr) & set(state.elr):
        return "ISR and ELR overlap"
    if state.leader is not None and state.leader not in state.isr:
        return "the leader is not in the ISR"
    return None
