"""M4 CandidateFloor: a partition keeps enough candidates for what its min ISR promises (KIP-966)."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="M4",
    name="CandidateFloor",
    premises=frozenset({Premise.BELOW_MIN_ISR}),
    query=f"""
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset, ' (', replace(reason, '_', ' '),
                      '): ISR ', {listed("isr")}, ' and ELR ', {listed("elr")}, ' have fewer than the ',
                      effective_min_isr, ' members required, before it was ISR ', {listed("old.isr")}, ' and ELR ',
                      {listed("old.elr")}) AS sentence
        FROM change
        WHERE has_elr AND size(isr) + size(elr) < effective_min_isr
              AND size(old.isr) + size(old.elr) >= effective_min_isr AND old.effective_min_isr = effective_min_isr
              AND election NOT IN ('unclean', 'last_known_leader') AND size(array_except(old.replicas, replicas)) = 0
              AND reason NOT IN ('broker_registered', 'min_isr_changed', 'features_changed', 'unregistered')
    """,
)
