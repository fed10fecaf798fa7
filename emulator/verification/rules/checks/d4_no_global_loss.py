"""D4 NoGlobalLoss: data does not vanish from every replica unless every replica that held it lost its page cache."""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.losses import LossClass
from laststand.emulator.verification.facts.partition import ACKS_ALL, PartitionFacts
from laststand.emulator.verification.rules.check import Finding, PartitionCheck, Premise
from laststand.emulator.verification.rules.sentences import span


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    gone = [lost.batch for lost in facts.lost if lost.loss_class is LossClass.GONE_EVERYWHERE]
    held: dict[tuple[str | None, int, int | None], set[tuple[int, int]]] = {
        (batch.topic_id, batch.base_offset, batch.crc): set() for batch in gone
    }
    batches = facts.events.rows(events.BatchAppended)
    for appended in batches.rows(np.isin(batches["base_offset"], [batch.base_offset for batch in gone])):
        event = appended.event
        holders = held.get((event.topic_id, event.base_offset, event.crc))
        if holders is not None:
            holders.add((appended.node, appended.incarnation))
    exempts = PROMISES["D4"].leaves_out(Exemption.LOST_DISKS)
    acks_1 = Exemption.ACKS_1 if PROMISES["D4"].leaves_out(Exemption.ACKS_1) else None
    power_losses = [loss.event for loss in facts.events.of(events.PowerLost) if exempts]
    for batch in gone:
        holders = held[batch.topic_id, batch.base_offset, batch.crc]
        had = {node for node, _ in holders}
        lost = {
            node
            for node, incarnation in holders
            for loss in power_losses
            if (loss.topic_id, loss.lost_node) == (batch.topic_id, node)
            and loss.lost_incarnation >= incarnation
            and loss.new_end_offset <= batch.last_offset
        }
        if not had:
            continue
        of_disks = Exemption.LOST_DISKS if len(had) == len(lost) else None
        yield Finding(
            batch.base_offset,
            f"{facts} {span(batch.base_offset, batch.last_offset)}: {len(had)} replicas held it and {len(lost)} "
            "lost it with its page cache, and no log has it",
            exempted_by=of_disks if batch.acks == ACKS_ALL else acks_1,
        )


CHECK = PartitionCheck(
    check_id="D4",
    name="NoGlobalLoss",
    source="Kafka documentation, Replication: as long as one replica that is in sync is alive",
    premises=frozenset({Premise.ACKED_ALL, Premise.FINAL_LOG}),
    find=_find,
)
