"""M11 ISRGrowth: an ISR grows only by word of its leader, or with the leader that it is given.

Where a reassignment may be called off with nobody in sync, a replica that remains is put into the ISR unasked (S39).
"""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="M11",
    name="ISRGrowth",
    premises=frozenset({Premise.ISR_GREW}),
    query=f"""
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset, ' (', replace(reason, '_', ' '),
                      '): the ISR grew from ', {listed("old.isr")}, ' to ', {listed("isr")}) AS sentence
        FROM change
        WHERE size(array_except(isr, old.isr)) > 0 AND reason <> 'alter_partition'
              AND NOT (election IN ('elr', 'unclean', 'last_known_leader') AND isr <=> array(leader))
    """,
)
