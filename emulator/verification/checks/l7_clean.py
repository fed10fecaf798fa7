"""L7 Clean: brokers remove logs that are not theirs, and no others (KIP-550)."""

from typing import Final

from emulator.core.properties import NodeProperties
from emulator.verification.check import Check, Evidence, Premise

_DEFAULT_DELAY_MS: Final = NodeProperties().stray_delete_delay_ms
_CLOCK_STEP_MS: Final = 1
"""Graces are counted in whole ms, events are noted in ns."""

CHECK = Check(
    check_id="L7",
    name="Clean",
    needs=frozenset({Evidence.EVENTS}),
    premises=frozenset({Premise.FINAL_LOG, Premise.SETTLED}),
    query=f"""
        SELECT d.run, d.topic, d.partition, d.log_end_offset AS position,
               concat(d.topic, '-', d.partition, ': broker ', d.node, ' removed its log, which ended at ',
                      d.log_end_offset, ' (', d.why, '), though it was a replica all the time') AS sentence
        FROM (SELECT run, topic, topic_id, partition, node, log_end_offset, reason AS why FROM log_deleted
              UNION ALL
              SELECT run, topic, topic_id, partition, node, log_end_offset, replace(reason, '_', ' ')
              FROM stray_detected WHERE action <> 'off') d
        JOIN partition_state p ON p.run = d.run AND p.topic_id = d.topic_id AND p.partition = d.partition
        LEFT ANTI JOIN topic_deleted t ON t.run = d.run AND t.topic_id = d.topic_id
        LEFT ANTI JOIN partition_changed c ON c.run = d.run AND c.topic_id = d.topic_id AND c.partition = d.partition
             AND NOT array_contains(c.replicas, d.node)
        UNION ALL
        SELECT f.run, f.topic, f.partition, f.log_end_offset,
               concat(f.topic, '-', f.partition, ': broker ', f.node, ' kept a log of topic id ', f.topic_id,
                      ' that is not its own, and did not notice')
        FROM final_log f
        JOIN (SELECT p.run, p.topic_id, p.partition, p.replicas, t.run IS NOT NULL AS is_gone,
                     coalesce(t.metadata_offset, c.metadata_offset) AS since
              FROM partition_state p
              JOIN (SELECT run, topic_id, partition, max(metadata_offset) AS metadata_offset FROM change
                    WHERE NOT (replicas <=> old.replicas) GROUP BY run, topic_id, partition) c
                   ON c.run = p.run AND c.topic_id = p.topic_id AND c.partition = p.partition
              LEFT JOIN topic_deleted t ON t.run = p.run AND t.topic_id = p.topic_id) a
             ON a.run = f.run AND a.topic_id = f.topic_id AND a.partition = f.partition
             AND (a.is_gone OR NOT array_contains(a.replicas, f.node))
        JOIN (SELECT run, node, max_by(end_offset, struct(incarnation, sequence)) AS end_offset,
                     max(incarnation) AS incarnation
              FROM metadata_applied GROUP BY run, node) m
             ON m.run = f.run AND m.node = f.node AND m.end_offset > a.since
        LEFT ANTI JOIN stray_detected s ON s.run = f.run AND s.node = f.node AND s.topic_id = f.topic_id
             AND s.partition = f.partition AND s.incarnation = m.incarnation
        UNION ALL
        SELECT d.run, d.topic, d.partition, d.sequence,
               concat(d.topic, '-', d.partition, ': broker ', d.node, ' deleted a stray of topic id ', d.topic_id, ' ',
                      waited_ms, ' ms after it knew of it, before stray.delete.delay.ms, which is ', delay_ms)
        FROM (SELECT g.*, CAST((g.time_ns - coalesce(s.time_ns, n.time_ns)) / 1000000 AS BIGINT) AS waited_ms,
                     CAST(coalesce(n.properties['stray.delete.delay.ms'], '{_DEFAULT_DELAY_MS}') AS BIGINT) AS delay_ms
              FROM stray_deleted g
              JOIN node_started n ON n.run = g.run AND n.node = g.node AND n.incarnation = g.incarnation
              LEFT JOIN (SELECT run, node, incarnation, topic_id, partition, max(time_ns) AS time_ns
                         FROM stray_detected GROUP BY run, node, incarnation, topic_id, partition) s
                   ON s.run = g.run AND s.node = g.node AND s.incarnation = g.incarnation
                   AND s.topic_id = g.topic_id AND s.partition = g.partition) d
        WHERE waited_ms < delay_ms - {_CLOCK_STEP_MS}
    """,
)
