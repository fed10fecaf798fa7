"""M17 ELRReplicas: no replica that was reassigned away stays in an ELR (KIP-966)."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="M17",
    name="ELRReplicas",
    premises=frozenset({Premise.ELR}),
    query=f"""
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset, ': ELR ', {listed("elr")},
                      ' has members that are not among the replicas ', {listed("replicas")}) AS sentence
        FROM partition_changed
        WHERE size(array_except(elr, replicas)) > 0
    """,
)
