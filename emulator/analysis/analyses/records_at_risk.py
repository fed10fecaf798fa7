"""Acknowledged records at risk over time: records that only one log holds, and records not known to be on any disk.

A copy is in a log from its append until a truncation, a power loss, or the deletion of the log. The log of a node that
is down counts, because the node will have it after a restart. A copy is known to be on disk once its log was opened
with a recovery point above it, its log was flushed, or cut above it (where the switch ``truncation_sync`` is on), its
node lost power and the copy remained, or its node stopped in order. A process records a flush up to a quarter of a
second late; so ``page_cache_only`` is an upper bound.
"""

from typing import TYPE_CHECKING, Final

from laststand.emulator.analysis.runs import Runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUERY: Final = """
WITH cuts AS (
    SELECT run, topic_id, partition, node, incarnation, sequence, time_s, new_end_offset AS end_offset
    FROM log_truncated
    UNION ALL SELECT run, topic_id, partition, node, incarnation, sequence, time_s, log_end_offset FROM log_opened
    UNION ALL SELECT run, topic_id, partition, node, incarnation, sequence, time_s, 0 FROM log_deleted
    UNION ALL SELECT run, topic_id, partition, lost_node, lost_incarnation, bigint(9e18), time_s, new_end_offset
    FROM power_lost
), flushes AS (
    SELECT run, topic_id, partition, node, incarnation, sequence, time_s, recovery_point AS end_offset FROM log_opened
    UNION ALL SELECT run, topic_id, partition, node, incarnation, sequence, time_s, recovery_point FROM log_flushed
    UNION ALL
    SELECT t.run, t.topic_id, t.partition, t.node, t.incarnation, t.sequence, t.time_s, t.new_end_offset
    FROM log_truncated t JOIN runs r ON r.run = t.run AND r.switches.truncation_sync = 'on'
    UNION ALL
    SELECT run, topic_id, partition, lost_node, lost_incarnation, bigint(9e18), time_s, new_end_offset FROM power_lost
), stops AS (
    SELECT run, node, incarnation, min(time_s) AS time_s FROM node_stopped GROUP BY run, node, incarnation
), appended AS (
    SELECT run, topic, partition, topic_id, node, incarnation, sequence, time_s, base_offset, last_offset, crc
    FROM batch_appended
), copies AS (
    SELECT a.run, a.topic, a.partition, a.topic_id, a.base_offset, a.crc, a.node, a.incarnation, a.sequence,
           a.last_offset, a.time_s AS since_s, coalesce(min(c.time_s), double('Infinity')) AS until_s
    FROM appended a
    LEFT JOIN cuts c ON c.run = a.run AND c.topic_id = a.topic_id AND c.partition = a.partition AND c.node = a.node
        AND c.end_offset <= a.last_offset
        AND (c.incarnation > a.incarnation OR (c.incarnation = a.incarnation AND c.sequence > a.sequence))
    GROUP BY ALL
), flushed AS (
    SELECT a.*, least(min(f.time_s), min(s.time_s)) AS flushed_s
    FROM copies a
    LEFT JOIN flushes f ON f.run = a.run AND f.topic_id = a.topic_id AND f.partition = a.partition AND f.node = a.node
        AND f.end_offset > a.last_offset
        AND (f.incarnation > a.incarnation OR (f.incarnation = a.incarnation AND f.sequence > a.sequence))
    LEFT JOIN stops s ON s.run = a.run AND s.node = a.node AND s.incarnation >= a.incarnation
    GROUP BY ALL
), durable AS (
    SELECT *, if(flushed_s < until_s, flushed_s, double('Infinity')) AS on_disk_s FROM flushed
), acknowledged AS (
    SELECT run, scenario, era, seed, topic, partition, acks, operation_id, base_offset, record_count,
           element_at(attempts, -1).crc AS crc, end_s AS acked_s
    FROM history
    WHERE kind = 'send' AND outcome = 'ok' AND acks <> 0 AND base_offset IS NOT NULL
), steps AS (
    SELECT run, scenario, era, seed, topic, partition, acks, operation_id, record_count, acked_s AS time_s,
           0 AS copies, 0 AS on_disk
    FROM acknowledged
    UNION ALL
    SELECT a.run, a.scenario, a.era, a.seed, a.topic, a.partition, a.acks, a.operation_id, a.record_count,
           greatest(a.acked_s, step.time_s), step.copies, step.on_disk
    FROM acknowledged a
    JOIN durable d USING (run, topic, partition, base_offset, crc)
    LATERAL VIEW inline(array(
        struct(d.since_s AS time_s, 1 AS copies, 0 AS on_disk),
        struct(d.on_disk_s AS time_s, 0 AS copies, 1 AS on_disk),
        struct(d.until_s AS time_s, -1 AS copies, -int(d.on_disk_s < d.until_s) AS on_disk)
    )) step AS time_s, copies, on_disk
    WHERE step.time_s < double('Infinity')
), states AS (
    SELECT *, sum(copies) OVER batch AS held, sum(on_disk) OVER batch AS flushed
    FROM (
        SELECT run, scenario, era, seed, topic, partition, acks, operation_id, record_count, time_s,
               sum(copies) AS copies, sum(on_disk) AS on_disk
        FROM steps GROUP BY ALL
    )
    WINDOW batch AS (PARTITION BY run, operation_id ORDER BY time_s)
), kinds AS (
    SELECT *, int(held = 1) AS one, int(held >= 1 AND flushed = 0) AS cached, int(held = 0) AS none,
           row_number() OVER batch = 1 AS is_first,
           lag(int(held = 1), 1, 0) OVER batch AS one_before,
           lag(int(held >= 1 AND flushed = 0), 1, 0) OVER batch AS cached_before,
           lag(int(held = 0), 1, 0) OVER batch AS none_before
    FROM states
    WINDOW batch AS (PARTITION BY run, operation_id ORDER BY time_s)
), changes AS (
    SELECT run, scenario, era, seed, topic, partition, acks, time_s,
           sum(if(is_first, record_count, 0)) AS acknowledged,
           sum((one - one_before) * record_count) AS one_copy,
           sum((cached - cached_before) * record_count) AS page_cache_only,
           sum((none - none_before) * record_count) AS gone
    FROM kinds
    WHERE is_first OR one <> one_before OR cached <> cached_before OR none <> none_before
    GROUP BY ALL
), sums AS (
    SELECT run, scenario, era, seed, topic, partition, acks, time_s,
           sum(acknowledged) OVER so_far AS acknowledged, sum(one_copy) OVER so_far AS one_copy,
           sum(page_cache_only) OVER so_far AS page_cache_only, sum(gone) OVER so_far AS gone
    FROM changes
    WINDOW so_far AS (PARTITION BY run, topic, partition, acks ORDER BY time_s)
)
SELECT run, scenario, era, seed, topic, partition, acks, max(time_s) AS time_s,
       max_by(acknowledged, time_s) AS acknowledged, max_by(one_copy, time_s) AS one_copy,
       max_by(page_cache_only, time_s) AS page_cache_only, max_by(gone, time_s) AS gone
FROM sums
GROUP BY run, scenario, era, seed, topic, partition, acks, floor(time_s / {step})
ORDER BY run, topic, partition, acks, time_s
"""

STEP_S: Final = 0.1
"""The last state within such a span of time is shown."""


def records_at_risk(runs: Runs) -> "DataFrame":
    """Returns the number of acknowledged records of each partition at each risk, by acks, over time.

    ``one_copy``: one log holds them. ``page_cache_only``: logs hold them, but none of these logs is known to have them
    on disk. ``gone``: no log holds them. One row per ``STEP_S`` at most.
    """
    return runs.sql(_QUERY.replace("{step}", str(STEP_S)))
