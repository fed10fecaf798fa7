"""M11 ISRGrowth: an ISR grows only when its leader asks for it, or by the election of a leader.

Where a reassignment may be cancelled with no replica in sync, one that remains is put into the ISR (S39).
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
