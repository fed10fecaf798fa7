"""D11 NoAbortedRead: what was refused for certain is nowhere."""

from collections.abc import Iterator

from emulator.core.history import OperationType
from emulator.verification.check import Evidence, Finding, PartitionCheck, Premise
from emulator.verification.client_history import ReceivedBatch
from emulator.verification.log_reader import FinalBatch
from emulator.verification.partition_facts import PartitionFacts


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    refused: dict[tuple[int, int], list[str]] = {}
    for sent in facts.sent:
        if sent.type is OperationType.FAIL:
            for crc in sent.crcs:
                refused.setdefault((crc, sent.record_count), []).append(sent.process)
    if not refused:
        return
    found: list[tuple[str, FinalBatch | ReceivedBatch]] = [
        *((f"the final log of broker {batch.node}", batch) for batch in facts.final_batches),
        *((batch.process, batch) for batch in facts.received),
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
    needs=frozenset({Evidence.HISTORY}),
    premises=frozenset({Premise.REFUSED}),
    find=_find,
)
