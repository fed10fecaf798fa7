"""D11 NoAbortedRead: a batch that was certainly refused is in no log, and reaches no consumer."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from laststand.emulator.core.history import FOREIGN_CLIENT, OperationType
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.client_history import ReceivedBatch, tried
from laststand.emulator.verification.tables.final_logs import FinalBatch


@partition_check(
    "D11",
    "NoAbortedRead",
    source="Jepsen's Kafka workload, aborted read (G1a)",
    needs={Evidence.HISTORY},
    premises={Premise.REFUSED},
    is_of_clients=True,
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    refused: dict[tuple[int, int], list[str]] = {}
    for sent in facts.sent.rows(facts.sent.has("type", OperationType.FAIL)):
        for attempt in sent.crcs:
            refused.setdefault((attempt.crc, sent.record_count), []).append(sent.process)
    if not refused:
        return
    for sent_again in _sent_again(facts, refused):
        del refused[sent_again]
    crcs = np.array([crc for crc, _ in refused], np.int64)
    final, received = facts.final_batches, facts.received
    found: list[tuple[str, FinalBatch | ReceivedBatch]] = [
        *((f"the final log of broker {batch.node}", batch) for batch in final.rows(np.isin(final["crc"], crcs))),
        *((batch.process, batch) for batch in received.rows(np.isin(received["crc"], crcs))),
    ]
    for holder, batch in found:
        for process in refused.get((batch.crc, batch.record_count), ()):
            yield Finding(
                batch.base_offset,
                f"{facts} offset {batch.base_offset}: {holder} has the batch with CRC {batch.crc} that {process} was "
                "refused for certain",
            )


def _sent_again(facts: PartitionFacts, refused: Mapping[tuple[int, int], Sequence[str]]) -> set[tuple[int, int]]:
    """Returns the refused batches of Kafka clients that were sent again: each attempt counts as a separate send."""
    foreign = {
        batch
        for batch, processes in refused.items()
        if any(process.startswith(FOREIGN_CLIENT) for process in processes)
    }
    sent = tried(facts.sent)
    is_refused = np.isin(sent.crcs, np.array([crc for crc, _ in foreign], np.int64))
    again = (each for each in facts.sent.rows(sent.places[is_refused]) if each.type is not OperationType.FAIL)
    return foreign & {(attempt.crc, each.record_count) for each in again for attempt in each.crcs}
