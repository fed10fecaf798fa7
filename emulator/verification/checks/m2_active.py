"""M2 Active: no fenced or leaving broker is in an ISR (KIP-841, KIP-966).

Where a reassignment may be cancelled with no replica in sync, even a fenced replica is put into the ISR (S39). While
the feature of ELR is off, the last member stays in the ISR though it is fenced; members of that time are excepted.
"""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="M2",
    name="Active",
    premises=frozenset({Premise.COMMITTED}),
    query=f"""
        SELECT c.run, c.topic, c.partition, c.metadata_offset AS position,
               concat(c.topic, '-', c.partition, ' at metadata offset ', c.metadata_offset, ': ISR ',
                      {listed("c.isr")}, ' has broker ', c.member, ', which is not active') AS sentence
        FROM (SELECT *, explode(isr) AS member FROM change WHERE has_elr) c
        LEFT ANTI JOIN broker_status b ON b.run = c.run AND b.broker_id = c.member
             AND b.active_from < c.metadata_offset AND c.metadata_offset < b.active_to
        LEFT ANTI JOIN (SELECT *, explode(isr) AS member FROM change WHERE NOT has_elr) k
             ON k.run = c.run AND k.topic_id = c.topic_id AND k.partition = c.partition AND k.member = c.member
             AND k.metadata_offset < c.metadata_offset
    """,
)
