"""M3 ELRonlyUnderMin: eligible leader replicas exist only while the ISR is below the minimum (KIP-966)."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="M3",
    name="ELRonlyUnderMin",
    premises=frozenset({Premise.ELR}),
    query=f"""
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset, ': ISR ', {listed("isr")},
                      ' has the ', effective_min_isr, ' members required, yet ELR is ', {listed("elr")},
                      ' and last-known ELR ', {listed("last_known_elr")}) AS sentence
        FROM partition_changed
        WHERE size(isr) >= effective_min_isr AND (size(elr) > 0 OR size(last_known_elr) > 0)
    """,
)
