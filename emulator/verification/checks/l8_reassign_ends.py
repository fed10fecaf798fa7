"""L8 ReassignEnds: once every fault is over, no reassignment is left unfinished.

A partition that no replica may lead when the cluster settles cannot finish one, and is excused.
"""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="L8",
    name="ReassignEnds",
    premises=frozenset({Premise.REASSIGNMENT, Premise.SETTLED}),
    query=f"""
        SELECT p.run, p.topic, p.partition, p.settled_at AS position,
               concat(p.topic, '-', p.partition, ' is still adding ', {listed("p.state.adding_replicas")},
                      ' and removing ', {listed("p.state.removing_replicas")}) AS sentence
        FROM (SELECT c.run, c.topic, c.topic_id, c.partition, e.metadata_offset AS settled_at,
                     max_by(struct(c.leader, c.adding_replicas, c.removing_replicas), c.metadata_offset) AS state
              FROM partition_changed c
              JOIN cluster_settled e ON e.run = c.run AND c.metadata_offset < e.metadata_offset
              GROUP BY c.run, c.topic, c.topic_id, c.partition, e.metadata_offset) p
        LEFT ANTI JOIN topic_deleted t ON t.run = p.run AND t.topic_id = p.topic_id
        WHERE p.state.leader IS NOT NULL
              AND size(p.state.adding_replicas) + size(p.state.removing_replicas) > 0
    """,
)
