"""D12 NoDuplicate: an idempotent batch is in the log once; another one at most as often as it was sent."""

from collections.abc import Iterator

from emulator.verification.check import Evidence, Finding, PartitionCheck, Premise
from emulator.verification.partition_facts import PartitionFacts


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    idempotent: dict[tuple[str | None, int, int, int], list[int]] = {}
    others: dict[tuple[str | None, int, int], list[int]] = {}
    for batch in facts.settled_batches:
        if batch.producer_id is None:
            others.setdefault((batch.topic_id, batch.crc, batch.record_count), []).append(batch.base_offset)
        elif not batch.is_control:
            key = (batch.topic_id, batch.producer_id, batch.producer_epoch, batch.base_sequence)
            idempotent.setdefault(key, []).append(batch.base_offset)
    for (_, producer_id, producer_epoch, base_sequence), offsets in idempotent.items():
        if len(offsets) > 1:
            yield Finding(
                max(offsets),
                f"{facts}: producer {producer_id} epoch {producer_epoch} sequence {base_sequence} is in the log "
                f"{len(offsets)} times, at offsets {', '.join(map(str, sorted(set(offsets))))}",
            )
    for (_, crc, record_count), offsets in others.items():
        if len(offsets) < 2:
            continue
        for sent in facts.sent:
            if crc in sent.crcs and sent.record_count == record_count and len(offsets) > sent.attempts:
                yield Finding(
                    max(offsets),
                    f"{facts}: the batch with CRC {crc} is in the log {len(offsets)} times, and was sent "
                    f"{sent.attempts} times",
                )


CHECK = PartitionCheck(
    check_id="D12",
    name="NoDuplicate",
    needs=frozenset({Evidence.HISTORY}),
    premises=frozenset({Premise.SETTLED_RECORDS}),
    find=_find,
)
