"""D10 NoPhantom: every batch in a log, or received by a consumer, was sent by a producer to that partition.

A tap records only producers that connect to it, and only while it runs: batches of other producers are no findings.
"""

from collections.abc import Hashable, Iterator
from typing import Any

from laststand.emulator.core import events
from laststand.emulator.core.history import COORDINATOR, FOREIGN_CLIENT
from laststand.emulator.core.topic_names import INTERNAL_TOPICS
from laststand.emulator.verification.facts.batches import ConsumedBatch
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import span
from laststand.emulator.verification.tables.client_history import Tried, tried
from laststand.emulator.verification.tables.columns import NONE, Mask, Table
from laststand.emulator.verification.tables.matching import are_among


@partition_check(
    "D10",
    "NoPhantom",
    source="Reliable broadcast (Cachin, Guerraoui and Rodrigues 2011), No creation",
    needs={Evidence.HISTORY},
    premises={Premise.STORED},
    is_of_clients=True,
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    if facts.topic in INTERNAL_TOPICS:
        return  # coordinators write there; D6 judges followers' logs
    if _is_behind_a_tap(facts):
        return
    sent = tried(facts.sent)

    def was_sent(stored: Table[Any]) -> Mask:
        return are_among([stored["crc"], stored["record_count"]], [sent.crcs, sent.record_counts])

    def finding(where: str, base_offset: int, last_offset: int, crc: int, record_count: int) -> Finding:
        return Finding(
            base_offset,
            f"{facts} {span(base_offset, last_offset)}: {where} has a batch with CRC {crc} and {record_count} records "
            "that no producer sent",
        )

    stored = facts.final_batches
    for final in stored.rows((stored["is_control"] == 0) & ~was_sent(stored)):
        where = f"the final log of broker {final.node}"
        yield finding(where, final.base_offset, final.last_offset, final.crc, final.record_count)
    batches = facts.events.rows(events.BatchAppended)
    is_marker = (batches["producer_id"] != NONE) & (batches["base_sequence"] < 0)
    for appended in batches.rows(batches.has("role", events.AppendRole.LEADER) & ~is_marker & ~was_sent(batches)):
        event = appended.event
        where = f"the event log of broker {appended.node}"
        yield finding(where, event.base_offset, event.last_offset, event.crc, event.record_count)
    markers = {*stored["crc"][stored["is_control"] != 0].tolist(), *batches["crc"][is_marker].tolist()}
    for consumed in facts.consumed(~_are_whole(facts, sent)):
        if consumed.crc in markers or consumed.producer == COORDINATOR:
            continue  # consumers fetch it, but do not hand it to the application
        end = consumed.first_record_id + consumed.record_count
        # A consumer that starts within a batch receives the rest of it.
        is_of_batch = (sent.crcs == consumed.crc) & (sent.first_record_ids + sent.record_counts == end)
        found = facts.sent.rows(sent.places[is_of_batch & (sent.first_record_ids <= consumed.first_record_id)])
        if all(batch.process != consumed.producer for batch in found) and not _is_of_client(facts, sent, consumed):
            yield finding(
                consumed.process, consumed.base_offset, consumed.last_offset, consumed.crc, consumed.record_count
            )


def _is_behind_a_tap(facts: PartitionFacts) -> bool:
    cluster = facts.cluster
    processes = (*facts.sent.words("process"), *facts.received.words("process"))
    is_of_clients = cluster.is_seen_by_clients_alone and not cluster.has_plan
    return is_of_clients and any(process.startswith(FOREIGN_CLIENT) for process in processes)


def _is_of_client(facts: PartitionFacts, sent: Tried, consumed: ConsumedBatch) -> bool:
    """Returns whether a Kafka client sent the batch, or received a batch that was sent: its records have no ids."""
    is_of_batch = (sent.crcs == consumed.crc) & (sent.record_counts >= consumed.record_count)
    return any(
        process.startswith(FOREIGN_CLIENT)
        for batch in facts.sent.rows(sent.places[is_of_batch])
        for process in (batch.process, consumed.process)
    )


def _are_whole(facts: PartitionFacts, sent: Tried) -> Mask:
    """Returns, for each received batch, whether a producer sent exactly this batch; nearly all are."""
    received, producers = facts.received, dict[Hashable, int]()
    return are_among(
        [
            received.numbers("producer", producers),
            received["crc"],
            received["first_record_id"],
            received["record_count"],
        ],
        [
            facts.sent.numbers("process", producers)[sent.places],
            sent.crcs,
            sent.first_record_ids,
            sent.record_counts,
        ],
    )
