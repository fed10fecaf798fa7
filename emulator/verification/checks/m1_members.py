"""M1 Members: the ISR is a part of the replicas, has nothing in common with the ELR, and the leader is in it."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import broker, listed

CHECK = Check(
    check_id="M1",
    name="Members",
    premises=frozenset({Premise.COMMITTED}),
    query=f"""
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset, ': leader ', {broker("leader")},
                      ', replicas ', {listed("replicas")}, ', ISR ', {listed("isr")}, ', ELR ', {listed("elr")}, ': ',
                      CASE WHEN size(array_except(isr, replicas)) > 0 THEN 'the ISR has members that are no replicas'
                           WHEN arrays_overlap(isr, elr) THEN 'ISR and ELR overlap'
                           ELSE 'the leader is not in the ISR' END) AS sentence
        FROM partition_changed
        WHERE size(array_except(isr, replicas)) > 0 OR arrays_overlap(isr, elr) OR NOT array_contains(isr, leader)
    """,
)
