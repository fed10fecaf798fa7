"""M19 CancelAtMinISR: a reassignment is cancelled only if what remains has min ISR members in sync (KIP-966)."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="M19",
    name="CancelAtMinISR",
    premises=frozenset({Premise.REASSIGNMENT_CANCELLED}),
    query=f"""
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset,
                      ': the reassignment that was adding ', {listed("old.adding_replicas")}, ' was cancelled with ',
                      'ISR ', {listed("isr")}, ', fewer than the ', least(effective_min_isr, size(replicas)),
                      ' members required') AS sentence
        FROM change
        WHERE reason = 'reassignment' AND size(adding_replicas) + size(removing_replicas) = 0
              AND size(old.adding_replicas) + size(old.removing_replicas) > 0
              AND array_sort(replicas) = array_sort(array_except(old.replicas, old.adding_replicas))
              AND size(isr) < least(effective_min_isr, size(replicas))
    """,
)
