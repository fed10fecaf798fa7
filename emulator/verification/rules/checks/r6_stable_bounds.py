"""R6 StableBounds: readers of committed records are held between the log start and the high watermark.

If a log start lies within a batch, Kafka looks up the batch, and so the bound is the batch's base offset. Kafka's
fetches read high watermark and last stable offset one after the other, without a lock, so Kafka's nodes are not
checked.
"""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check


@partition_check(
    "R6",
    "StableBounds",
    source="KIP-98, Consumer; Kafka's UnifiedLog.lastStableOffset",
    needs={Evidence.HISTORY},
    premises={Premise.READ_COMMITTED, Premise.OWN_WORD},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for read in facts.cluster.transactions.reads:
        if f"{read.topic}-{read.partition}" != str(facts) or read.last_stable_offset is None:
            continue
        held = f"{read.process} was told by broker {read.node} that {facts} is stable up to {read.last_stable_offset}"
        if read.high_watermark is not None and read.last_stable_offset > read.high_watermark:
            yield Finding(read.last_stable_offset, f"{held}, and that its high watermark is {read.high_watermark}")
        start = read.log_start_offset
        if start is None or read.last_stable_offset >= start:
            continue
        if read.last_stable_offset < (_base_of(facts, start) or 0):
            yield Finding(read.last_stable_offset, f"{held}, and that it starts at {start}")


def _base_of(facts: PartitionFacts, offset: int) -> int | None:
    """Returns the least base offset of the appended batches that contain an offset; ``None`` if there are none."""
    batches = facts.events.rows(events.BatchAppended)
    bases = batches["base_offset"][(batches["base_offset"] <= offset) & (batches["last_offset"] >= offset)]
    return int(np.min(bases)) if len(bases) else None
