"""M16 Reassign: a reassignment ends only when the new replicas can carry the partition (KIP-455, KIP-966)."""

from emulator.verification.check import Check, CheckKind
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="M16",
    name="Reassign",
    kind=CheckKind.RULE,
    statement=(
        "A reassignment completes with every added replica in the ISR and min ISR members left of the target, "
        "and a replica that leaves ends the leader epoch."
    ),
    query=f"""
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset, ': from replicas ',
                      {listed("old.replicas")}, ' (adding ', {listed("old.adding_replicas")}, ', removing ',
                      {listed("old.removing_replicas")}, ') to ', {listed("replicas")}, ' with ISR ', {listed("isr")},
                      ', ', problem) AS sentence
        FROM (SELECT *, CASE
                  WHEN is_completed AND size(array_except(old.adding_replicas, isr)) > 0
                      THEN 'though an added replica is not in the ISR'
                  WHEN is_completed AND size(isr) < least(effective_min_isr, size(replicas))
                      THEN concat('fewer than the ', effective_min_isr, ' members required')
                  WHEN is_completed AND size(array_union(array_except(replicas, old.replicas),
                       array_intersect(replicas, old.removing_replicas))) > 0
                      THEN 'which is not the target'
                  WHEN size(array_except(old.replicas, replicas)) > 0 AND leader_epoch = old.leader_epoch
                      THEN 'in the same leader epoch'
              END AS problem
              FROM (SELECT *, reason = 'alter_partition' AND size(adding_replicas) + size(removing_replicas) = 0
                           AND size(old.adding_replicas) + size(old.removing_replicas) > 0 AS is_completed FROM change))
        WHERE problem IS NOT NULL
    """,
)
