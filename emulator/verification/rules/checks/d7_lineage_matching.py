"""D7 LineageMatching: a leader epoch has one history, the same in every log."""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.matching import keys_of


@partition_check(
    "D7",
    "LineageMatching",
    source="Raft (Ongaro and Ousterhout 2014), Log Matching; KIP-101",
    needs={Evidence.TOPIC_IDS},
    premises={Premise.REPLICATED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    batches = facts.events.rows(events.BatchAppended)
    [batch_keys] = keys_of([batches["topic_id"], batches["leader_epoch"], batches["base_offset"]])
    order = np.argsort(batch_keys, kind="stable")
    keys, last_offsets, crcs = batch_keys[order], batches["last_offset"][order], batches["crc"][order]
    is_other = (keys[1:] == keys[:-1]) & ((last_offsets[1:] != last_offsets[:-1]) | (crcs[1:] != crcs[:-1]))
    differing: dict[tuple[str, int, int], set[str]] = {}
    for appended in batches.rows(np.isin(batch_keys, keys[1:][is_other])):
        batch = appended.event
        copies = differing.setdefault((batch.topic_id, batch.leader_epoch, batch.base_offset), set())
        copies.add(f"broker {appended.node} has one up to {batch.last_offset} with CRC {batch.crc}")
    for (_, leader_epoch, base_offset), copies in differing.items():
        yield Finding(
            base_offset,
            f"{facts} offset {base_offset} of epoch {leader_epoch} is not one batch: {', '.join(sorted(copies))}",
        )
