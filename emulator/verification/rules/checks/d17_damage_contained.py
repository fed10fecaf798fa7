"""D17 DamageContained: a batch that was damaged on a disk reaches no consumer and no other replica.

The harness records which stored batch it damaged, and the CRC of the damaged bytes. A consumer that received a batch
with this CRC, or a broker that appended one, accepted the damaged bytes as valid. So did another broker whose final log
has bytes with this CRC at that offset, whatever CRC the batch's header names.

The damaged log itself may keep the batch: a broker does not check stored batches by itself, and recovery begins at the
recovery point. E1 and L6 leave that log out from the damaged batch on.
"""

from collections.abc import Collection, Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import span
from laststand.emulator.verification.tables.columns import Mask
from laststand.emulator.verification.tables.integers import Ints


@partition_check(
    "D17",
    "DamageContained",
    source="KIP-98, message format: CRC; Kafka's DefaultRecordBatch.ensureValid",
    needs={Evidence.EVENTS, Evidence.HISTORY, Evidence.FINAL_LOGS},
    premises={Premise.FLIPPED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    flips = [flip.event for flip in facts.events.of(events.BitFlipped)]
    damaged_disks = {(flip.flipped_node, flip.damaged_crc) for flip in flips}
    for flip in flips:
        for taker in dict.fromkeys(_takers(facts, flip, damaged_disks)):
            yield Finding(
                flip.base_offset,
                f"{facts} {span(flip.base_offset, flip.last_offset)}: {taker} the batch that was damaged on the disk "
                f"of broker {flip.flipped_node}, with CRC {flip.damaged_crc} instead of {flip.crc}",
            )


def _takers(
    facts: PartitionFacts, flip: events.BitFlipped, damaged_disks: Collection[tuple[int, int]]
) -> Iterator[str]:
    received = facts.received
    for batch in received.rows(received["crc"] == flip.damaged_crc):
        yield f"{batch.process} was given"
    appended = facts.events.rows(events.BatchAppended)
    for event in appended.rows(_is_damaged(appended["base_offset"], appended["crc"], flip)):
        yield f"broker {event.node} appended"
    final = facts.final_batches
    for stored in final.rows(_is_damaged(final["base_offset"], final["crc"], flip)):
        yield f"the final log of broker {stored.node} has as valid"
    for log in facts.final_logs:
        is_elsewhere = (log.node, flip.damaged_crc) not in damaged_disks
        if log.damaged_crc == flip.damaged_crc and is_elsewhere:
            yield f"the final log of broker {log.node} has"


def _is_damaged(base_offsets: Ints, crcs: Ints, flip: events.BitFlipped) -> Mask:
    is_there: Mask = (base_offsets == flip.base_offset) & (crcs == flip.damaged_crc)
    return is_there
