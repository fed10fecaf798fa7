"""E1 LogAgreement: final logs are what the event logs say must have become of them.

Each node's events about one of its logs are replayed in the order of its own file: batches appended, cut off by a
truncation, lost with the page cache, deleted. What remains must be in the final log, field by field. The other way
round, a process that was killed may leave a batch whose event it could not write any more: such a batch begins where
the events of that incarnation end. Anything else is a disagreement, and final logs decide all other checks.
"""

from emulator.verification.check import Check, CheckKind, Evidence
from emulator.verification.sentences import span

_LIMIT = 2**62

# Everything that moves the end of a log, in its node's order. A power loss comes after all events of its incarnation.
_STEP = f"""
    SELECT run, topic, topic_id, partition, node, incarnation, sequence, base_offset, last_offset, leader_epoch, crc,
           record_count, last_offset + 1 AS log_end_offset, CAST(NULL AS BIGINT) AS cut FROM batch_appended
    UNION ALL
    SELECT run, topic, topic_id, partition, node, incarnation, sequence, NULL, NULL, NULL, NULL, NULL, new_end_offset,
           new_end_offset FROM log_truncated
    UNION ALL
    SELECT run, topic, topic_id, partition, node, incarnation, sequence, NULL, NULL, NULL, NULL, NULL, 0, 0
    FROM log_deleted
    UNION ALL
    SELECT run, topic, topic_id, partition, node, incarnation, sequence, NULL, NULL, NULL, NULL, NULL, log_end_offset,
           CAST(NULL AS BIGINT) FROM log_opened
    UNION ALL
    SELECT run, topic, topic_id, partition, lost_node, lost_incarnation, {_LIMIT}, NULL, NULL, NULL, NULL, NULL,
           new_end_offset, new_end_offset FROM power_lost
"""

# A batch is expected if nothing later cuts it off. (A descending frame is linear; an unbounded following one is not.)
_EXPECTED = f"""
    SELECT * FROM (
        SELECT *, min(cut) OVER (PARTITION BY run, topic_id, partition, node
                                 ORDER BY incarnation DESC, sequence DESC
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later_cut
        FROM step)
    WHERE crc IS NOT NULL AND last_offset < coalesce(later_cut, {_LIMIT})
"""

# Where the events of killed incarnations end: there, and only there, a log may go on without events.
_UNSEEN = f"""
    SELECT s.run, s.topic_id, s.partition, s.node, s.incarnation,
           max_by(s.log_end_offset, s.sequence) AS log_end_offset
    FROM step s
    JOIN incarnation_ended x ON x.run = s.run AND x.ended_node = s.node AND x.ended_incarnation = s.incarnation
         AND x.end <> 'stopped'
    WHERE s.sequence < {_LIMIT}
    GROUP BY s.run, s.topic_id, s.partition, s.node, s.incarnation
"""

CHECK = Check(
    check_id="E1",
    name="LogAgreement",
    kind=CheckKind.OUTCOME,
    statement="Each final log holds exactly the batches that its node's event log says it must hold.",
    needs=frozenset({Evidence.EVENTS, Evidence.FINAL_LOGS}),
    query=f"""
        WITH step AS ({_STEP}), expected AS ({_EXPECTED}), unseen AS ({_UNSEEN}),
        disagreement AS (
            SELECT run, topic_id, partition, node, base_offset, last_offset, leader_epoch, crc, record_count,
                   max(topic) AS topic, max(side) AS side
            FROM (SELECT run, topic, topic_id, partition, node, base_offset, last_offset, leader_epoch, crc,
                         record_count, 'events' AS side FROM expected
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
        LEFT JOIN deleted_below d ON d.run = g.run AND d.topic_id = g.topic_id AND d.partition = g.partition
        LEFT JOIN (SELECT run, topic_id, partition, node, min(log_end_offset) AS log_end_offset
                   FROM unseen GROUP BY run, topic_id, partition, node) u
             ON u.run = g.run AND u.node = g.node AND u.topic_id = g.topic_id AND u.partition = g.partition
        WHERE IF(g.side = 'events', d.run IS NULL OR g.last_offset >= d.log_start_offset,
                 u.run IS NULL OR g.base_offset < u.log_end_offset)
        UNION ALL
        SELECT run, topic, partition, log_end_offset,
               concat(topic, '-', partition, ': the final log of broker ', node, ', which stopped in order, is ',
                      'unreadable from offset ', log_end_offset, ' on: ', problem)
        FROM final_log WHERE problem IS NOT NULL AND is_clean
    """,
)
