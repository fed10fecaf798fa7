"""D11 NoAbortedRead: what was refused for certain is nowhere."""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.core.history import OperationType
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, PartitionCheck, Premise
from laststand.emulator.verification.tables.client_history import ReceivedBatch
from laststand.emulator.verification.tables.final_logs import FinalBatch


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    refused: dict[tuple[int, int], list[str]] = {}
    for sent in facts.sent.rows(facts.sent.has("type", OperationType.FAIL)):
        for tried in sent.crcs:
            refused.setdefault((tried.crc, sent.record_count), []).append(sent.process)
    if not refused:
        return
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


CHECK = PartitionCheck(
    check_id="D11",
    name="NoAbortedRead",
    source="Jepsen's Kafka workload, aborted read (G1a)",
    needs=frozenset({Evidence.HISTORY}),
    premises=frozenset({Premise.REFUSED}),
    find=_find,
)
