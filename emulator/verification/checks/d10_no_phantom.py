"""D10 NoPhantom: nothing is in a log, or reaches a consumer, that no producer sent to that partition."""

from collections.abc import Iterator

from emulator.core.events import AppendRole, BatchAppended
from emulator.verification.check import Evidence, Finding, PartitionCheck, Premise
from emulator.verification.partition_facts import PartitionFacts
from emulator.verification.sentences import span


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    sent = {(crc, batch.record_count) for batch in facts.sent for crc in batch.crcs}
    sent_records: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for batch in facts.sent:
        for crc in batch.crcs:
            sent_records.setdefault((batch.process, crc), []).append(
                (batch.first_record_id, batch.first_record_id + batch.record_count)
            )

    def finding(where: str, base_offset: int, last_offset: int, crc: int, record_count: int) -> Finding:
        return Finding(
            base_offset,
            f"{facts} {span(base_offset, last_offset)}: {where} has a batch with CRC {crc} and {record_count} records "
            "that no producer sent",
        )

    for final in facts.final_batches:
        if not final.is_control and (final.crc, final.record_count) not in sent:
            where = f"the final log of broker {final.node}"
            yield finding(where, final.base_offset, final.last_offset, final.crc, final.record_count)
    for appended in facts.events.of(BatchAppended):
        event = appended.event
        if event.role is AppendRole.LEADER and (event.crc, event.record_count) not in sent:
            where = f"the event log of broker {appended.node}"
            yield finding(where, event.base_offset, event.last_offset, event.crc, event.record_count)
    for consumed in facts.consumed:
        end = consumed.first_record_id + consumed.record_count
        # A consumer that starts within a batch is given the rest of it.
        if not any(
            sent_first <= consumed.first_record_id and sent_end == end
            for sent_first, sent_end in sent_records.get((consumed.producer, consumed.crc), ())
        ):
            yield finding(
                consumed.process, consumed.base_offset, consumed.last_offset, consumed.crc, consumed.record_count
            )


CHECK = PartitionCheck(
    check_id="D10",
    name="NoPhantom",
    needs=frozenset({Evidence.HISTORY}),
    premises=frozenset({Premise.STORED}),
    find=_find,
)
