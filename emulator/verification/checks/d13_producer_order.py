"""D13 ProducerOrder: the batches of an idempotent producer lie in the log in the order of their sequence numbers."""

from collections.abc import Iterator
from typing import Final

from emulator.verification.check import Finding, PartitionCheck, Premise
from emulator.verification.partition_facts import PartitionFacts

_HALF_OF_ALL: Final = 2**30
"""The numbers wrap around after 2^31 - 1, so a fall by more than half of them is a rise."""


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    last: dict[tuple[str | None, int, int], int] = {}
    for batch in sorted(facts.settled_batches, key=lambda batch: batch.base_offset):
        if batch.producer_id is None or batch.is_control:
            continue
        key = (batch.topic_id, batch.producer_id, batch.producer_epoch)
        before = last.get(key, -1)
        if batch.base_sequence < before and before - batch.base_sequence < _HALF_OF_ALL:
            yield Finding(
                batch.base_offset,
                f"{facts} offset {batch.base_offset}: sequence {batch.base_sequence} of producer {batch.producer_id} "
                f"epoch {batch.producer_epoch} comes after sequence {before}",
            )
        last[key] = batch.base_sequence


CHECK = PartitionCheck(
    check_id="D13", name="ProducerOrder", premises=frozenset({Premise.SETTLED_SEQUENCES}), find=_find
)
