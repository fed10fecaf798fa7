"""M21 EffectiveMinISR: the controller uses min(min ISR, replication factor) of the partition (KIP-966).

Judged by the configuration that was in force when each state was committed.
"""

from collections.abc import Iterator

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check


@partition_check(
    "M21", "EffectiveMinISR", source="KIP-966, effective min ISR", needs={Evidence.EVENTS}, premises={Premise.COMMITTED}
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    configuration = facts.cluster.configuration
    for change in facts.changes:
        new = change.new
        configured = configuration.min_isr_of_controller(new.topic, at=new.metadata_offset)
        expected = min(configured, len(new.replicas))
        if new.effective_min_isr != expected:
            yield Finding(
                new.metadata_offset,
                f"{facts} at metadata offset {new.metadata_offset}: the controller goes by min ISR "
                f"{new.effective_min_isr}, with {configured} configured and {len(new.replicas)} replicas",
                by=change.reported_by,
            )
