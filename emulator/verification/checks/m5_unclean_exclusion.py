"""M5 UncleanExclusion: a broker that may have lost data is no candidate until its leader vouches for it.

A registration is unclean if it names another previous broker epoch than the one stored. From then on the broker must be
in no ISR or ELR and lead nothing, until an AlterPartition that names its new broker epoch is committed, it is elected
uncleanly, a cancelled reassignment puts it into the ISR (which is a matter of M11), or it registers again. Partitions
created later or deleted before are not concerned, nor is anybody while the feature of ELR is off. The change that
removes it belongs to the same batch of records, so the state before that batch does not count.
"""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import broker, listed

_CHANGE = """
    SELECT c.*, coalesce(lead(c.metadata_offset) OVER w, d.metadata_offset) AS next_offset,
           lead(c.reason) OVER w AS next_reason, lead(c.broker_id) OVER w AS next_broker,
           min(c.metadata_offset) OVER (PARTITION BY c.run, c.topic_id, c.partition) AS created_offset
    FROM partition_changed c LEFT JOIN topic_deleted d ON d.run = c.run AND d.topic_id = c.topic_id
    WINDOW w AS (PARTITION BY c.run, c.topic_id, c.partition ORDER BY c.metadata_offset)
"""

# A rule of ELR: it counts while the feature is on, and a downgrade ends it.
_UNCLEAN = """
    SELECT r.run, r.broker_id, r.broker_epoch, r.metadata_offset,
           least(max(r.next_registration), min(IF(f.feature_level = 0 AND f.metadata_offset > r.metadata_offset,
                                                  f.metadata_offset, NULL))) AS ended
    FROM (SELECT *, lead(metadata_offset) OVER (PARTITION BY run, broker_id ORDER BY metadata_offset)
                    AS next_registration FROM broker_registered) r
    LEFT JOIN feature_changed f ON f.run = r.run AND f.name = 'eligible.leader.replicas.version'
    WHERE r.stored_broker_epoch IS NOT NULL AND NOT (r.previous_broker_epoch <=> r.stored_broker_epoch)
    GROUP BY r.run, r.broker_id, r.broker_epoch, r.metadata_offset
    HAVING NOT (max_by(f.feature_level, IF(f.metadata_offset < r.metadata_offset, f.metadata_offset, NULL)) <=> 0)
"""

# NEW_LEADER_ELECTED tells of a change that was made, and that ended the leadership of the one who asked for it.
_VOUCHED = """
    SELECT run, topic_id, partition, partition_epoch + 1 AS partition_epoch, member.proposed_isr AS broker_id,
           member.broker_epochs AS broker_epoch
    FROM (SELECT *, explode(arrays_zip(proposed_isr, broker_epochs)) AS member FROM alter_partition_decided
          WHERE error IN ('NONE', 'NEW_LEADER_ELECTED'))
"""

# Offset from which the broker is a candidate again.
_READMITTED = """
    SELECT u.run, u.broker_id, u.metadata_offset AS registered, c.topic_id, c.partition,
           min(c.metadata_offset) AS metadata_offset
    FROM unclean u
    JOIN change c ON c.run = u.run AND c.metadata_offset > u.metadata_offset
    LEFT JOIN vouched v ON v.run = c.run AND v.topic_id = c.topic_id AND v.partition = c.partition
         AND v.partition_epoch = c.partition_epoch AND v.broker_id = u.broker_id
         AND coalesce(v.broker_epoch, u.broker_epoch) = u.broker_epoch
    WHERE (c.reason = 'alter_partition' AND v.run IS NOT NULL)
          OR (c.election IN ('unclean', 'last_known_leader') AND c.leader = u.broker_id)
          OR (c.reason = 'reassignment' AND array_contains(c.isr, u.broker_id))
    GROUP BY u.run, u.broker_id, u.metadata_offset, c.topic_id, c.partition
"""

CHECK = Check(
    check_id="M5",
    name="UncleanExclusion",
    premises=frozenset({Premise.UNCLEAN_REGISTRATION}),
    query=f"""
        WITH change AS ({_CHANGE}), unclean AS ({_UNCLEAN}), vouched AS ({_VOUCHED}), readmitted AS ({_READMITTED})
        SELECT c.run, c.topic, c.partition, c.metadata_offset AS position,
               concat(c.topic, '-', c.partition, ' at metadata offset ', c.metadata_offset, ': leader ',
                      {broker("c.leader")}, ', ISR ', {listed("c.isr")}, ', ELR ', {listed("c.elr")},
                      ', though broker ', u.broker_id, ' registered uncleanly at metadata offset ', u.metadata_offset,
                      ' and was not readmitted since') AS sentence
        FROM unclean u
        JOIN change c ON c.run = u.run AND c.created_offset < u.metadata_offset
             AND (c.leader <=> u.broker_id OR array_contains(c.isr, u.broker_id) OR array_contains(c.elr, u.broker_id))
        LEFT JOIN readmitted r ON r.run = u.run AND r.broker_id = u.broker_id AND r.registered = u.metadata_offset
             AND r.topic_id = c.topic_id AND r.partition = c.partition
        WHERE c.metadata_offset < least(u.ended, r.metadata_offset,
                                        {2**62})
              AND coalesce(c.next_offset, {2**62}) > u.metadata_offset
              AND (c.metadata_offset > u.metadata_offset
                   OR NOT (c.next_reason <=> 'broker_registered' AND c.next_broker <=> u.broker_id))
    """,
)
