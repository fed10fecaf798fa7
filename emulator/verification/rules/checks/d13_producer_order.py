"""D13 ProducerOrder: the batches of an idempotent producer lie in the log in the order of their sequence numbers."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.tables.columns import NONE
from laststand.emulator.verification.tables.matching import groups_of

_HALF_OF_ALL: Final = 2**30
"""The numbers wrap around after 2^31 - 1, so a fall by more than half of them is a rise."""


@partition_check(
    "D13",
    "ProducerOrder",
    source="KIP-98, Idempotent Producer Guarantees; Kafka's ProducerStateManager",
    premises={Premise.SETTLED_SEQUENCES},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    stored = facts.settled_batches
    stored = stored.only((stored["producer_id"] != NONE) & (stored["is_control"] == 0))
    stored.sort("base_offset")
    sequences = stored["base_sequence"]
    befores = np.full(len(stored), -1)
    for places in groups_of(stored["topic_id"], stored["producer_id"], stored["producer_epoch"]):
        befores[places[1:]] = sequences[places[:-1]]
    is_wrong = (sequences < befores) & (befores - sequences < _HALF_OF_ALL)
    for batch, before in zip(stored.rows(is_wrong), befores[is_wrong].tolist(), strict=True):
        yield Finding(
            batch.base_offset,
            f"{facts} offset {batch.base_offset}: sequence {batch.base_sequence} of producer {batch.producer_id} "
            f"epoch {batch.producer_epoch} comes after sequence {before}",
        )
