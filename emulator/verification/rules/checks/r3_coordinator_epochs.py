"""R3 CoordinatorEpochs: in a log the coordinator epochs of a producer id's markers do not fall."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.rules.falls import falls
from laststand.emulator.verification.tables.columns import NONE


@partition_check(
    "R3",
    "CoordinatorEpochs",
    source="KIP-98, Transaction Coordinator; Kafka's ProducerAppendInfo.appendEndTxnMarker",
    premises={Premise.SETTLED_MARKERS},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    stored = facts.settled_batches
    markers = stored.only(stored["coordinator_epoch"] != NONE)
    for batch, before in falls(markers, "coordinator_epoch"):
        yield Finding(
            batch.base_offset,
            f"{facts} offset {batch.base_offset}: the marker of producer {batch.producer_id} has coordinator epoch "
            f"{batch.coordinator_epoch}, and one before it {before}",
        )
