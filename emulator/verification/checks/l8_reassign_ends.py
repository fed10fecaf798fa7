"""L8 ReassignEnds: once everything is mended, no reassignment is left half-way."""

from emulator.verification.check import Check, CheckKind
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="L8",
    name="ReassignEnds",
    kind=CheckKind.RULE,
    statement="Where a run settled in the end, no partition is adding or removing replicas.",
    query=f"""
        SELECT p.run, p.topic, p.partition, e.metadata_offset AS position,
               concat(p.topic, '-', p.partition, ' is still adding ', {listed("p.adding_replicas")}, ' and removing ',
                      {listed("p.removing_replicas")}) AS sentence
        FROM partition_state p JOIN cluster_settled e ON e.run = p.run
        LEFT ANTI JOIN topic_deleted t ON t.run = p.run AND t.topic_id = p.topic_id
        WHERE size(p.adding_replicas) + size(p.removing_replicas) > 0
    """,
)
