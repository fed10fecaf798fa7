"""D12 NoDuplicate: the log has a batch of an idempotent producer once; other batches at most as often as sent.

Positions that a group coordinator writes for transactions all have sequence number 0 (``CoordinatorPartitionWriter``).
"""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.client_history import tried
from laststand.emulator.verification.tables.columns import NONE, Table
from laststand.emulator.verification.tables.final_logs import FinalBatch
from laststand.emulator.verification.tables.matching import groups_of, keys_of


@partition_check(
    "D12",
    "NoDuplicate",
    source="KIP-98, Idempotent Producer Guarantees; Jepsen's Kafka workload, duplicate",
    needs={Evidence.HISTORY},
    premises={Premise.SETTLED_RECORDS},
    is_of_clients=True,
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    batches = facts.settled_batches
    is_idempotent = batches["producer_id"] != NONE
    own = batches.only(is_idempotent & (batches["is_control"] == 0) & (facts.topic != OFFSETS_TOPIC))
    for batch, offsets in _repeated(own, "topic_id", "producer_id", "producer_epoch", "base_sequence"):
        yield Finding(
            max(offsets),
            f"{facts}: producer {batch.producer_id} epoch {batch.producer_epoch} sequence {batch.base_sequence} is in "
            f"the log {len(offsets)} times, at offsets {', '.join(map(str, sorted(set(offsets))))}",
        )
    sends = tried(facts.sent)
    for batch, offsets in _repeated(batches.only(~is_idempotent), "topic_id", "crc", "record_count"):
        is_of_batch = (sends.crcs == batch.crc) & (sends.record_counts == batch.record_count)
        # Two sends may have the same bytes, if the client writes no ids into its records.
        attempts = sum(sent.attempts for sent in facts.sent.rows(sends.places[is_of_batch]))
        if is_of_batch.any() and len(offsets) > attempts:
            yield Finding(
                max(offsets),
                f"{facts}: the batch with CRC {batch.crc} is in the log {len(offsets)} times, and was sent "
                f"{attempts} times",
            )


def _repeated(batches: Table[FinalBatch], *names: str) -> Iterator[tuple[FinalBatch, list[int]]]:
    """Yields, for each group of batches that agree in these fields, one of them and the offsets of all."""
    [keys] = keys_of([batches[name] for name in names])
    ordered = np.sort(keys)
    repeated = np.flatnonzero(np.isin(keys, ordered[1:][ordered[1:] == ordered[:-1]]))
    for group in groups_of(keys[repeated]):
        places = repeated[group]
        [batch] = batches.rows(places[:1])
        yield batch, batches["base_offset"][places].tolist()
