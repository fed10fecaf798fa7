"""E1 LogAgreement: final logs are what the event logs say must have become of them.

Each node's events about one of its logs are replayed in the order of its own file: batches appended, cut off by a
truncation, lost with the page cache, deleted. What remains must be in the final log, field by field. The other way
round, a process that was killed may leave a batch whose event it could not write any more: such a batch begins where
the events of that incarnation end; or it may have cut or deleted a log and not have come to say so: then the next
process finds the log as it opens it, or none. Anything else is a disagreement, and final logs decide all other checks.

A log begins where one of its name was deleted, and not with another topic: where strays are left alone, a topic that is
created again continues the log of the deleted one.
"""

from emulator.verification.check import Check, Evidence, Premise
from emulator.verification.sentences import span

_LIMIT = 2**62

# Everything that moves the end of a log or says for which topic it is used, in its node's order. A power loss comes
# after all events of its incarnation.
_STEP = f"""
    SELECT run, topic, topic_id, partition, node, incarnation, sequence, base_offset, last_offset, leader_epoch, crc,
           record_count, last_offset + 1 AS log_end_offset, CAST(NULL AS BIGINT) AS cut, false AS is_end
    FROM batch_appended
    UNION ALL
    SELECT run, topic, topic_id, partition, node, incarnation, sequence, NULL, NULL, NULL, NULL, NULL, new_end_offset,
           new_end_offset, false FROM log_truncated
    UNION ALL
    SELECT run, topic, topic_id, partition, node, incarnation, sequence, NULL, NULL, NULL, NULL, NULL, 0, 0, true
    FROM log_deleted
    UNION ALL
    SELECT o.run, o.topic, o.topic_id, o.partition, o.node, o.incarnation, o.sequence, NULL, NULL, NULL, NULL, NULL,
           o.log_end_offset, IF(x.run IS NULL, NULL, o.log_end_offset), false
    FROM log_opened o
    LEFT JOIN incarnation_ended x ON x.run = o.run AND x.ended_node = o.node AND x.end <> 'stopped'
         AND x.ended_incarnation = o.incarnation - 1
    UNION ALL
    SELECT run, topic, topic_id, partition, node, incarnation, sequence, NULL, NULL, NULL, NULL, NULL, log_end_offset,
           CAST(NULL AS BIGINT), false FROM became_follower
    UNION ALL
    SELECT run, topic, topic_id, partition, node, incarnation, sequence, NULL, NULL, NULL, NULL, NULL,
           epoch_start_offset, CAST(NULL AS BIGINT), false FROM became_leader
    UNION ALL
    SELECT run, topic, topic_id, partition, lost_node, lost_incarnation, {_LIMIT}, NULL, NULL, NULL, NULL, NULL,
           new_end_offset, new_end_offset, false FROM power_lost
"""

# What was done to the log that has the name at the end, beginning with the deletion of the one before. It is of the
# topic that its broker last used it for. (A descending frame is linear; an unbounded following one is not.)
_KEPT_STEP = f"""
    SELECT *, coalesce(max(IF(sequence < {_LIMIT}, struct(incarnation, sequence, topic_id), NULL)) OVER (
                           PARTITION BY run, topic, partition, node).topic_id, topic_id) AS last_topic_id
    FROM (SELECT *, min(cut) OVER later AS later_cut, coalesce(bool_or(is_end) OVER later, false) AS is_over
          FROM step
          WINDOW later AS (PARTITION BY run, topic, partition, node ORDER BY incarnation DESC, sequence DESC
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
    WHERE NOT is_over
"""

# A batch is expected if nothing later cuts it off.
_EXPECTED = f"""
    SELECT * FROM kept_step WHERE crc IS NOT NULL AND last_offset < coalesce(later_cut, {_LIMIT})
"""

# Up to where records may have been deleted on purpose, under any topic that the log was used for.
_DELETED = """
    SELECT s.run, s.last_topic_id AS topic_id, s.partition, s.node, max(d.log_start_offset) AS log_start_offset
    FROM (SELECT DISTINCT run, last_topic_id, topic_id, partition, node FROM kept_step WHERE NOT is_end) s
    JOIN deleted_below d ON d.run = s.run AND d.topic_id = s.topic_id AND d.partition = s.partition
    GROUP BY s.run, s.last_topic_id, s.partition, s.node
"""

# Where the events of killed incarnations end: there, and only there, a log may go on without events.
_UNSEEN = f"""
    SELECT s.run, s.last_topic_id AS topic_id, s.partition, s.node, s.incarnation,
           max_by(s.log_end_offset, s.sequence) AS log_end_offset
    FROM kept_step s
    JOIN incarnation_ended x ON x.run = s.run AND x.ended_node = s.node AND x.ended_incarnation = s.incarnation
         AND x.end <> 'stopped'
    WHERE s.sequence < {_LIMIT}
    GROUP BY s.run, s.last_topic_id, s.partition, s.node, s.incarnation
"""

# From where on a power loss may have undone a truncation that nothing synced (S35): old batches may lie there again.
_UNDONE = """
    SELECT t.run, t.topic_id, t.partition, t.node, min(t.new_end_offset) AS new_end_offset
    FROM log_truncated t
    JOIN power_lost p ON p.run = t.run AND p.topic_id = t.topic_id AND p.partition = t.partition
         AND p.lost_node = t.node AND p.lost_incarnation = t.incarnation
    JOIN node_started n ON n.run = t.run AND n.node = t.node AND n.incarnation = t.incarnation
         AND NOT n.switches['truncation_sync'] <=> 'on'
    GROUP BY t.run, t.topic_id, t.partition, t.node
"""

# Logs that are gone altogether, and no event names since: a process that was killed may have deleted them.
_GONE = f"""
    SELECT s.run, s.topic, s.partition, s.node
    FROM (SELECT run, topic, partition, node, max(incarnation) AS last_incarnation FROM kept_step
          WHERE sequence < {_LIMIT} GROUP BY run, topic, partition, node) s
    JOIN (SELECT run, ended_node, max(ended_incarnation) AS last_killed FROM incarnation_ended
          WHERE end <> 'stopped' GROUP BY run, ended_node) x
         ON x.run = s.run AND x.ended_node = s.node AND x.last_killed >= s.last_incarnation
    LEFT ANTI JOIN final_log f
         ON f.run = s.run AND f.topic = s.topic AND f.partition = s.partition AND f.node = s.node
"""

CHECK = Check(
    check_id="E1",
    name="LogAgreement",
    needs=frozenset({Evidence.EVENTS, Evidence.FINAL_LOGS}),
    premises=frozenset({Premise.STORED, Premise.FINAL_LOG}),
    query=f"""
        WITH step AS ({_STEP}), kept_step AS ({_KEPT_STEP}), expected AS ({_EXPECTED}), deleted AS ({_DELETED}),
        unseen AS ({_UNSEEN}), gone AS ({_GONE}), undone AS ({_UNDONE}),
        disagreement AS (
            SELECT run, topic_id, partition, node, base_offset, last_offset, leader_epoch, crc, record_count,
                   max(topic) AS topic, max(side) AS side
            FROM (SELECT run, topic, last_topic_id AS topic_id, partition, node, base_offset, last_offset,
                         leader_epoch, crc, record_count, 'events' AS side FROM expected
                  UNION ALL
                  SELECT run, topic, topic_id, partition, node, base_offset, last_offset, leader_epoch, crc,
                         record_count, 'final log' FROM final_batch)
            GROUP BY run, topic_id, partition, node, base_offset, last_offset, leader_epoch, crc, record_count
            HAVING min(side) = max(side))
        SELECT g.run, g.topic, g.partition, g.base_offset AS position,
               concat(g.topic, '-', g.partition, ' ', {span("g.base_offset", "g.last_offset")}, ': the ',
                      IF(g.side = 'events', 'event', 'final'), ' log of broker ', g.node, ' has a batch of epoch ',
                      g.leader_epoch, ' with CRC ', g.crc, IF(g.side = 'events',
                      ' that its final log does not have, and nothing explains it',
                      ' that its event log does not have')) AS sentence
        FROM disagreement g
        LEFT JOIN deleted d
             ON d.run = g.run AND d.node = g.node AND d.topic_id = g.topic_id AND d.partition = g.partition
        LEFT JOIN (SELECT run, topic_id, partition, node, min(log_end_offset) AS log_end_offset
                   FROM unseen GROUP BY run, topic_id, partition, node) u
             ON u.run = g.run AND u.node = g.node AND u.topic_id = g.topic_id AND u.partition = g.partition
        LEFT ANTI JOIN undone s ON s.run = g.run AND s.node = g.node AND s.topic_id = g.topic_id
             AND s.partition = g.partition AND g.last_offset >= s.new_end_offset
        LEFT ANTI JOIN gone w ON w.run = g.run AND w.node = g.node AND w.topic = g.topic AND w.partition = g.partition
        WHERE IF(g.side = 'events', d.run IS NULL OR g.last_offset >= d.log_start_offset,
                 u.run IS NULL OR g.base_offset < u.log_end_offset)
        UNION ALL
        SELECT run, topic, partition, log_end_offset,
               concat(topic, '-', partition, ': the final log of broker ', node, ', which stopped in order, is ',
                      'unreadable from offset ', log_end_offset, ' on: ', problem)
        FROM final_log WHERE problem IS NOT NULL AND is_clean
    """,
)
