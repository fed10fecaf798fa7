"""M16 Reassign: a reassignment completes only when every target replica is in sync (KIP-455, KAFKA-15665)."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="M16",
    name="Reassign",
    premises=frozenset({Premise.REASSIGNMENT_COMPLETED}),
    query=f"""
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset, ': from replicas ',
                      {listed("old.replicas")}, ' (adding ', {listed("old.adding_replicas")}, ', removing ',
                      {listed("old.removing_replicas")}, ') to ', {listed("replicas")}, ' with ISR ', {listed("isr")},
                      ', ', problem) AS sentence
        FROM (SELECT *, CASE
                  WHEN is_completed AND size(array_except(replicas, isr)) > 0
                      THEN concat('without ', array_join(CAST(array_except(replicas, isr) AS ARRAY<STRING>), ', '),
                                  ' in the ISR')
                  WHEN is_completed AND size(array_union(array_except(replicas, old.replicas),
                       array_intersect(replicas, old.removing_replicas))) > 0
                      THEN 'which is not the target'
                  WHEN size(array_except(old.replicas, replicas)) > 0 AND leader_epoch = old.leader_epoch
                      THEN 'in the same leader epoch'
              END AS problem
              FROM (SELECT *, reason <> 'reassignment' AND size(adding_replicas) + size(removing_replicas) = 0
                           AND size(old.adding_replicas) + size(old.removing_replicas) > 0 AS is_completed FROM change))
        WHERE problem IS NOT NULL
    """,
)
