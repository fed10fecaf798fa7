"""D4 NoGlobalLoss: data does not vanish from every replica unless every replica that held it lost its page cache."""

from collections.abc import Iterator

from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.copies import Copies
from laststand.emulator.verification.facts.losses import LossClass
from laststand.emulator.verification.facts.partition import ACKS_ALL, PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import span


@partition_check(
    "D4",
    "NoGlobalLoss",
    source="Kafka documentation, Replication: as long as one replica that is in sync is alive",
    premises={Premise.ACKED_ALL, Premise.FINAL_LOG},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    gone = [lost for lost in facts.lost if lost.loss_class is LossClass.GONE_EVERYWHERE]
    copies = Copies(facts, gone)
    exempts_disks = PROMISES["D4"].leaves_out(Exemption.LOST_DISKS)
    acks_1 = Exemption.ACKS_1 if PROMISES["D4"].leaves_out(Exemption.ACKS_1) else None
    for each in gone:
        batch, had = each.batch, copies.holding(each).nodes
        lost = copies.lost_with_disk(each) if exempts_disks else frozenset()
        if not had:
            continue
        of_disks = Exemption.LOST_DISKS if len(had) == len(lost) else None
        yield Finding(
            batch.base_offset,
            f"{facts} {span(batch.base_offset, batch.last_offset)}: {len(had)} replicas held it and {len(lost)} "
            "lost it with its page cache, and no log has it",
            exempted_by=of_disks if batch.acks == ACKS_ALL else acks_1,
        )
