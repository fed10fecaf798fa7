"""M2 Active: no fenced or leaving broker is in an ISR (KIP-841, KIP-966).

Where a reassignment may be cancelled with no replica in sync, even a fenced replica is put into the ISR (S39). While
the feature of ELR is off, the last member stays in the ISR though it is fenced; members of that time are excepted.
"""

from collections.abc import Iterator

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed


@partition_check(
    "M2", "Active", source="KIP-841; KIP-966, ISR invariants", needs={Evidence.EVENTS}, premises={Premise.COMMITTED}
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    excepted: set[tuple[str, int]] = set()
    for change in facts.changes:
        state = change.new
        if not change.has_elr:
            excepted.update((state.topic_id, member) for member in state.isr)
            continue
        for member in state.isr:
            if (state.topic_id, member) in excepted or facts.cluster.is_active(member, state.metadata_offset):
                continue
            yield Finding(
                state.metadata_offset,
                f"{facts} at metadata offset {state.metadata_offset}: ISR {listed(state.isr)} has broker {member}, "
                "which is not active",
                by=change.reported_by,
            )
