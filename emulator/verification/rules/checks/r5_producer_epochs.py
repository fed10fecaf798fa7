"""R5 ProducerEpochs: in a log the epoch of a producer id does not fall."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.rules.falls import falls
from laststand.emulator.verification.tables.columns import NONE


@partition_check(
    "R5",
    "ProducerEpochs",
    source="KIP-98, Fencing Zombie Producers; Kafka's ProducerAppendInfo",
    premises={Premise.SETTLED_SEQUENCES},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    stored = facts.settled_batches
    for batch, before in falls(stored.only(stored["producer_id"] != NONE), "producer_epoch"):
        yield Finding(
            batch.base_offset,
            f"{facts} offset {batch.base_offset}: producer {batch.producer_id} has epoch {batch.producer_epoch} there, "
            f"and {before} before it",
        )
