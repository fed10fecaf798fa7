"""M17 ELRReplicas: an ELR holds nobody who was reassigned away, and has deleted its log (KIP-966)."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="M17",
    name="ELRReplicas",
    premises=frozenset({Premise.ELR}),
    query=f"""
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset, ': ELR ', {listed("elr")},
                      ' is no part of the replicas ', {listed("replicas")}) AS sentence
        FROM partition_changed
        WHERE size(array_except(elr, replicas)) > 0
    """,
)
